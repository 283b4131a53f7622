//! The watches on what plans depend on: one per named object, metadata only, as long as a plan needs it.
//!
//! A watch waits while its kind is not served and starts when the definition appears; nothing has to be restarted. What it
//! sees goes to the stewards that asked, who compare it with what they know.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use advisor::{Kind, ObjectRef, Query, kind::CUSTOM_RESOURCE_DEFINITION};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Resource, ResourceExt,
    core::{DynamicObject, PartialObjectMeta},
    discovery::ApiResource,
    runtime::watcher::{self, Event},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    Surroundings,
    inbox::{Inbox, Mark, Sighting},
    persistent::{Heard, Persistent},
};

/// The definitions there are, by name, with their versions.
type Definitions = BTreeMap<String, String>;

pub(crate) struct Watches {
    client: Client,
    definitions: watch::Receiver<Definitions>,
    stewards: Vec<Arc<Inbox>>,
    running: Mutex<BTreeMap<Query, Running>>,
    surroundings: Surroundings,
}

struct Running {
    audience: Arc<Audience>,
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
        stewards: Vec<Arc<Inbox>>,
        surroundings: Surroundings,
    ) -> Self {
        Watches { client, definitions, stewards, running: Mutex::default(), surroundings }
    }

    /// Makes the watches of one steward those on these queries and no others.
    pub(crate) fn attend(&self, steward: usize, queries: &BTreeSet<Query>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|query, watch| queries.contains(query) || !watch.audience.leave(steward));
        for query in queries {
            let watch = running.entry(query.clone()).or_insert_with(|| self.start(query.clone()));
            watch.audience.join(steward);
        }
    }

    fn start(&self, query: Query) -> Running {
        let (stewards, surroundings) = (self.stewards.clone(), self.surroundings.clone());
        let audience = Arc::new(Audience { query, stewards, surroundings, hall: Mutex::default() });
        let task = tokio::spawn(follow(self.client.clone(), self.definitions.clone(), audience.clone()));
        Running { audience, task }
    }
}

/// Whom to tell what is seen.
struct Audience {
    query: Query,
    stewards: Vec<Arc<Inbox>>,
    surroundings: Surroundings,
    hall: Mutex<Hall>,
}

#[derive(Default)]
struct Hall {
    /// Positions of the stewards that want to know.
    listeners: BTreeSet<usize>,
    /// What was seen last.
    last: Option<Sighting>,
    /// Why nothing more is seen.
    refused: Option<String>,
}

impl Audience {
    fn hall(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever comes later is told what was seen last: it may be newer than what they know.
    fn join(&self, steward: usize) {
        let mut hall = self.hall();
        if !hall.listeners.insert(steward) {
            return;
        }
        if let Some(last) = &hall.last {
            self.tell_one(steward, last);
        }
        if let Some(why) = &hall.refused {
            self.refuse_one(steward, why);
        }
    }

    /// Whether nobody is left.
    fn leave(&self, steward: usize) -> bool {
        let mut hall = self.hall();
        hall.listeners.remove(&steward);
        hall.listeners.is_empty()
    }

    fn tell(&self, sighting: Sighting) {
        let mut hall = self.hall();
        hall.listeners.iter().for_each(|listener| self.tell_one(*listener, &sighting));
        hall.last = Some(sighting);
        hall.refused = None;
    }

    /// The watch is not allowed.
    fn refuse(&self, why: &str) {
        let mut hall = self.hall();
        hall.listeners.iter().for_each(|listener| self.refuse_one(*listener, why));
        hall.refused = Some(why.to_owned());
    }

    fn refuse_one(&self, steward: usize, why: &str) {
        self.stewards[steward].put(|mail| {
            mail.refused.insert(self.query.clone(), why.to_owned());
        });
    }

    fn tell_one(&self, steward: usize, sighting: &Sighting) {
        self.stewards[steward].put(|mail| {
            mail.sightings.insert(self.query.clone(), sighting.clone());
        });
    }
}

/// Watches one query for ever, through the coming and going of its kind.
async fn follow(client: Client, mut definitions: watch::Receiver<Definitions>, audience: Arc<Audience>) {
    let kind = audience.query.kind();
    let definition = ObjectRef::definition(kind).name;
    let version_of = |definitions: &Definitions| definitions.get(&definition).cloned();
    // Kinds that are not custom have no definition and are always served.
    let built_in = !kind.group.contains('.');
    let mut pause = Duration::from_millis(100);
    loop {
        let defined = version_of(&definitions.borrow_and_update());
        if built_in || defined.is_some() {
            for version in kind.versions {
                tokio::select! {
                    biased;
                    () = stream(&client, kind, version, &audience) => {}
                    // The definition went or changed: what is served may be something else now.
                    () = changed(&mut definitions, |now| version_of(now) != defined) => break,
                }
            }
            // Served in no version that we know, or not yet.
            tokio::select! {
                biased;
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(30)),
                () = changed(&mut definitions, |now| version_of(now) != defined) => pause = Duration::from_millis(100),
            }
        } else {
            changed(&mut definitions, |now| version_of(now).is_some()).await;
            pause = Duration::from_millis(100);
        }
    }
}

