//! The objects of a kind that a stand-in knows: from its watch, and from the answers to its own writes.
//!
//! The answers are needed: a decision based on the watch alone would repeat a write whose event has not arrived yet.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map::Values},
};

use advisor::Kind;
use api::resource_version;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    ResourceExt,
    core::{ApiResource, GroupVersionKind},
};
use kube_io::{Change, ObjectKey};

/// The resource of a kind, in the version that is asked for first.
pub(crate) fn resource_of(kind: &Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group, kind.first_version(), kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

/// The newest known version of each object of a kind.
#[derive(Debug)]
pub(crate) struct Objects<K> {
    by_key: BTreeMap<ObjectKey, K>,
    is_synced: bool,
}

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Objects { by_key: BTreeMap::new(), is_synced: false }
    }
}

impl<K: ResourceExt> Objects<K> {
    /// A cluster-scoped object.
    pub(crate) fn get(&self, name: &str) -> Option<&K> {
        self.find("", name)
    }

    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<&K> {
        self.by_key.get(&ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    pub(crate) fn iter(&self) -> Values<'_, ObjectKey, K> {
        self.by_key.values()
    }

    /// Keeps an object, unless a newer version of it is known.
    pub(crate) fn put(&mut self, object: K) {
        let key = ObjectKey::of(&object);
        if self.by_key.get(&key).is_none_or(|known| !is_newer(known, &object)) {
            self.by_key.insert(key, object);
        }
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.by_key.remove(key);
    }

    /// It is being deleted, as far as is known.
    pub(crate) fn mark_deleted(&mut self, key: &ObjectKey, now: Timestamp) {
        if let Some(object) = self.by_key.get_mut(key) {
            object.meta_mut().deletion_timestamp = Some(Time(now));
        }
    }

    /// The known version of every object.
    pub(crate) fn versions(&self) -> BTreeMap<ObjectKey, String> {
        self.by_key.iter().map(|(key, object)| (key.clone(), object.resource_version().unwrap_or_default())).collect()
    }

    /// Whether all objects were listed.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced
    }

    pub(crate) fn apply(&mut self, change: Change<K>) {
        match change {
            Change::Applied(object) => self.put(*object),
            Change::Deleted(key) => self.remove(&key),
            Change::Synced => self.is_synced = true,
        }
    }
}

fn is_newer<K: ResourceExt>(known: &K, other: &K) -> bool {
    let version = |object: &K| object.resource_version().unwrap_or_default();
    resource_version::compare(&version(known), &version(other)) == Some(Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    use super::*;

    fn version(name: &str, version: u64) -> Node {
        serde_json::from_value(json!({"metadata": {"name": name, "resourceVersion": version.to_string()}})).unwrap()
    }

    fn applied(name: &str, number: u64) -> Change<Node> {
        Change::Applied(Box::new(version(name, number)))
    }

    fn expect(nodes: &Objects<Node>, expected: &[(&str, u64)]) {
        let found = nodes.iter().map(|node| (node.name_any(), node.resource_version().unwrap()));
        let expected: Vec<_> =
            expected.iter().map(|(name, version)| ((*name).to_owned(), version.to_string())).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_older_event_does_not_replace_the_answer_to_a_write() {
        let mut nodes = Objects::default();
        nodes.apply(applied("a", 5));
        nodes.put(version("a", 7));
        nodes.apply(applied("a", 6));
        expect(&nodes, &[("a", 7)]);
        nodes.apply(applied("a", 8));
        expect(&nodes, &[("a", 8)]);
        nodes.apply(Change::Deleted(ObjectKey::of(&version("a", 9))));
        expect(&nodes, &[]);
    }
}
