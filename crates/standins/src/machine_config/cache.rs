//! The objects that the stand-in knows: from its watches, and from the answers to its own writes.
//!
//! The answers are needed: a decision based on the watches alone would repeat a write whose event has not arrived yet.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map::Values},
};

use api::resource_version;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube_io::Change;

use super::{MachineConfig, MachineConfigPool, request::Object};

/// A change that one of the watches reports.
#[derive(Debug)]
pub(super) enum Input {
    Config(Change<MachineConfig>),
    Pool(Change<MachineConfigPool>),
    Node(Change<Node>),
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) configs: Objects<MachineConfig>,
    pub(super) pools: Objects<MachineConfigPool>,
    pub(super) nodes: Objects<Node>,
}

impl Cache {
    pub(super) fn apply(&mut self, input: Input) {
        match input {
            Input::Config(change) => self.configs.apply(change),
            Input::Pool(change) => self.pools.apply(change),
            Input::Node(change) => self.nodes.apply(change),
        }
    }

    /// Whether every kind was listed.
    pub(super) fn is_synced(&self) -> bool {
        self.configs.is_synced && self.pools.is_synced && self.nodes.is_synced
    }

    pub(super) fn has(&self, object: &Object) -> bool {
        match object {
            Object::Config(name) => self.configs.get(name).is_some(),
            Object::Pool(name) => self.pools.get(name).is_some(),
            Object::Node(name) => self.nodes.get(name).is_some(),
        }
    }
}

/// The newest known version of each object of a kind.
#[derive(Debug)]
pub(super) struct Objects<K> {
    by_name: BTreeMap<String, K>,
    is_synced: bool,
}

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Objects { by_name: BTreeMap::new(), is_synced: false }
    }
}

impl<K: ResourceExt> Objects<K> {
    pub(super) fn get(&self, name: &str) -> Option<&K> {
        self.by_name.get(name)
    }

    pub(super) fn iter(&self) -> Values<'_, String, K> {
        self.by_name.values()
    }

    /// Keeps an object, unless a newer version of it is known.
    pub(super) fn put(&mut self, object: K) {
        let name = object.name_any();
        if self.by_name.get(&name).is_none_or(|known| !is_newer(known, &object)) {
            self.by_name.insert(name, object);
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    fn apply(&mut self, change: Change<K>) {
        match change {
            Change::Applied(object) => self.put(*object),
            Change::Deleted(key) => self.remove(&key.name),
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
    use kube_io::ObjectKey;

    use super::*;
    use crate::machine_config::test_objects::node;

    fn version(name: &str, version: u64) -> Node {
        let mut node = node(name, &[]);
        node.metadata.resource_version = Some(version.to_string());
        node
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

    #[test]
    fn the_cache_is_synced_when_every_kind_was_listed() {
        let mut cache = Cache::default();
        let inputs = [Input::Node(applied("a", 3)), Input::Node(Change::Synced), Input::Pool(Change::Synced)];
        for input in inputs {
            cache.apply(input);
            assert!(!cache.is_synced());
        }
        cache.apply(Input::Config(Change::Synced));
        assert!(cache.is_synced());
        expect(&cache.nodes, &[("a", 3)]);
    }
}
