//! What the stand-in knows of the cluster: what the watches brought, and what its own writes were answered with.
//!
//! The answers matter: whoever decides by what a watch has brought so far decides twice about the same thing.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map::Values},
};

use k8s_openapi::api::core::v1::Node;
use kube::{ResourceExt, runtime::watcher::Event};

use super::{MachineConfig, MachineConfigPool, action::Object};

/// News from one of the watches.
#[derive(Debug)]
pub(super) enum News {
    Config(Box<Event<MachineConfig>>),
    Pool(Box<Event<MachineConfigPool>>),
    Node(Box<Event<Node>>),
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) configs: Cache<MachineConfig>,
    pub(super) pools: Cache<MachineConfigPool>,
    pub(super) nodes: Cache<Node>,
}

impl World {
    pub(super) fn hear(&mut self, news: News) {
        match news {
            News::Config(event) => self.configs.hear(*event),
            News::Pool(event) => self.pools.hear(*event),
            News::Node(event) => self.nodes.hear(*event),
        }
    }

    /// Whether everything has been listed once.
    pub(super) fn is_complete(&self) -> bool {
        self.configs.is_complete && self.pools.is_complete && self.nodes.is_complete
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
pub(super) struct Cache<K> {
    objects: BTreeMap<String, K>,
    /// A list that is not complete yet.
    incoming: BTreeMap<String, K>,
    is_complete: bool,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Cache { objects: BTreeMap::new(), incoming: BTreeMap::new(), is_complete: false }
    }
}

impl<K: ResourceExt> Cache<K> {
    pub(super) fn get(&self, name: &str) -> Option<&K> {
        self.objects.get(name)
    }

    pub(super) fn iter(&self) -> Values<'_, String, K> {
        self.objects.values()
    }

    /// Takes the answer to a write.
    pub(super) fn put(&mut self, object: K) {
        let name = object.name_any();
        if self.objects.get(&name).is_none_or(|known| age(known, &object) != Ordering::Greater) {
            self.objects.insert(name, object);
        }
    }

    /// Takes note that a delete was answered.
    pub(super) fn remove(&mut self, name: &str) {
        self.objects.remove(name);
    }

    fn hear(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.incoming.clear(),
            Event::InitApply(object) => {
                self.incoming.insert(object.name_any(), object);
            }
            Event::InitDone => {
                let known = std::mem::replace(&mut self.objects, std::mem::take(&mut self.incoming));
                // What we wrote while the list was on its way is newer than the list.
                for (name, object) in known {
                    if self.objects.contains_key(&name) {
                        self.put(object);
                    }
                }
                self.is_complete = true;
            }
            Event::Apply(object) => self.put(object),
            Event::Delete(object) => {
                let name = object.name_any();
                if self.objects.get(&name).is_some_and(|known| age(known, &object) != Ordering::Greater) {
                    self.objects.remove(&name);
                }
            }
        }
    }
}

/// Resource versions of one kind are ordered numbers. Where they are not, what came last counts as newer.
fn age<K: ResourceExt>(known: &K, other: &K) -> Ordering {
    let version = |object: &K| object.resource_version().and_then(|version| version.parse::<u64>().ok());
    match (version(known), version(other)) {
        (Some(known), Some(other)) => known.cmp(&other),
        _ => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mco::test_objects::node;

    fn version(name: &str, version: u64) -> Node {
        let mut node = node(name, &[]);
        node.metadata.resource_version = Some(version.to_string());
        node
    }

    fn content(cache: &Cache<Node>) -> Vec<(String, String)> {
        cache.iter().map(|node| (node.name_any(), node.resource_version().unwrap())).collect()
    }

    fn expect(cache: &Cache<Node>, expected: &[(&str, u64)]) {
        let expected: Vec<_> =
            expected.iter().map(|(name, version)| ((*name).to_owned(), version.to_string())).collect();
        assert_eq!(content(cache), expected);
    }

    #[test]
    fn an_answer_is_not_undone_by_older_news() {
        let mut cache = Cache::default();
        cache.hear(Event::Apply(version("a", 5)));
        cache.put(version("a", 7));
        cache.hear(Event::Apply(version("a", 6)));
        expect(&cache, &[("a", 7)]);
        cache.hear(Event::Delete(version("a", 6)));
        expect(&cache, &[("a", 7)]);
        cache.hear(Event::Apply(version("a", 8)));
        expect(&cache, &[("a", 8)]);
        cache.hear(Event::Delete(version("a", 9)));
        expect(&cache, &[]);
    }

    #[test]
    fn a_list_replaces_everything_when_it_is_complete_and_not_before() {
        let mut cache = Cache::default();
        cache.hear(Event::Apply(version("gone", 1)));
        cache.hear(Event::Init);
        cache.hear(Event::InitApply(version("half", 2)));
        expect(&cache, &[("gone", 1)]);
        assert!(!cache.is_complete);
        cache.hear(Event::Init);
        cache.hear(Event::InitApply(version("a", 3)));
        cache.hear(Event::InitApply(version("b", 3)));
        cache.put(version("a", 4));
        cache.hear(Event::InitDone);
        assert!(cache.is_complete);
        expect(&cache, &[("a", 4), ("b", 3)]);
    }
}
