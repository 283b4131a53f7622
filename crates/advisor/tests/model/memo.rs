//! Remembers the results of steps: a result follows from the session and from what the answer to its request depends on.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    driver::{ClusterChange, Delivery, Driver, StepResult},
    ending::Ending,
    hashed::digest,
    system::{RunningSession, System},
};

/// So that threads rarely wait for each other.
const SHARDS: usize = 64;

/// How many results and how many sessions are kept; they are large. Endings are small, and all are kept.
const MAX_KEPT: usize = 120_000;

#[derive(Debug)]
struct Table<T> {
    shards: Vec<Mutex<HashMap<u64, T>>>,
    /// How many entries a shard has at most before it is cleared.
    max: usize,
}

impl<T: Clone> Table<T> {
    fn new(max: usize) -> Self {
        Table { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), max: max / SHARDS }
    }

    fn shard(&self, key: u64) -> &Mutex<HashMap<u64, T>> {
        &self.shards[(key >> 32) as usize % SHARDS]
    }

    fn get(&self, key: u64) -> Option<T> {
        self.shard(key).lock().unwrap().get(&key).cloned()
    }

    /// An entry that exists stays.
    fn keep(&self, key: u64, value: T) -> T {
        let mut shard = self.shard(key).lock().unwrap();
        if shard.len() >= self.max {
            shard.clear();
        }
        shard.entry(key).or_insert(value).clone()
    }
}

#[derive(Debug)]
pub(crate) struct Memo {
    pub(crate) driver: Driver,
    runs: Table<Arc<RunningSession>>,
    results: Table<Option<Arc<StepResult>>>,
    endings: Table<Ending>,
    /// The most steps that were needed to settle.
    pub(crate) longest: AtomicUsize,
    /// How many steps were computed.
    pub(crate) computed: AtomicUsize,
}

impl Memo {
    pub(crate) fn new(driver: Driver) -> Self {
        Memo {
            driver,
            runs: Table::new(MAX_KEPT),
            results: Table::new(MAX_KEPT),
            endings: Table::new(usize::MAX),
            longest: AtomicUsize::new(0),
            computed: AtomicUsize::new(0),
        }
    }

    /// Starts a session with the stored configuration or, if `is_stale`, with the one that the watch has delivered.
    pub(crate) fn start_session(&self, system: &System, is_stale: bool) -> System {
        let mut system = system.clone();
        if !is_stale {
            system.watched = system.cluster.config.clone();
        }
        let key = digest(("first", &system.watched, &system.cluster.config, system.day));
        let run = self.runs.get(key).unwrap_or_else(|| self.runs.keep(key, self.driver.start_session(&system)));
        system.has_pending_change = is_stale;
        system.is_undisturbed = !is_stale;
        system.started_with = Some(system.watched.clone());
        system.run = Some(run);
        self.driver.end_if_done(system)
    }

    /// Performs the request of the session. None if there is no session, or if its request cannot be delivered like this.
    pub(crate) fn step(&self, system: &System, delivery: Delivery) -> Option<(System, Arc<StepResult>)> {
        let run = system.run.as_ref()?;
        let key = digest((run.id, delivery, self.driver.dependencies(system, run), system.day));
        let result = match self.results.get(key) {
            Some(known) => known,
            None => {
                self.computed.fetch_add(1, Ordering::Relaxed);
                let result = self.driver.perform(system, run, delivery).map(|result| Arc::new(self.shared(result)));
                self.results.keep(key, result)
            }
        }?;
        Some((self.driver.after(system, &result, delivery), result))
    }

    /// Keeps each session only once.
    fn shared(&self, mut result: StepResult) -> StepResult {
        result.run = self.runs.keep(result.run.id, result.run.clone());
        result
    }

    /// The system after an undisturbed step, and whether the step changed the cluster.
    pub(crate) fn undisturbed(&self, system: &System) -> Option<(System, bool)> {
        let (mut next, result) = self.step(system, Delivery::Answered)?;
        next.cluster.forget_previous();
        Some((next, result.change != ClusterChange::None))
    }

    pub(crate) fn known_ending(&self, key: u64) -> Option<Ending> {
        self.endings.get(key)
    }

    pub(crate) fn keep_ending(&self, key: u64, ending: Ending) {
        self.longest.fetch_max(ending.steps, Ordering::Relaxed);
        self.endings.keep(key, ending);
    }
}