async fn changed(definitions: &mut watch::Receiver<Definitions>, until: impl Fn(&Definitions) -> bool) {
    if definitions.wait_for(|now| until(now)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// One watch, until it turns out that nothing is served there. Of named objects the metadata tell whether they changed; of
/// lists, which are short, the objects themselves come with the watch.
async fn stream(client: &Client, kind: &'static Kind, version: &'static str, audience: &Audience) {
    let resource = ApiResource {
        group: kind.group.to_owned(),
        version: version.to_owned(),
        api_version: kind.api_version(version),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
    };
    match &audience.query {
        Query::Object(reference) | Query::Evidence(reference) => {
            let config = watcher::Config::default().fields(&format!("metadata.name={}", reference.name));
            let api: Api<PartialObjectMeta<DynamicObject>> = match reference.namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            observe(api, config, audience, mark, |members| {
                members.get(&reference.name).map_or(Sighting::Absent, |mark| Sighting::Object(mark.clone()))
            })
            .await;
        }
        Query::List(_) => {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            observe(
                api,
                watcher::Config::default(),
                audience,
                |object| json!(object),
                |members| Sighting::Members { version, items: members.values().cloned().collect() },
            )
            .await;
        }
    }
}

async fn observe<K, T>(
    api: Api<K>,
    config: watcher::Config,
    audience: &Audience,
    keep: impl Fn(&K) -> T,
    sighting: impl Fn(&BTreeMap<String, T>) -> Sighting,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut members: BTreeMap<String, T> = BTreeMap::new();
    let mut is_complete = false;
    let mut watch = Persistent::new(api, config, audience.surroundings.clone());
    loop {
        match watch.next().await {
            Heard::Event(Event::Init) => {
                is_complete = false;
                members.clear();
            }
            Heard::Event(Event::InitApply(object) | Event::Apply(object)) => {
                members.insert(object.name_any(), keep(&object));
            }
            Heard::Event(Event::Delete(object)) => {
                members.remove(&object.name_any());
            }
            Heard::Event(Event::InitDone) => is_complete = true,
            Heard::NotServed => {
                audience.tell(Sighting::Absent);
                return;
            }
            Heard::Forbidden(why) => {
                audience.refuse(&why);
                continue;
            }
        }
        if is_complete {
            audience.tell(sighting(&members));
        }
    }
}

fn mark(object: &PartialObjectMeta<DynamicObject>) -> Mark {
    Mark {
        uid: object.uid().unwrap_or_default(),
        version: object.resource_version().unwrap_or_default(),
        generation: object.metadata.generation.unwrap_or_default(),
        labels: object.labels().clone(),
    }
}

/// Watches the definitions of custom kinds, metadata only, and tells the stewards which kinds changed.
pub(crate) async fn definitions(
    client: Client,
    known: watch::Sender<Definitions>,
    stewards: Vec<Arc<Inbox>>,
    kinds: Vec<&'static Kind>,
    surroundings: Surroundings,
) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    // Pages keep what is in memory at a time small; clusters have hundreds of definitions.
    let config = watcher::Config::default().page_size(50);
    let mut watch = Persistent::new(api, config, surroundings);
    let by_name: BTreeMap<String, &'static Kind> =
        kinds.into_iter().map(|kind| (ObjectRef::definition(kind).name, kind)).collect();
    let mut now = Definitions::new();
    let mut is_complete = false;
    loop {
        match watch.next().await {
            Heard::Event(Event::Init) => {
                is_complete = false;
                now.clear();
            }
            Heard::Event(Event::InitApply(object) | Event::Apply(object))
                if by_name.contains_key(&object.name_any()) =>
            {
                now.insert(object.name_any(), object.resource_version().unwrap_or_default());
            }
            Heard::Event(Event::Delete(object)) => {
                now.remove(&object.name_any());
            }
            Heard::Event(Event::InitDone) => is_complete = true,
            Heard::Forbidden(why) => {
                let all = Query::List(&CUSTOM_RESOURCE_DEFINITION);
                for steward in &stewards {
                    steward.put(|mail| drop(mail.refused.insert(all.clone(), why.clone())));
                }
            }
            Heard::Event(Event::InitApply(_) | Event::Apply(_)) | Heard::NotServed => {}
        }
        if !is_complete {
            continue;
        }
        let before = known.send_replace(now.clone());
        let is_new = |name: &String| before.get(name) != now.get(name);
        let changed: Vec<&'static Kind> =
            by_name.iter().filter(|(name, _)| is_new(name)).map(|(_, kind)| *kind).collect();
        if !changed.is_empty() {
            for steward in &stewards {
                steward.put(|mail| mail.kinds.extend(&changed));
            }
        }
    }
}
