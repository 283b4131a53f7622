//! Turns of the operator, remembered: what an answer leads to follows from the session and from what the answer depends on,
//! whatever else there is.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    ending::Ending,
    hashed::digest,
    operator::{Core, Deed, Fate, Run, Stage, Turn},
};

/// Keeps two threads from waiting for each other.
const SHARDS: usize = 64;

/// How many turns are remembered at a time, and sessions: those are large. Endings are small and all kept.
const MOST: usize = 120_000;

#[derive(Debug)]
struct Table<T> {
    shards: Vec<Mutex<HashMap<u64, T>>>,
    /// What a shard keeps at most, before it begins anew.
    most: usize,
}

impl<T: Clone> Table<T> {
    fn new(most: usize) -> Self {
        Table { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), most: most / SHARDS }
    }

    fn shard(&self, key: u64) -> &Mutex<HashMap<u64, T>> {
        &self.shards[(key >> 32) as usize % SHARDS]
    }

    fn get(&self, key: u64) -> Option<T> {
        self.shard(key).lock().unwrap().get(&key).cloned()
    }

    /// What was there first stays.
    fn keep(&self, key: u64, value: T) -> T {
        let mut shard = self.shard(key).lock().unwrap();
        if shard.len() >= self.most {
            shard.clear();
        }
        shard.entry(key).or_insert(value).clone()
    }
}

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) stage: Stage,
    runs: Table<Arc<Run>>,
    turns: Table<Option<Arc<Turn>>>,
    endings: Table<Ending>,
    /// The most steps that were ever needed to come to rest.
    pub(crate) longest: AtomicUsize,
    /// How often the shipping code was run.
    pub(crate) turned: AtomicUsize,
}

impl Memory {
    pub(crate) fn new(stage: Stage) -> Self {
        Memory {
            stage,
            runs: Table::new(MOST),
            turns: Table::new(MOST),
            endings: Table::new(usize::MAX),
            longest: AtomicUsize::new(0),
            turned: AtomicUsize::new(0),
        }
    }

    /// Begins a session with the newest configuration, or with an older one that a watch brought.
    pub(crate) fn begin(&self, core: &Core, is_stale: bool) -> Core {
        let mut core = core.clone();
        if !is_stale {
            core.known = core.cluster.config.clone();
        }
        let key = digest(("first", &core.known, &core.cluster.config));
        let run = self.runs.get(key).unwrap_or_else(|| self.runs.keep(key, self.stage.first(&core)));
        core.has_news = is_stale;
        core.is_alone = !is_stale;
        core.began = Some(core.known.clone());
        core.run = Some(run);
        self.stage.go_on(core)
    }

    /// Answers what the session asks for. None when there is no session, or no request that could meet this fate.
    pub(crate) fn step(&self, core: &Core, fate: Fate) -> Option<(Core, Arc<Turn>)> {
        let run = core.run.as_ref()?;
        let key = digest((run.id, fate, self.stage.circumstances(core, run)));
        let turn = match self.turns.get(key) {
            Some(known) => known,
            None => {
                self.turned.fetch_add(1, Ordering::Relaxed);
                let turn = self.stage.turn(core, run, fate).map(|turn| Arc::new(self.shared(turn)));
                self.turns.keep(key, turn)
            }
        }?;
        Some((self.stage.after(core, &turn, fate), turn))
    }

    /// The same session is kept once.
    fn shared(&self, mut turn: Turn) -> Turn {
        turn.run = self.runs.keep(turn.run.id, turn.run.clone());
        turn
    }

    /// The next state, if nobody interferes, and whether something was done on the way.
    pub(crate) fn undisturbed(&self, core: &Core) -> Option<(Core, bool)> {
        let (mut next, turn) = self.step(core, Fate::Answered)?;
        next.cluster.forget_past();
        Some((next, turn.deed != Deed::Nothing))
    }

    pub(crate) fn known_ending(&self, key: u64) -> Option<Ending> {
        self.endings.get(key)
    }

    pub(crate) fn keep_ending(&self, key: u64, ending: Ending) {
        self.longest.fetch_max(ending.steps, Ordering::Relaxed);
        self.endings.keep(key, ending);
    }
}
