//! What the proxy records: the requests of the operator, its writes to targets, and earlier answers.

use std::collections::{HashMap, HashSet};

use http::{Method, StatusCode, Uri};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::fault::{Fault, Key};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) body: Bytes,
}

#[derive(Debug)]
struct Planned {
    key: Key,
    fault: Fault,
    left: usize,
}

/// Signals the arrival of a request, and waits for its release.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) arrived: oneshot::Sender<()>,
    pub(crate) released: oneshot::Receiver<()>,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    counts: HashMap<String, usize>,
    /// All requests except watches and events.
    pub(crate) requests: Vec<Key>,
    /// The URIs that the operator reads.
    pub(crate) reads: Vec<String>,
    /// The writes to targets, without their preconditions.
    pub(crate) writes: Vec<(String, String)>,
    /// Requests that the operator gave up.
    pub(crate) abandoned: Vec<Key>,
    /// Requests that were answered with 403.
    pub(crate) forbidden: Vec<String>,
    planned: Option<Planned>,
    pub(crate) hit: bool,
    /// What was read since reads became stale, if they did.
    traveled: Option<HashSet<String>>,
    held: Option<(String, Hold)>,
    /// What was listed since all watches expired, if they did.
    listed: Option<HashSet<String>>,
    /// Watches that were refused as expired.
    pub(crate) refused: Vec<String>,
    history: HashMap<String, Vec<Answer>>,
}

impl Record {
    /// Plans a fault of a request.
    pub(crate) fn plan(&mut self, key: Key, fault: Fault) {
        self.planned = Some(Planned { key, fault, left: fault.times() });
    }

    /// Holds the next request with this label. Returns the signal of its arrival, and its release.
    pub(crate) fn hold(&mut self, label: &str) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let (arrived, arrival) = oneshot::channel();
        let (release, released) = oneshot::channel();
        self.held = Some((label.to_owned(), Hold { arrived, released }));
        (arrival, release)
    }

    pub(crate) fn held(&mut self, label: &str) -> Option<Hold> {
        self.held.take_if(|(held, _)| held == label).map(|(_, hold)| hold)
    }

    pub(crate) fn expire(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// Whether a request is a watch that cannot be resumed. A list makes the next one possible.
    pub(crate) fn is_expired(&mut self, uri: &Uri) -> bool {
        let Some(listed) = &mut self.listed else { return false };
        let query = uri.query().unwrap_or_default();
        let selector = query.split('&').find(|part| part.starts_with("fieldSelector")).unwrap_or_default();
        let place = format!("{}?{selector}", uri.path());
        if query.contains("watch=") {
            let refused = !listed.contains(&place);
            self.refused.extend(refused.then_some(place));
            return refused;
        }
        listed.insert(place);
        false
    }

    pub(crate) fn count(&self, label: &str) -> usize {
        self.counts.get(label).copied().unwrap_or_default()
    }

    /// Records a request. Returns its key and its fault.
    pub(crate) fn note(&mut self, label: String, method: &Method, uri: &Uri, body: &[u8]) -> (Key, Option<Fault>) {
        let count = self.counts.entry(label.clone()).or_default();
        *count += 1;
        let key = Key { label, occurrence: *count };
        self.requests.push(key.clone());
        if method == Method::GET {
            if !self.reads.contains(&uri.to_string()) {
                self.reads.push(uri.to_string());
            }
        } else if !key.label.contains("(dry run)") && !uri.path().contains("advisor.kubevirt.io") {
            let mut content: Value = serde_json::from_slice(body).unwrap_or_default();
            for place in ["metadata", "preconditions"] {
                for field in ["uid", "resourceVersion"] {
                    content.pointer_mut(&format!("/{place}/{field}")).map(Value::take);
                }
            }
            content.as_array_mut().into_iter().flatten().for_each(without_precondition);
            self.writes.push((key.label.clone(), content.to_string()));
        }
        let fault = self.fault(&key, method, uri);
        (key, fault)
    }

    fn fault(&mut self, key: &Key, method: &Method, uri: &Uri) -> Option<Fault> {
        if let Some(read) = &mut self.traveled
            && method == Method::GET
            && read.insert(uri.to_string())
        {
            return Some(Fault::Stale);
        }
        let planned = self.planned.as_mut()?;
        if planned.key.label != key.label || planned.key.occurrence > key.occurrence || planned.left == 0 {
            return None;
        }
        planned.left -= 1;
        match planned.fault {
            Fault::Stale => {}
            Fault::TimeTravel => (self.hit, self.traveled) = (true, Some(HashSet::new())),
            _ => self.hit = true,
        }
        Some(planned.fault)
    }

    pub(crate) fn remember(&mut self, uri: &Uri, answer: &Answer) {
        let known = self.history.entry(uri.to_string()).or_default();
        if known.last() != Some(answer) {
            known.push(answer.clone());
        }
    }

    /// The newest answer that differs from the current one.
    pub(crate) fn older(&mut self, uri: &Uri, now: &Answer) -> Option<Answer> {
        let known = self.history.get(&uri.to_string())?;
        let older = known.iter().rev().find(|answer| *answer != now).cloned();
        self.hit |= older.is_some();
        older
    }
}

/// The answer to a watch from a version that has expired.
pub(crate) fn gone() -> Answer {
    let status = json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": 410,
        "reason": "Expired",
        "message": "too old resource version",
    });
    Answer { code: StatusCode::GONE, body: status.to_string().into() }
}

/// Masks what an operation of a JSON patch says about the version of the object: its identity, and the position of a field manager.
fn without_precondition(operation: &mut Value) {
    if operation["op"] == "test" {
        operation["value"].take();
    }
    if operation["path"].as_str().is_some_and(|path| path.starts_with("/metadata/managedFields/")) {
        operation["path"] = "/metadata/managedFields".into();
    }
}
