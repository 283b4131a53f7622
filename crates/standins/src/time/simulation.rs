//! Who has something to do, who waits until when, and when time may go on.

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
    core::ApiResource,
};
use kube_io::{ObjectKey, answer_within};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::sleep,
};

use super::Time;
use crate::DEADLINE;

/// The pause before it is checked again whether everything was seen.
const PAUSE: Duration = Duration::from_millis(2);

/// A simulation. Time stands still for good when it is dropped.
#[derive(Debug)]
pub struct Simulation {
    time: Time,
    _task: JoinSet<()>,
}

impl Simulation {
    /// Needs a runtime, and a client that may list what stand-ins watch.
    pub fn start(client: Client, now: Timestamp) -> Simulation {
        let simulated = Arc::new(Simulated { state: Mutex::new(State::at(now)), changed: Notify::new() });
        let mut task = JoinSet::new();
        task.spawn(simulated.clone().run(client));
        Simulation { time: Time(Some(simulated)), _task: task }
    }

    /// To be given to all stand-ins that take part.
    pub fn time(&self) -> &Time {
        &self.time
    }
}

/// Time stands still while there is one.
#[derive(Debug)]
pub(crate) struct Busy(Option<Arc<Simulated>>);

impl Busy {
    pub(super) fn of(simulated: Option<Arc<Simulated>>) -> Busy {
        if let Some(simulated) = &simulated {
            simulated.state().busy += 1;
        }
        Busy(simulated)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Some(simulated) = &self.0 else { return };
        let is_last = {
            let mut state = simulated.state();
            state.busy -= 1;
            state.busy == 0
        };
        if is_last {
            simulated.changed.notify_one();
        }
    }
}

/// The versions of all objects of a kind that a stand-in knows.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) kind: ApiResource,
    pub(super) labels: &'static str,
    pub(super) versions: BTreeMap<ObjectKey, String>,
}

#[derive(Debug)]
pub(super) struct Simulated {
    state: Mutex<State>,
    /// Nobody is busy any more.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    busy: usize,
    /// How many requests may have changed something, and how many of these every stand-in has seen.
    written: u64,
    seen: u64,
    /// Those who wait, by moment and number. They are busy from then on.
    waiting: BTreeMap<(Timestamp, u64), oneshot::Sender<Busy>>,
    last_number: u64,
    /// By kind.
    known: BTreeMap<String, Known>,
}

impl State {
    fn at(now: Timestamp) -> State {
        let (waiting, known) = (BTreeMap::new(), BTreeMap::new());
        State { now, busy: 0, written: 0, seen: 0, waiting, last_number: 0, known }
    }
}

enum Step {
    /// Somebody is busy, or nobody waits for anything.
    Rest,
    /// Whether every stand-in has seen so many requests is not known.
    Check(u64),
    /// Time has passed.
    Passed,
}

impl Simulated {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.state().now
    }

    pub(super) fn wrote(&self) {
        self.state().written += 1;
    }

    pub(super) fn knows(&self, known: Known) {
        self.state().known.insert(format!("{}.{}", known.kind.plural, known.kind.group), known);
    }

    pub(super) async fn sleep_until(&self, then: Timestamp) {
        let receiver = {
            let mut state = self.state();
            if then <= state.now {
                return;
            }
            let (sender, receiver) = oneshot::channel();
            state.last_number += 1;
            let number = state.last_number;
            state.waiting.insert((then, number), sender);
            receiver
        };
        if receiver.await.is_err() {
            pending().await
        }
    }

    async fn run(self: Arc<Self>, client: Client) {
        loop {
            match self.step() {
                Step::Rest => self.changed.notified().await,
                Step::Check(written) if self.everything_is_known(&client).await => self.state().seen = written,
                Step::Check(_) => sleep(PAUSE).await,
                Step::Passed => {}
            }
        }
    }

    fn step(self: &Arc<Self>) -> Step {
        let due = {
            let mut state = self.state();
            state.waiting.retain(|_, sender| !sender.is_closed());
            let Some(((then, _), _)) = state.waiting.first_key_value().filter(|_| state.busy == 0) else {
                return Step::Rest;
            };
            let then = *then;
            if state.seen != state.written {
                return Step::Check(state.written);
            }
            let later = state.waiting.split_off(&(then, u64::MAX));
            state.now = then;
            let due = std::mem::replace(&mut state.waiting, later);
            state.busy += due.len();
            due
        };
        // Whoever does not wait any more drops it.
        due.into_values().for_each(|sender| drop(sender.send(Busy(Some(self.clone())))));
        Step::Passed
    }

    /// Whether stand-ins know the cluster as it is. What they write themselves they know at once, but not what others write.
    async fn everything_is_known(&self, client: &Client) -> bool {
        let kinds: Vec<_> =
            self.state().known.iter().map(|(name, known)| (name.clone(), known.kind.clone(), known.labels)).collect();
        let lists = kinds.iter().map(async |(name, kind, labels)| {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), kind);
            let params = ListParams::default().labels(labels);
            let list = answer_within(DEADLINE, format!("listing {name}"), api.list_metadata(&params)).await;
            let list = list.inspect_err(|error| tracing::warn!(%error, "simulated time stands still")).ok()?;
            let version = |it: &kube::core::PartialObjectMeta<DynamicObject>| {
                (ObjectKey::of(it), it.metadata.resource_version.clone().unwrap_or_default())
            };
            Some((name, list.items.iter().map(version).collect::<BTreeMap<_, _>>()))
        });
        let lists = join_all(lists).await;
        let state = self.state();
        lists.into_iter().all(|list| {
            list.is_some_and(|(name, versions)| state.known.get(name).is_some_and(|known| known.versions == versions))
        })
    }
}
