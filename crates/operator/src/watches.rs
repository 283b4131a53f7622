//! The watches on what plans depend on: one per named object, metadata only, as long as a plan needs it.
//! A watch waits while its kind is not served, and starts when the definition appears. Observations go to the queues of the
//! reconcilers that subscribed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use advisor::{Kind, ObjectRef, Query, autopilot, kind::CUSTOM_RESOURCE_DEFINITION};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Resource, ResourceExt,
    core::{DynamicObject, GroupVersionKind, PartialObjectMeta},
    discovery::ApiResource,
    runtime::watcher,
};
use kube_io::{Backoff, BackoffPolicy, Change, ResilientWatch, WatchEvent};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    watch_settings::WatchSettings,
    work_queue::{ObjectVersion, Observation, WorkQueue},
};

/// The waits for a kind that has a definition and is not served yet.
const NOT_SERVED: BackoffPolicy = BackoffPolicy { first: Duration::from_millis(100), longest: Duration::from_secs(30) };

/// The resourceVersions of the CustomResourceDefinitions that exist, by name.
type Definitions = BTreeMap<String, String>;

pub(crate) struct Watches {
    client: Client,
    definitions: watch::Receiver<Definitions>,
    queues: Vec<Arc<WorkQueue>>,
    running: Mutex<BTreeMap<Query, Running>>,
    watching: WatchSettings,
}

/// A watch that is running. It ends when this is dropped.
struct Running {
    subscribers: Arc<Subscribers>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watches {
    pub(crate) fn new(
        client: Client,
        definitions: watch::Receiver<Definitions>,
        queues: Vec<Arc<WorkQueue>>,
        watching: WatchSettings,
    ) -> Self {
        Watches { client, definitions, queues, running: Mutex::default(), watching }
    }

    /// Subscribes one reconciler to these queries and to no others.
    pub(crate) fn subscribe(&self, reconciler: usize, queries: &BTreeSet<Query>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|query, watch| queries.contains(query) || !watch.subscribers.remove(reconciler));
        for query in queries {
            let watch = running.entry(query.clone()).or_insert_with(|| self.start(query.clone()));
            watch.subscribers.add(reconciler);
        }
    }

    fn start(&self, query: Query) -> Running {
        let subscribers = Arc::new(Subscribers { query, queues: self.queues.clone(), state: Mutex::default() });
        let task = follow(self.client.clone(), self.definitions.clone(), subscribers.clone(), self.watching.clone());
        Running { subscribers, task: tokio::spawn(task) }
    }
}

/// The reconcilers that a watch informs.
struct Subscribers {
    query: Query,
    queues: Vec<Arc<WorkQueue>>,
    state: Mutex<SubscribersState>,
}

#[derive(Default)]
struct SubscribersState {
    /// Positions of their queues.
    positions: BTreeSet<usize>,
    last: Option<Observation>,
    /// Why the API server refuses the watch.
    forbidden: Option<String>,
}

impl Subscribers {
    fn state(&self) -> MutexGuard<'_, SubscribersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new subscriber gets the last observation: it may be newer than what the reconciler has read.
    fn add(&self, reconciler: usize) {
        let mut state = self.state();
        if !state.positions.insert(reconciler) {
            return;
        }
        if let Some(last) = &state.last {
            self.put_observation(reconciler, last);
        }
        if let Some(message) = &state.forbidden {
            self.put_forbidden(reconciler, message);
        }
    }

    /// Returns whether no subscriber is left.
    fn remove(&self, reconciler: usize) -> bool {
        let mut state = self.state();
        state.positions.remove(&reconciler);
        state.positions.is_empty()
    }

    fn observed(&self, observation: Observation) {
        let mut state = self.state();
        state.positions.iter().for_each(|position| self.put_observation(*position, &observation));
        state.last = Some(observation);
        state.forbidden = None;
    }

    fn forbidden(&self, message: &str) {
        let mut state = self.state();
        state.positions.iter().for_each(|position| self.put_forbidden(*position, message));
        state.forbidden = Some(message.to_owned());
    }

    fn put_observation(&self, reconciler: usize, observation: &Observation) {
        self.queues[reconciler].put(|pending| {
            pending.observations.insert(self.query.clone(), observation.clone());
        });
    }

    fn put_forbidden(&self, reconciler: usize, message: &str) {
        self.queues[reconciler].put(|pending| {
            pending.forbidden.insert(self.query.clone(), message.to_owned());
        });
    }
}

/// Watches one query. The watch pauses while its kind is not served.
async fn follow(
    client: Client,
    mut definitions: watch::Receiver<Definitions>,
    subscribers: Arc<Subscribers>,
    watching: WatchSettings,
) {
    let kind = subscribers.query.kind();
    let definition = ObjectRef::definition(kind).name;
    let version_of = |definitions: &Definitions| definitions.get(&definition).cloned();
    // Kinds that are not custom have no definition and are always served.
    let built_in = !kind.group.contains('.');
    let mut backoff = Backoff::new(NOT_SERVED, watching.clock.clone());
    loop {
        let defined = version_of(&definitions.borrow_and_update());
        if built_in || defined.is_some() {
            for version in kind.versions {
                tokio::select! {
                    biased;
                    () = stream(&client, kind, version, (&subscribers, &watching)) => {}
                    // The definition was deleted or changed, so another version may be served now.
                    () = changed(&mut definitions, |now| version_of(now) != defined) => break,
                }
            }
            // The kind is served in no known version, or not yet.
            tokio::select! {
                biased;
                () = tokio::time::sleep(backoff.failed()) => {}
                () = changed(&mut definitions, |now| version_of(now) != defined) => backoff.reset(),
            }
        } else {
            changed(&mut definitions, |now| version_of(now).is_some()).await;
            backoff.reset();
        }
    }
}

