//! The stored objects, in all their versions.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::kinds::Resource;

/// The key of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) plural: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(resource: &'static Resource, namespace: &str, name: &str) -> Key {
        Key { plural: &resource.plural, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.plural, self.name)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the change. If it was deleted: its last state, with the version of the deletion.
    pub(crate) after: Result<Arc<Value>, Arc<Value>>,
    pub(crate) at: Duration,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    pub(crate) version: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    pub(crate) history: Vec<Change>,
    uids: u64,
    /// All changes since the beginning.
    pub(crate) now: Duration,
}

impl Store {
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    pub(crate) fn list<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        self.objects.iter().filter(move |(key, _)| key.plural == plural)
    }

    /// All objects of a kind at a version.
    pub(crate) fn list_at(&self, plural: &str, version: u64) -> BTreeMap<Key, Arc<Value>> {
        let mut objects: BTreeMap<Key, Arc<Value>> =
            self.list(plural).map(|(key, object)| (key.clone(), object.clone())).collect();
        let later = self.history.iter().rev().take_while(|change| change.version > version);
        for change in later.filter(|change| change.key.plural == plural) {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        objects
    }

    pub(crate) fn new_uid(&mut self) -> String {
        self.uids += 1;
        format!("00000000-0000-4000-8000-{:012}", self.uids)
    }

    /// Stores an object with the next version.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), object.clone());
        let (version, at) = (self.version, self.now);
        self.history.push(Change { version, key, before, after: Ok(object.clone()), at });
        object
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        let mut last = (*before).clone();
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let (version, at) = (self.version, self.now);
        let after = Err(Arc::new(last));
        self.history.push(Change { version, key: key.clone(), before: Some(before.clone()), after, at });
        Some(before)
    }
}
