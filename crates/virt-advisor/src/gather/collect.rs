//! Reads what belongs into a collection. What cannot be read is told in the index and stops nothing.

use std::collections::BTreeMap;

use advisor::{
    Kind, ObjectRef, access,
    kind::{MACHINE_CONFIG_POOL, PLAN_RECORD},
    object_text,
};
use api::names::{ADVISOR_GROUP, VERSION};
use kube_io::RequestError;
use serde_json::{Value, json};

use super::{
    archive::Files,
    index::{Entry, State},
    layout, mask, plan_text,
    pod_metrics::PodMetrics,
    scope::{self, Wanted},
};
use crate::{reader::Reader, rights};

pub(crate) static CONFIG: Kind = Kind {
    group: ADVISOR_GROUP,
    versions: &[VERSION],
    kind: "VirtPlatformConfig",
    plural: "virtplatformconfigs",
    namespaced: false,
};

/// The namespace of Events about objects that are in none.
const EVENTS_NAMESPACE: &str = "default";

pub(crate) struct Collector<'a> {
    pub(super) reader: &'a Reader,
    pub(super) namespace: &'a str,
    /// Parameters of every log, which say how far back it goes.
    pub(super) since: String,
    pub(super) pod_metrics: Option<PodMetrics>,
    /// The collected Events by namespace.
    events: BTreeMap<String, Vec<Value>>,
    pub(crate) files: Files,
    pub(crate) entries: Vec<Entry>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(reader: &'a Reader, namespace: &'a str, since: String, pod_metrics: Option<PodMetrics>) -> Self {
        let (events, files, entries) = (BTreeMap::new(), Files::new(), Vec::new());
        Collector { reader, namespace, since, pod_metrics, events, files, entries }
    }

    /// Collects everything, and returns the configurations.
    pub(crate) async fn collect(&mut self) -> Vec<Value> {
        let configs = self.kind(&CONFIG, plan_text::of_config).await;
        self.told("configurations");
        self.kind(&PLAN_RECORD, plan_text::of_record).await;
        self.told("records of plans");
        for kind in [&CONFIG, &PLAN_RECORD] {
            self.object(&Wanted::from(&ObjectRef::definition(kind))).await;
        }
        self.told("definitions");
        self.named(&configs).await;
        self.told("objects that plans name");
        self.operator().await;
        self.told("operator");
        self.events(
            EVENTS_NAMESPACE,
            "events about configurations",
            &["involvedObject.kind=VirtPlatformConfig".into()],
        )
        .await;
        self.told("events");
        self.rights().await;
        self.told("rights");
        configs
    }

    /// Says on standard error how far it is.
    fn told(&self, step: &str) {
        let failed = self.entries.iter().filter(|entry| entry.state == State::Unreadable).count();
        let unread = if failed == 0 { String::new() } else { format!(", {failed} could not be read") };
        anstream::eprintln!("{step}: {} files so far{unread}", self.files.len());
    }

    pub(super) fn add(&mut self, what: String, path: String, content: String) {
        self.entries.push(Entry::collected(what, path.clone()));
        self.files.insert(path, content.into_bytes());
    }

    pub(super) fn failed(&mut self, what: String, error: &RequestError) {
        self.entries.push(Entry::failed(what, error));
    }

    pub(super) fn add_object(&mut self, what: String, path: String, object: Value) {
        self.add(what, path, object_text::yaml(Some(&mask::masked(object))));
    }

    /// All objects of one of our own kinds, each with its plan as text.
    async fn kind(&mut self, kind: &'static Kind, plan: fn(&Value) -> String) -> Vec<Value> {
        let path = format!("/apis/{}/{VERSION}/{}", kind.group, kind.plural);
        let objects = match self.reader.list(&path).await {
            Ok(objects) => objects,
            Err(error) => {
                self.failed(kind.plural.to_owned(), &error);
                return Vec::new();
            }
        };
        for object in &objects {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let wanted = Wanted::cluster(kind, name);
            self.add(
                format!("plan of {} {name}", kind.kind),
                format!("{}/plans/{}/{name}.txt", layout::OWN, kind.plural),
                plan(object),
            );
            self.add_object(format!("{} {name}", kind.kind), layout::object(&wanted), object.clone());
        }
        objects
    }

    async fn named(&mut self, configs: &[Value]) {
        let scope = scope::scope(configs);
        for unknown in &scope.unknown {
            self.entries.push(Entry::unreadable(unknown.clone(), "a plan names it, and no profile declares this kind"));
        }
        let mut pools = Vec::new();
        for wanted in &scope.objects {
            let object = self.object(wanted).await;
            pools.extend(object.filter(|_| wanted.kind == &MACHINE_CONFIG_POOL));
        }
        for wanted in scope::rendered(&pools.iter().collect::<Vec<_>>()) {
            self.object(&wanted).await;
        }
    }

    /// One object, in the first version that is served.
    async fn object(&mut self, wanted: &Wanted) -> Option<Value> {
        let namespace = wanted.namespace.as_ref().map_or_else(String::new, |name| format!("{name}/"));
        let what = format!("{} {namespace}{}", wanted.kind.kind, wanted.name);
        let mut failure = None;
        for version in wanted.kind.versions {
            match self.reader.get(&wanted.path(version)).await {
                Ok(object) => {
                    self.add_object(what, layout::object(wanted), object.clone());
                    return Some(object);
                }
                Err(error) => {
                    let is_final = error.class != kube_io::Class::KindMissing;
                    failure = Some(error);
                    if is_final {
                        break;
                    }
                }
            }
        }
        if let Some(error) = failure {
            self.failed(what, &error);
        }
        None
    }

    /// Events that any of the selectors finds, in one file per namespace: more are added to those that are there already.
    pub(super) async fn events(&mut self, namespace: &str, what: &str, selectors: &[String]) {
        let mut found = Vec::new();
        for selector in selectors {
            match self.reader.list(&format!("/api/v1/namespaces/{namespace}/events?fieldSelector={selector}")).await {
                Ok(events) => found.extend(events),
                Err(error) => return self.failed(what.to_owned(), &error),
            }
        }
        let all = self.events.entry(namespace.to_owned()).or_default();
        let is_known = |event: &Value| all.iter().any(|known| known["metadata"]["uid"] == event["metadata"]["uid"]);
        found.retain(|event| !is_known(event));
        all.extend(found);
        let list = json!({"apiVersion": "v1", "kind": "EventList", "items": all});
        self.add(what.to_owned(), layout::events(namespace), object_text::yaml(Some(&list)));
    }

    async fn rights(&mut self) {
        let roles: Vec<_> = access::people().into_iter().last().into_iter().chain(access::operator()).collect();
        let questions = rights::questions(&roles, self.namespace);
        let path = |who: &str| format!("{}/rights/{who}.txt", layout::OWN);
        match rights::of_caller(self.reader, &questions).await {
            Ok(answers) => {
                let table = rights::table("whoever collected this", &questions, &answers);
                self.add("rights of the caller".into(), path("caller"), table);
            }
            Err(error) => self.failed("rights of the caller".into(), &error),
        }
        let roles: Vec<_> = access::operator().into_iter().chain([access::request_reviewer()]).collect();
        let questions = rights::questions(&roles, self.namespace);
        match rights::of_operator(self.reader, self.namespace, &questions).await {
            Ok(answers) => {
                let table = rights::table(&rights::account(self.namespace), &questions, &answers);
                self.add("rights of the operator".into(), path("operator"), table);
            }
            Err(error) => self.failed("rights of the operator".into(), &error),
        }
    }
}
