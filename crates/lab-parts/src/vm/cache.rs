//! What the controller knows: what the watches delivered, and the responses to its own requests.
//!
//! Without the responses, the controller would decide on a state from before its own request, and repeat the request.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap, HashSet},
};

use api::resource_version;

use kube_io::ObjectKey;

use super::{LauncherPod, Vm};

#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) vms: BTreeMap<ObjectKey, Vm>,
    pods: BTreeMap<ObjectKey, BTreeMap<String, LauncherPod>>,
    /// The VM that each pod runs.
    vm_of_pod: HashMap<ObjectKey, ObjectKey>,
    /// Pods that were deleted while a request was in flight: its response may be older than the deletion.
    deleted_pods: HashSet<ObjectKey>,
    nodes: HashSet<String>,
    gone_nodes: HashSet<String>,
}

impl Cache {
    pub(super) fn put_vm(&mut self, vm: Vm) -> ObjectKey {
        let key = vm.key();
        if self.vms.get(&key).is_none_or(|known| known.uid != vm.uid || !is_older(&vm.version, &known.version)) {
            self.vms.insert(key.clone(), vm);
        }
        key
    }

    /// Takes a response. A VM that was deleted meanwhile stays deleted.
    pub(super) fn put_vm_response(&mut self, vm: Vm) {
        if self.vms.get(&vm.key()).is_some_and(|known| known.uid == vm.uid) {
            self.put_vm(vm);
        }
    }

    /// Takes a response. A pod that was deleted meanwhile stays deleted.
    pub(super) fn put_pod_response(&mut self, key: &ObjectKey, pod: LauncherPod) {
        let pod_key = ObjectKey { namespace: key.namespace.clone(), name: pod.name.clone() };
        if !self.deleted_pods.contains(&pod_key) {
            self.put_pod(key.clone(), pod);
        }
    }

    /// Remembers that a pod was deleted while a request was in flight.
    pub(super) fn note_deleted_pod(&mut self, name: ObjectKey) {
        self.deleted_pods.insert(name);
    }

    /// No request is in flight, so no response can bring a deleted pod back.
    pub(super) fn forget_deleted_pods(&mut self) {
        self.deleted_pods.clear();
    }

    pub(super) fn remove_vm(&mut self, key: &ObjectKey) {
        self.vms.remove(key);
    }

    /// Returns the affected VMs.
    pub(super) fn put_pod(&mut self, key: ObjectKey, pod: LauncherPod) -> Vec<ObjectKey> {
        let name = ObjectKey { namespace: key.namespace.clone(), name: pod.name.clone() };
        let mut affected = vec![key.clone()];
        if self.vm_of_pod.get(&name).is_some_and(|before| *before != key) {
            affected.extend(self.remove_pod(&name));
        }
        self.vm_of_pod.insert(name, key.clone());
        let pods = self.pods.entry(key).or_default();
        if pods.get(&pod.name).is_none_or(|known| known.uid != pod.uid || !is_older(&pod.version, &known.version)) {
            pods.insert(pod.name.clone(), pod);
        }
        affected
    }

    pub(super) fn remove_pod(&mut self, name: &ObjectKey) -> Option<ObjectKey> {
        let key = self.vm_of_pod.remove(name)?;
        let pods = self.pods.get_mut(&key)?;
        pods.remove(&name.name);
        if pods.is_empty() {
            self.pods.remove(&key);
        }
        Some(key)
    }

    /// The pod was deleted and has no finalizer of ours. The watch will deliver the deletion.
    pub(super) fn mark_removed(&mut self, key: &ObjectKey, pod: &str, uid: &str) {
        let known = self.pods.get_mut(key).and_then(|pods| pods.get_mut(pod));
        if let Some(pod) = known.filter(|pod| pod.uid == uid) {
            (pod.is_deleted, pod.is_protected, pod.version) = (true, false, u64::MAX.to_string());
        }
    }

    pub(super) fn pods(&self, key: &ObjectKey) -> impl Iterator<Item = &LauncherPod> {
        self.pods.get(key).into_iter().flat_map(BTreeMap::values)
    }

