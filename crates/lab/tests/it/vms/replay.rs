//! An independent observer: reads only the API, and tells what was true at every revision.
//!
//! Pods and VMs come by watches of their own, but their versions are revisions of one store. Sorted by them, the events are
//! the history of the cluster.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use api::{VirtualMachine, virtual_machine::Phase};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use lab::{launcher, vm::Settings};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::{Lab, node, node_of, status};
use crate::platform::eventually;

#[derive(Debug, Clone)]
pub(super) enum Seen {
    Vm(Box<VirtualMachine>),
    Pod(Box<Pod>),
    PodGone(String),
    VmGone(String),
}

type Reel = Arc<Mutex<Vec<(u64, Seen)>>>;

pub(super) struct Observer {
    reel: Reel,
    _tasks: JoinSet<()>,
}

/// The cluster at one revision.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    pub(super) vms: BTreeMap<String, VirtualMachine>,
    pub(super) pods: BTreeMap<String, Pod>,
}

fn revision<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().unwrap().parse().unwrap()
}

async fn record<K>(api: Api<K>, reel: Reel, is: fn(Box<K>) -> Seen, gone: fn(String) -> Seen)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let seen = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (revision(&object), is(Box::new(object))),
            Ok(Event::Delete(object)) => (revision(&object), gone(object.name_any())),
            _ => continue,
        };
        reel.lock().unwrap().push(seen);
    }
}

impl Observer {
    pub(super) fn start(client: &Client) -> Observer {
        let (reel, mut tasks) = (Reel::default(), JoinSet::new());
        tasks.spawn(record(Api::default_namespaced(client.clone()), reel.clone(), Seen::Vm, Seen::VmGone));
        tasks.spawn(record(Api::default_namespaced(client.clone()), reel.clone(), Seen::Pod, Seen::PodGone));
        Observer { reel, _tasks: tasks }
    }

    /// Waits until everything that happened so far was seen, and returns the history.
    pub(super) async fn history(&self, lab: &Lab) -> Vec<Moment> {
        let vms = lab.vms.list(&Default::default()).await.unwrap();
        let pods = lab.pods.list(&Default::default()).await.unwrap();
        let now: Vec<u64> = vms.iter().map(revision).chain(pods.iter().map(revision)).collect();
        let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        let is_seen = async || {
            let moments = moments(&self.reel.lock().unwrap());
            let seen: Vec<u64> = self.reel.lock().unwrap().iter().map(|(revision, _)| *revision).collect();
            let left = moments.last().is_some_and(|moment| moment.pods.keys().eq(names.iter()));
            (now.iter().all(|revision| seen.contains(revision)) && left).then_some(moments)
        };
        eventually(|| "everything is seen".into(), is_seen).await
    }
}

fn moments(reel: &[(u64, Seen)]) -> Vec<Moment> {
    let mut reel = reel.to_vec();
    reel.sort_by_key(|(revision, _)| *revision);
    let mut moment = Moment::default();
    let mut moments = Vec::new();
    for (_, seen) in reel {
        match seen {
            Seen::Vm(vm) => drop(moment.vms.insert(vm.name_any(), *vm)),
            Seen::Pod(pod) => drop(moment.pods.insert(pod.name_any(), *pod)),
            Seen::VmGone(name) => drop(moment.vms.remove(&name)),
            Seen::PodGone(name) => drop(moment.pods.remove(&name)),
        }
        moments.push(moment.clone());
    }
    moments
}

impl Moment {
    pub(super) fn pods_of(&self, vm: &str) -> Vec<&Pod> {
        self.pods.values().filter(|pod| pod.labels().get(launcher::DOMAIN).is_some_and(|of| of == vm)).collect()
    }

    /// The nodes that VMs are being moved away from, one for each.
    pub(super) fn migrations(&self) -> Vec<String> {
        let is_migrating = |vm: &&VirtualMachine| {
            let named = status(vm).pod_name;
            let is_target = |pod: &&Pod| pod.annotations().get(launcher::SOURCE) == named.as_ref();
            status(vm).evacuation_node_name.is_some() && self.pods_of(&vm.name_any()).iter().any(is_target)
        };
        self.vms.values().filter(is_migrating).map(node).collect()
    }

    /// A VM that runs counts as the pod that is named, on the node where that runs.
    fn check_counted(&self) {
        let shall_run = |vm: &&VirtualMachine| vm.spec.running && status(vm).phase == Some(Phase::Running);
        for (name, vm) in self.vms.iter().filter(|(_, vm)| shall_run(vm)) {
            let named = status(vm).pod_name.unwrap();
            let pod = self.pods.get(&named).unwrap_or_else(|| panic!("{name} counts as {named}, which is gone"));
            assert_eq!(node_of(pod), node(vm), "{name} counts where it does not run");
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            assert_eq!(phase, Some("Running"), "{name} counts as {named}, which does not run");
        }
    }

    fn check_limits(&self, settings: &Settings) {
        let migrations = self.migrations();
        assert!(migrations.len() <= settings.migration.cluster as usize, "{migrations:?}");
        for node in &migrations {
            let leaving = migrations.iter().filter(|other| *other == node).count();
            assert!(leaving <= settings.migration.per_node as usize, "{migrations:?}");
        }
    }
}

/// What holds at every revision as long as nobody kills pods: a VM that runs counts as one pod that runs, on that pod's node.
pub(super) fn check_counted(history: &[Moment]) {
    history.iter().for_each(Moment::check_counted);
}

/// What holds at every revision, whatever happens: a VM changes its place in one write; no target is made without a mark;
/// the limits are kept.
pub(super) fn check(history: &[Moment], settings: &Settings) {
    for (before, after) in history.iter().zip(&history[1..]) {
        after.check_limits(settings);
        for (name, vm) in &after.vms {
            let Some(earlier) = before.vms.get(name).filter(|earlier| earlier.uid() == vm.uid()) else { continue };
            let (old, new) = (status(earlier), status(vm));
            let both_ran = [&old, &new].iter().all(|status| status.phase == Some(Phase::Running));
            if both_ran && old.node_name != new.node_name {
                assert_ne!(old.pod_name, new.pod_name, "{name} changed its node, but not its pod");
            }
        }
        for (name, pod) in after.pods.iter().filter(|(name, _)| !before.pods.contains_key(*name)) {
            if pod.annotations().contains_key(launcher::SOURCE) {
                let vm = after.vms.get(&pod.labels()[launcher::DOMAIN]).unwrap();
                assert!(status(vm).evacuation_node_name.is_some(), "target {name} was made without a mark");
            }
        }
    }
}
