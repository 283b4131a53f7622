//! Repeats recorded requests on the API model.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::difference::differences;
use crate::{
    api::{Request, Target, kinds::resources, store::Store},
    client::JSON,
    recorder::{Exchange, Recorder},
};

const TIME: &str = "2026-01-01T00:00:00Z";

/// The API model, which gets the recorded requests.
pub(super) struct Replay {
    store: Store,
    /// The uids and versions of the real server, and those of the model.
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    pub(super) failed: Vec<String>,
    number: usize,
}

impl Replay {
    pub(super) fn new() -> Replay {
        let mut store = Store::default();
        for resource in resources() {
            if let Some(definition) = &resource.definition {
                let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=installer";
                let body = definition.to_string();
                store.handle(&Request::new(Method::POST, uri, JSON, "", body.as_bytes()), TIME);
            }
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}).to_string();
        store.handle(&Request::new(Method::POST, "/api/v1/namespaces", JSON, "", namespace.as_bytes()), TIME);
        Replay { store, uids: BTreeMap::new(), versions: BTreeMap::new(), failed: Vec::new(), number: 0 }
    }

    pub(super) fn compare(&mut self, exchange: &Exchange) {
        self.number += 1;
        let mut body = exchange.body.clone();
        self.translate(&mut body, "");
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request =
            Request::new(exchange.method.clone(), &exchange.uri, &exchange.content, &exchange.accept, text.as_bytes());
        let answer = self.store.handle(&request, TIME);
        self.learn(&exchange.answer, &answer.body);
        let mut real = exchange.clone();
        // Records name the uids of other objects.
        self.translate(&mut real.answer, "");
        let complaints = differences(&request, &real, &answer);
        if !complaints.is_empty() {
            let (number, method, uri) = (self.number, &exchange.method, &exchange.uri);
            self.failed.push(format!("{number}. {method} {uri}\n     {}", complaints.join("\n     ")));
        }
    }

    /// Replaces uids and versions by those of the model. A text is a version only under the name of versions.
    fn translate(&self, value: &mut Value, name: &str) {
        match value {
            Value::Object(members) => {
                let tests_version = members.get("path").is_some_and(|path| path == "/metadata/resourceVersion");
                for (name, below) in members {
                    let is_version = name == "value" && tests_version;
                    self.translate(below, if is_version { "resourceVersion" } else { name });
                }
            }
            Value::Array(entries) => entries.iter_mut().for_each(|below| self.translate(below, name)),
            Value::String(text) => {
                let version = self.versions.get(text).filter(|_| name == "resourceVersion");
                if let Some(ours) = version.or_else(|| self.uids.get(text)) {
                    *text = ours.clone();
                }
            }
            _ => {}
        }
    }

    fn learn(&mut self, real: &Value, ours: &Value) {
        for (name, known) in [("uid", &mut self.uids), ("resourceVersion", &mut self.versions)] {
            if let (Some(real), Some(ours)) = (real["metadata"][name].as_str(), ours["metadata"][name].as_str()) {
                known.insert(real.to_owned(), ours.to_owned());
            }
        }
    }

    /// Compares the watch events since the first list.
    pub(super) async fn watch(&mut self, recorder: &Recorder, uri: &str) {
        let exchanges = recorder.exchanges().await;
        let list = exchanges.iter().find(|exchange| exchange.uri == uri).unwrap();
        let version = list.answer["metadata"]["resourceVersion"].as_str().unwrap();
        let query = format!("{uri}?watch=true&timeoutSeconds=1&resourceVersion={version}");
        let request = http::Request::get(query).body(kube::client::Body::empty()).unwrap();
        let answer = recorder.real.send(request).await.unwrap().into_body().collect_bytes().await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let told = |kind: &str, object: &Value| {
            format!("{kind} {} {}", object["metadata"]["name"], object["metadata"]["generation"])
        };
        let real: Vec<String> =
            events.map(|event| told(event["type"].as_str().unwrap_or_default(), &event["object"])).collect();
        let from: u64 = self.versions[version].parse().unwrap();
        let plural = Target::of(uri).unwrap().resource.plural.as_str();
        let changes = self.store.history.iter().filter(|change| change.version > from && change.key.plural == plural);
        let model: Vec<String> = changes
            .map(|change| match (&change.before, &change.after) {
                (None, Ok(object)) => told("ADDED", object),
                (Some(_), Ok(object)) => told("MODIFIED", object),
                (_, Err(last)) => told("DELETED", last),
            })
            .collect();
        if real != model {
            self.failed.push(format!("watch {uri}:\n     {}\n   and\n     {}", real.join(", "), model.join(", ")));
        }
    }
}
