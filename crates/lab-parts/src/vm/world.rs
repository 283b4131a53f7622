//! What the controller knows: what the watches brought, and what its own writes were answered with.
//!
//! The answers matter: whoever decides by what a watch has brought so far decides twice about the same thing.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Launcher, Machine};

/// Namespace and name of a VM.
pub(super) type Key = (String, String);

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) vms: BTreeMap<Key, Machine>,
    pods: BTreeMap<Key, BTreeMap<String, Launcher>>,
    /// The VM that each pod plays.
    plays: HashMap<Key, Key>,
    /// Pods that ended while a request about their VM was under way: its answer may be older than their end.
    ended: HashSet<Key>,
    nodes: HashSet<String>,
    gone: HashSet<String>,
}

impl World {
    pub(super) fn put_vm(&mut self, vm: Machine) -> Key {
        let key = (vm.namespace.clone(), vm.name.clone());
        if self.vms.get(&key).is_none_or(|known| known.uid != vm.uid || known.version <= vm.version) {
            self.vms.insert(key.clone(), vm);
        }
        key
    }

    /// What a write was answered with. A VM that is gone by now stays gone.
    pub(super) fn put_answered_vm(&mut self, vm: Machine) {
        if self.vms.get(&(vm.namespace.clone(), vm.name.clone())).is_some_and(|known| known.uid == vm.uid) {
            self.put_vm(vm);
        }
    }

    /// The same for a pod, new or known.
    pub(super) fn put_answered_pod(&mut self, key: &Key, pod: Launcher) {
        if !self.ended.contains(&(key.0.clone(), pod.name.clone())) {
            self.put_pod(&key.0, &key.1, pod);
        }
    }

    /// Takes note that a pod ended while a request about its VM was under way.
    pub(super) fn note_end(&mut self, name: Key) {
        self.ended.insert(name);
    }

    /// No request is under way any more: no answer is to come.
    pub(super) fn forget_ends(&mut self) {
        self.ended.clear();
    }

    pub(super) fn remove_vm(&mut self, key: &Key) {
        self.vms.remove(key);
    }

    /// Returns the VMs that this concerns.
    pub(super) fn put_pod(&mut self, namespace: &str, vm: &str, pod: Launcher) -> Vec<Key> {
        let (name, key) = ((namespace.to_owned(), pod.name.clone()), (namespace.to_owned(), vm.to_owned()));
        let mut concerned = vec![key.clone()];
        if self.plays.get(&name).is_some_and(|before| *before != key) {
            concerned.extend(self.remove_pod(&name));
        }
        self.plays.insert(name, key.clone());
        let pods = self.pods.entry(key).or_default();
        if pods.get(&pod.name).is_none_or(|known| known.uid != pod.uid || known.version <= pod.version) {
            pods.insert(pod.name.clone(), pod);
        }
        concerned
    }

    pub(super) fn remove_pod(&mut self, name: &Key) -> Option<Key> {
        let key = self.plays.remove(name)?;
        let pods = self.pods.get_mut(&key)?;
        pods.remove(&name.1);
        if pods.is_empty() {
            self.pods.remove(&key);
        }
        Some(key)
    }

    /// Takes note that a pod was deleted, and that nothing holds it: its end will come by the watch.
    pub(super) fn let_go(&mut self, key: &Key, pod: &str, uid: &str) {
        let known = self.pods.get_mut(key).and_then(|pods| pods.get_mut(pod));
        if let Some(pod) = known.filter(|pod| pod.uid == uid) {
            (pod.is_deleted, pod.is_protected, pod.version) = (true, false, u64::MAX);
        }
    }

    pub(super) fn pods(&self, key: &Key) -> impl Iterator<Item = &Launcher> {
        self.pods.get(key).into_iter().flat_map(BTreeMap::values)
    }

    /// Everybody of whom anything is known.
    pub(super) fn everybody(&self) -> impl Iterator<Item = &Key> {
        self.vms.keys().chain(self.pods.keys())
    }

