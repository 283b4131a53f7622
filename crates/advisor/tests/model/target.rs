//! A target in the cluster of the model, with the versions that the preconditions of writes are compared with.

use serde_json::{Value, json};

use crate::{hashed::Hashed, profile::Part};

#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Target {
    pub(crate) part: Part,
    now: Version,
    /// The target before its last change. A stale read returns it.
    before: Option<Version>,
}

/// A target at some time. Versions only count up; their values do not matter.
#[derive(Debug, Clone, Hash, PartialEq)]
struct Version {
    object: Option<Hashed<Value>>,
    uid: u32,
    version: u32,
}

/// The versions and uids of targets when no session remembers others. No object has version 1.
const PAST: u32 = 2;
const PRESENT: u32 = 3;

impl Target {
    pub(crate) fn new(part: Part, object: Option<Value>) -> Self {
        let now = Version { object: object.map(Hashed::new), uid: PRESENT, version: PRESENT };
        Target { part, now, before: None }
    }

    /// The target as it was before its last change.
    pub(crate) fn stale(&self) -> Option<Self> {
        Some(Target { now: self.before.clone()?, ..self.clone() })
    }

    pub(crate) fn forget_previous(&mut self) {
        self.before = None;
    }

    pub(crate) fn renumber_versions(&mut self) {
        let Target { now, before, .. } = self;
        if let Some(before) = before {
            before.uid = if before.uid == now.uid { PRESENT } else { PAST };
            before.version = PAST;
        }
        (now.uid, now.version) = (PRESENT, PRESENT);
    }

    pub(crate) fn object(&self) -> Option<&Value> {
        self.now.object.as_deref()
    }

    pub(crate) fn hashed(&self) -> Option<&Hashed<Value>> {
        self.now.object.as_ref()
    }

    /// The managed fields, as text.
    pub(crate) fn held(&self) -> String {
        self.part.managed(self.object())
    }

    /// The object as the API server returns it.
    pub(crate) fn answered(&self) -> Option<Value> {
        let mut object = self.object()?.clone();
        object["metadata"]["uid"] = json!(self.now.uid.to_string());
        object["metadata"]["resourceVersion"] = json!(self.now.version.to_string());
        Some(object)
    }

    /// Stores an object, with a new version if it differs. Whether it differs.
    pub(crate) fn put(&mut self, object: Option<Value>) -> bool {
        let object = object.map(|mut object| {
            let metadata = object["metadata"].as_object_mut();
            metadata
                .into_iter()
                .for_each(|it| it.retain(|name, _| !["uid", "resourceVersion"].contains(&name.as_str())));
            Hashed::new(object)
        });
        if object == self.now.object {
            return false;
        }
        let is_new = self.now.object.is_none();
        let before = self.now.clone();
        self.now.version += 1;
        self.now.uid = if is_new { self.now.version } else { self.now.uid };
        self.now.object = object;
        self.before = Some(before);
        true
    }
}
