//! What the proxy has seen: the operator's requests in order, what it sent to targets, and what objects looked like earlier.

use std::collections::{HashMap, HashSet};

use http::{Method, StatusCode, Uri};
use hyper::body::Bytes;
use serde_json::Value;
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

/// Tells when a request has arrived, and waits until it may go on.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) arrived: oneshot::Sender<()>,
    pub(crate) released: oneshot::Receiver<()>,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    counts: HashMap<String, usize>,
    /// Everything but watches and events.
    pub(crate) requests: Vec<Key>,
    /// Where the operator reads.
    pub(crate) reads: Vec<String>,
    /// What the operator wanted to write to other people's objects, without the version it was for.
    pub(crate) writes: Vec<(String, String)>,
    /// What the operator did not wait for.
    pub(crate) abandoned: Vec<Key>,
    planned: Option<Planned>,
    pub(crate) hit: bool,
    /// What was read since everything became old, if it did.
    traveled: Option<HashSet<String>>,
    held: Option<(String, Hold)>,
    history: HashMap<String, Vec<Answer>>,
}

impl Record {
    /// What to do to which request.
    pub(crate) fn plan(&mut self, key: Key, fault: Fault) {
        self.planned = Some(Planned { key, fault, left: fault.times() });
    }

    /// Holds the next request of a kind. Returns what tells of its arrival, and what lets it go.
    pub(crate) fn hold(&mut self, label: &str) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let (arrived, arrival) = oneshot::channel();
        let (release, released) = oneshot::channel();
        self.held = Some((label.to_owned(), Hold { arrived, released }));
        (arrival, release)
    }

    pub(crate) fn held(&mut self, label: &str) -> Option<Hold> {
        self.held.take_if(|(held, _)| held == label).map(|(_, hold)| hold)
    }

    pub(crate) fn count(&self, label: &str) -> usize {
        self.counts.get(label).copied().unwrap_or_default()
    }

    /// Takes down a request. What is to happen to it, if anything.
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

    /// The newest answer that was given before things became what they are.
    pub(crate) fn older(&mut self, uri: &Uri, now: &Answer) -> Option<Answer> {
        let known = self.history.get(&uri.to_string())?;
        let older = known.iter().rev().find(|answer| *answer != now).cloned();
        self.hit |= older.is_some();
        older
    }
}