    pub(super) fn put_node(&mut self, node: String) {
        self.gone.remove(&node);
        self.nodes.insert(node);
    }

    /// Returns the VMs that this concerns.
    pub(super) fn remove_node(&mut self, node: &str) -> Vec<Key> {
        self.nodes.remove(node);
        self.gone.insert(node.to_owned());
        let is_there = |pod: &Launcher| pod.node.as_deref() == Some(node);
        self.pods.iter().filter(|(_, pods)| pods.values().any(is_there)).map(|(key, _)| key.clone()).collect()
    }

    /// Takes note, once everything has been listed, of the nodes that pods are on and that are not there. A pod that
    /// starts later may be on a node that the watch has yet to bring.
    pub(super) fn note_missing_nodes(&mut self) {
        let on = self.pods.values().flat_map(BTreeMap::values).filter_map(|pod| pod.node.clone());
        let missing: Vec<String> = on.filter(|node| !self.nodes.contains(node)).collect();
        self.gone.extend(missing);
    }

    pub(super) fn is_gone(&self, node: &str) -> bool {
        self.gone.contains(node)
    }

    /// The node that the VM is being moved away from: it is marked and has a target.
    pub(super) fn migrates_from(&self, key: &Key) -> Option<&str> {
        let status = &self.vms.get(key)?.status;
        let (mark, named) = (status.evacuation_node_name.as_deref()?, status.pod_name.as_deref()?);
        self.pods(key).any(|pod| pod.source() == Some(named)).then_some(mark)
    }
}

#[cfg(test)]
mod tests {
    use kube::core::DynamicObject;
    use serde_json::json;

    use super::*;

    fn vm(uid: &str, version: u64) -> Machine {
        let object = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {"name": "a", "namespace": "default", "uid": uid, "resourceVersion": version.to_string()},
            "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
        });
        Machine::of(&serde_json::from_value::<DynamicObject>(object).unwrap())
    }

    fn pod(name: &str, uid: &str, version: u64) -> Launcher {
        let object = json!({"metadata": {
            "name": name, "namespace": "default", "uid": uid, "resourceVersion": version.to_string(),
        }});
        Launcher::of(&serde_json::from_value(object).unwrap())
    }

    fn names(world: &World, key: &Key) -> Vec<(String, u64)> {
        world.pods(key).map(|pod| (pod.uid.clone(), pod.version)).collect()
    }

    #[test]
    fn old_news_changes_nothing_and_a_new_object_of_the_same_name_does() {
        let mut world = World::default();
        let key = world.put_vm(vm("first", 5));
        world.put_vm(vm("first", 4));
        assert_eq!(world.vms[&key].version, 5);
        world.put_pod("default", "a", pod("p", "first", 5));
        world.put_pod("default", "a", pod("p", "first", 4));
        assert_eq!(names(&world, &key), [("first".to_owned(), 5)]);
        world.let_go(&key, "p", "first");
        world.put_pod("default", "a", pod("p", "second", 6));
        world.let_go(&key, "p", "first");
        assert_eq!(names(&world, &key), [("second".to_owned(), 6)]);
    }

    #[test]
    fn an_answer_that_comes_after_the_end_of_its_object_does_not_bring_it_back() {
        let mut world = World::default();
        let key = world.put_vm(vm("first", 1));
        world.remove_vm(&key);
        world.put_answered_vm(vm("first", 2));
        assert!(world.vms.is_empty());
        world.put_vm(vm("second", 3));
        world.put_answered_vm(vm("first", 2));
        assert_eq!(world.vms[&key].uid, "second");

        world.put_pod("default", "a", pod("p", "p", 4));
        let name = ("default".to_owned(), "p".to_owned());
        assert_eq!(world.remove_pod(&name), Some(key.clone()));
        world.note_end(name);
        world.put_answered_pod(&key, pod("p", "p", 4));
        assert_eq!(names(&world, &key), []);
        world.forget_ends();
        world.put_answered_pod(&key, pod("q", "q", 5));
        assert_eq!(names(&world, &key).len(), 1);
    }
}