async fn changed(definitions: &mut watch::Receiver<Definitions>, until: impl Fn(&Definitions) -> bool) {
    if definitions.wait_for(|now| until(now)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Watches until the kind is not served. The metadata of named objects tell whether they changed; lists are short, and
/// are watched in full.
async fn stream(
    client: &Client,
    kind: &'static Kind,
    version: &'static str,
    (subscribers, watching): (&Subscribers, &WatchSettings),
) {
    let gvk = GroupVersionKind::gvk(kind.group, version, kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
    match &subscribers.query {
        Query::Object(reference) | Query::Optional(reference) => {
            let config = watcher::Config::default().fields(&format!("metadata.name={}", reference.name));
            let api: Api<PartialObjectMeta<DynamicObject>> = match reference.namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            observe(api, config, (subscribers, watching), object_version, |objects| {
                objects.get(&reference.name).map_or(Observation::Absent, |version| Observation::Object(version.clone()))
            })
            .await;
        }
        Query::List(_) => {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            observe(
                api,
                watcher::Config::default(),
                (subscribers, watching),
                |object| json!(object),
                |objects| Observation::List { version, items: objects.values().cloned().collect() },
            )
            .await;
        }
    }
}

async fn observe<K, T>(
    api: Api<K>,
    config: watcher::Config,
    (subscribers, watching): (&Subscribers, &WatchSettings),
    keep: impl Fn(&K) -> T,
    observation: impl Fn(&BTreeMap<String, T>) -> Observation,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    collect(
        watching.watch(api, config),
        |object| Some(keep(object)),
        |collected| {
            match collected {
                Collected::Objects(objects) => subscribers.observed(observation(objects)),
                Collected::Forbidden(message) => subscribers.forbidden(message),
                Collected::NotServed => {
                    subscribers.observed(Observation::Absent);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        },
    )
    .await;
}

/// What a watch on several objects tells.
enum Collected<'a, T> {
    /// All objects by name, after the first list and after every change.
    Objects(&'a BTreeMap<String, T>),
    Forbidden(&'a str),
    NotServed,
}

/// Collects what is kept of the objects of a watch, if anything is, until `tell` ends it.
async fn collect<K, T>(
    mut watch: ResilientWatch<K>,
    keep: impl Fn(&K) -> Option<T>,
    mut tell: impl FnMut(Collected<'_, T>) -> ControlFlow<()>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut objects: BTreeMap<String, T> = BTreeMap::new();
    let mut is_synced = false;
    loop {
        let told = match watch.next().await {
            WatchEvent::Change(change) => {
                match change {
                    Change::Applied(object) => objects.extend(keep(&object).map(|kept| (object.name_any(), kept))),
                    Change::Deleted(key) => drop(objects.remove(&key.name)),
                    Change::Synced => is_synced = true,
                }
                if !is_synced {
                    continue;
                }
                tell(Collected::Objects(&objects))
            }
            WatchEvent::Forbidden(message) => tell(Collected::Forbidden(&message)),
            WatchEvent::NotServed => tell(Collected::NotServed),
        };
        if told.is_break() {
            return;
        }
    }
}

fn object_version(object: &PartialObjectMeta<DynamicObject>) -> ObjectVersion {
    ObjectVersion {
        uid: object.uid().unwrap_or_default(),
        version: object.resource_version().unwrap_or_default(),
        generation: object.metadata.generation.unwrap_or_default(),
        labels: object.labels().clone(),
        annotations: relevant(object.annotations()),
    }
}

fn relevant(annotations: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let relevant = annotations.iter().filter(|(name, _)| autopilot::is_relevant(name));
    relevant.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Watches the definitions of custom kinds, metadata only, and tells the reconcilers which kinds changed.
pub(crate) async fn definitions(
    client: Client,
    known: watch::Sender<Definitions>,
    queues: Vec<Arc<WorkQueue>>,
    kinds: Vec<&'static Kind>,
    watching: WatchSettings,
) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    // Pages keep memory small: clusters have hundreds of definitions.
    let config = watcher::Config::default().page_size(50);
    let by_name: BTreeMap<String, &'static Kind> =
        kinds.into_iter().map(|kind| (ObjectRef::definition(kind).name, kind)).collect();
    let version = |definition: &PartialObjectMeta<CustomResourceDefinition>| {
        by_name.contains_key(&definition.name_any()).then(|| definition.resource_version().unwrap_or_default())
    };
    collect(watching.watch(api, config), version, |collected| {
        match collected {
            Collected::Objects(now) => {
                let before = known.send_replace(now.clone());
                let is_new = |name: &String| before.get(name) != now.get(name);
                let changed: Vec<&'static Kind> =
                    by_name.iter().filter(|(name, _)| is_new(name)).map(|(_, kind)| *kind).collect();
                if !changed.is_empty() {
                    queues.iter().for_each(|queue| queue.put(|pending| pending.kinds.extend(&changed)));
                }
            }
            Collected::Forbidden(message) => {
                let all = Query::List(&CUSTOM_RESOURCE_DEFINITION);
                for queue in &queues {
                    queue.put(|pending| drop(pending.forbidden.insert(all.clone(), message.to_owned())));
                }
            }
            Collected::NotServed => {}
        }
        ControlFlow::Continue(())
    })
    .await;
}