    /// Every VM that exists or has a pod.
    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.vms.keys().chain(self.pods.keys())
    }

    pub(super) fn put_node(&mut self, node: String) {
        self.gone_nodes.remove(&node);
        self.nodes.insert(node);
    }

    /// Returns the affected VMs.
    pub(super) fn remove_node(&mut self, node: &str) -> Vec<ObjectKey> {
        self.nodes.remove(node);
        self.gone_nodes.insert(node.to_owned());
        let is_there = |pod: &LauncherPod| pod.node.as_deref() == Some(node);
        self.pods.iter().filter(|(_, pods)| pods.values().any(is_there)).map(|(key, _)| key.clone()).collect()
    }

    /// Finds the nodes that pods run on and that do not exist. Only valid once everything has been listed: later, a pod
    /// may be on a node that the watch has not delivered yet.
    pub(super) fn note_missing_nodes(&mut self) {
        let on = self.pods.values().flat_map(BTreeMap::values).filter_map(|pod| pod.node.clone());
        let missing: Vec<String> = on.filter(|node| !self.nodes.contains(node)).collect();
        self.gone_nodes.extend(missing);
    }

    pub(super) fn is_gone(&self, node: &str) -> bool {
        self.gone_nodes.contains(node)
    }

    /// The node that the VM migrates away from: an eviction is requested, and the migration has a target.
    pub(super) fn migrates_from(&self, key: &ObjectKey) -> Option<&str> {
        let status = &self.vms.get(key)?.status;
        let (evacuated, named) = (status.evacuation_node_name.as_deref()?, status.pod_name.as_deref()?);
        self.pods(key).any(|pod| pod.source() == Some(named)).then_some(evacuated)
    }
}

fn is_older(version: &str, known: &str) -> bool {
    resource_version::compare(version, known) == Some(Ordering::Less)
}

#[cfg(test)]
mod tests {
    use kube::core::DynamicObject;
    use serde_json::json;

    use super::*;

    fn vm(uid: &str, version: u64) -> Vm {
        let object = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {"name": "a", "namespace": "default", "uid": uid, "resourceVersion": version.to_string()},
            "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
        });
        Vm::of(&serde_json::from_value::<DynamicObject>(object).unwrap())
    }

    fn pod(name: &str, uid: &str, version: u64) -> LauncherPod {
        let object = json!({"metadata": {
            "name": name, "namespace": "default", "uid": uid, "resourceVersion": version.to_string(),
        }});
        LauncherPod::of(&serde_json::from_value(object).unwrap())
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: "default".to_owned(), name: name.to_owned() }
    }

    fn names(cache: &Cache, key: &ObjectKey) -> Vec<(String, String)> {
        cache.pods(key).map(|pod| (pod.uid.clone(), pod.version.clone())).collect()
    }

    #[test]
    fn an_older_version_changes_nothing_and_a_new_object_of_the_same_name_does() {
        let mut cache = Cache::default();
        let key = cache.put_vm(vm("first", 5));
        cache.put_vm(vm("first", 4));
        assert_eq!(cache.vms[&key].version, "5");
        cache.put_pod(self::key("a"), pod("p", "first", 5));
        cache.put_pod(self::key("a"), pod("p", "first", 4));
        assert_eq!(names(&cache, &key), [("first".to_owned(), "5".to_owned())]);
        cache.mark_removed(&key, "p", "first");
        cache.put_pod(self::key("a"), pod("p", "second", 6));
        cache.mark_removed(&key, "p", "first");
        assert_eq!(names(&cache, &key), [("second".to_owned(), "6".to_owned())]);
    }

    #[test]
    fn a_response_that_comes_after_the_deletion_of_its_object_does_not_bring_it_back() {
        let mut cache = Cache::default();
        let key = cache.put_vm(vm("first", 1));
        cache.remove_vm(&key);
        cache.put_vm_response(vm("first", 2));
        assert!(cache.vms.is_empty());
        cache.put_vm(vm("second", 3));
        cache.put_vm_response(vm("first", 2));
        assert_eq!(cache.vms[&key].uid, "second");

        cache.put_pod(self::key("a"), pod("p", "p", 4));
        let name = self::key("p");
        assert_eq!(cache.remove_pod(&name), Some(key.clone()));
        cache.note_deleted_pod(name);
        cache.put_pod_response(&key, pod("p", "p", 4));
        assert_eq!(names(&cache, &key), []);
        cache.forget_deleted_pods();
        cache.put_pod_response(&key, pod("q", "q", 5));
        assert_eq!(names(&cache, &key).len(), 1);
    }
}
