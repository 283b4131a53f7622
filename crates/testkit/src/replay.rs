//! An independent observer: reads only the API, and tells what was true at every revision.
//! Pods and VMs come by watches of their own, but their versions are revisions of one store. Sorted by them, the events are
//! the history of the cluster. What happened before a list is a gap, about which nothing is said.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    ops::Range,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use api::{VirtualMachine, VirtualMachineStatus, virtual_machine::Phase};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
};
use lab_parts::{launcher, vm::VmControllerSettings};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{
        Notify,
        mpsc::{Sender, channel},
    },
    task::JoinSet,
    time::timeout,
};

use crate::eventually;

/// Between lists that an API server does not answer.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub enum Seen {
    Vm(Arc<VirtualMachine>),
    Pod(Arc<Pod>),
    PodGone(String),
    VmGone(String),
}

#[derive(Debug, Clone)]
struct Event {
    revision: u64,
    at: Instant,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Recording {
    events: Vec<Event>,
    /// Between these revisions something may have been missed.
    gaps: Vec<Range<u64>>,
}

/// What was seen, and that it was.
#[derive(Debug, Default)]
struct Recorder {
    recording: Mutex<Recording>,
    grown: Notify,
}

impl Recorder {
    fn note(&self, revision: u64, seen: Seen) {
        self.recording.lock().unwrap().events.push(Event { revision, at: Instant::now(), seen });
        self.grown.notify_one();
    }
}

type Shared = Arc<Recorder>;

pub struct Observer {
    vms: Api<VirtualMachine>,
    pods: Api<Pod>,
    record: Shared,
    _tasks: JoinSet<()>,
}

fn revision(version: Option<&str>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap()
}

fn revision_of<K: Resource>(object: &K) -> u64 {
    revision(object.meta().resource_version.as_deref())
}

/// Lists, watches, and lists again when a watch has ended.
async fn watch<K>(api: Api<K>, record: Shared, is: fn(Arc<K>) -> Seen, gone: fn(String) -> Seen, begun: Sender<()>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let note = |mut object: K| {
        object.managed_fields_mut().clear();
        let revision = revision_of(&object);
        record.note(revision, is(Arc::new(object)));
        revision
    };
    let (mut known, mut last) = (BTreeSet::new(), 0);
    loop {
        let Ok(listed) = api.list(&ListParams::default()).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let now = revision(listed.metadata.resource_version.as_deref());
        let names: BTreeSet<String> = listed.iter().map(ResourceExt::name_any).collect();
        known.difference(&names).for_each(|name: &String| record.note(now, gone(name.clone())));
        record.recording.lock().unwrap().gaps.push(last + 1..now + 1);
        for object in listed {
            note(object);
        }
        (known, last) = (names, now);
        // Only the first time does anybody listen.
        let _ = begun.try_send(());
        let Ok(events) = api.watch(&WatchParams::default(), &now.to_string()).await else { continue };
        let mut events = std::pin::pin!(events);
        while let Some(Ok(event)) = events.next().await {
            last = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    known.insert(object.name_any());
                    note(object)
                }
                WatchEvent::Deleted(object) => {
                    known.remove(&object.name_any());
                    record.note(revision_of(&object), gone(object.name_any()));
                    revision_of(&object)
                }
                WatchEvent::Bookmark(bookmark) => revision(Some(&bookmark.metadata.resource_version)),
                WatchEvent::Error(_) => break,
            };
        }
    }
}

impl Observer {
    /// Sees everything that happens from when it returns.
    pub async fn start(client: &Client) -> Observer {
        let (record, mut tasks) = (Shared::default(), JoinSet::new());
        let (begun, mut begins) = channel(2);
        let (vms, pods) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        tasks.spawn(watch(vms.clone(), record.clone(), Seen::Vm, Seen::VmGone, begun.clone()));
        tasks.spawn(watch(pods.clone(), record.clone(), Seen::Pod, Seen::PodGone, begun));
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        Observer { vms, pods, record, _tasks: tasks }
    }

    /// Waits until the cluster is so, by what is seen.
    pub async fn until(&self, limit: Duration, what: &str, is_so: impl Fn(&Moment) -> bool) -> Moment {
        let (mut moment, mut known) = (Moment::default(), 0);
        let wait = async {
            loop {
                let fresh: Vec<_> = self.record.recording.lock().unwrap().events[known..].to_vec();
                known += fresh.len();
                fresh.into_iter().for_each(|event| moment.put(event.seen));
                if is_so(&moment) {
                    return;
                }
                self.record.grown.notified().await;
            }
        };
        let waited = timeout(limit, wait).await;
        assert!(waited.is_ok(), "did not happen within {} s: {what}", limit.as_secs());
        moment
    }

    /// As far as it was seen.
    pub fn so_far(&self) -> History {
        History::of(&self.record.recording.lock().unwrap())
    }

    /// Waits until everything that happened so far was seen.
    pub async fn history(&self) -> History {
        let vms = self.vms.list(&ListParams::default()).await.unwrap();
        let pods = self.pods.list(&ListParams::default()).await.unwrap();
        let now: BTreeSet<u64> = vms.iter().map(revision_of).chain(pods.iter().map(revision_of)).collect();
        let is_seen = async || {
            let history = self.so_far();
            let seen: BTreeSet<u64> = history.events.iter().map(|event| event.revision).collect();
            let last = history.last();
            let are_all_there = last.vms.len() == vms.items.len() && last.pods.len() == pods.items.len();
            (now.is_subset(&seen) && are_all_there).then_some(history)
        };
        eventually("everything is seen", is_seen).await
    }
}

/// The cluster at one revision.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    pub vms: BTreeMap<String, Arc<VirtualMachine>>,
    pub pods: BTreeMap<String, Arc<Pod>>,
    /// The pods of each VM.
    played: BTreeMap<String, BTreeSet<String>>,
    /// The VMs with an eviction request.
    leaving: BTreeSet<String>,
}

impl Moment {
    fn put(&mut self, seen: Seen) {
        match seen {
            Seen::Vm(vm) => {
                match status(&vm).evacuation_node_name {
                    Some(_) => self.leaving.insert(vm.name_any()),
                    None => self.leaving.remove(&vm.name_any()),
                };
                self.vms.insert(vm.name_any(), vm);
            }
            Seen::Pod(pod) => {
                self.played.entry(vm_of(&pod).to_owned()).or_default().insert(pod.name_any());
                self.pods.insert(pod.name_any(), pod);
            }
            Seen::VmGone(name) => {
                self.vms.remove(&name);
                self.leaving.remove(&name);
            }
            Seen::PodGone(name) => {
                if let Some(pod) = self.pods.remove(&name) {
                    self.played.entry(vm_of(&pod).to_owned()).or_default().remove(&name);
                }
            }
        }
    }

    /// Whether there are so many VMs, each runs as one pod, and nothing is under way.
    pub fn rests(&self, count: usize) -> bool {
        let is_one = |vm: &Arc<VirtualMachine>| {
            let status = status(vm);
            let pod = status.pod_name.and_then(|name| self.pods.get(&name));
            let is_staying = |pod: &Pod| !pod.annotations().contains_key(launcher::EVICTION_IN_PROGRESS);
            status.phase == Some(Phase::Running)
                && pod.is_some_and(|pod| status.node_name == Some(node_of(pod)) && is_staying(pod))
        };
        let as_many = self.vms.len() == count && self.pods.len() == count;
        as_many && self.leaving.is_empty() && self.vms.values().all(is_one)
    }

    /// The nodes that VMs are being moved away from, one for each.
    pub fn migrations(&self) -> Vec<String> {
        let is_migrating = |vm: &&Arc<VirtualMachine>| {
            let named = status(vm).pod_name;
            let pods = self.played.get(&vm.name_any()).into_iter().flatten().filter_map(|pod| self.pods.get(pod));
            pods.into_iter().any(|pod| pod.annotations().get(launcher::SOURCE) == named.as_ref())
        };
        self.leaving.iter().filter_map(|name| self.vms.get(name)).filter(is_migrating).map(|vm| node(vm)).collect()
    }
}

/// One revision, and what it changed.
pub struct Step<'a> {
    pub at: Instant,
    pub seen: &'a Seen,
    /// The VM that it is about, as it was.
    pub vm_before: Option<Arc<VirtualMachine>>,
    is_new_pod: bool,
    vm: String,
    pub now: &'a Moment,
}

impl Step<'_> {
    /// A VM that runs counts as the pod that is named, on the node where that runs.
    fn check_counted(&self) {
        let name = &self.vm;
        let runs = |vm: &&Arc<VirtualMachine>| vm.spec.running && status(vm).phase == Some(Phase::Running);
        let Some(vm) = self.now.vms.get(name).filter(runs) else { return };
        let named = status(vm).pod_name.unwrap();
        let pod = self.now.pods.get(&named).unwrap_or_else(|| panic!("{name} counts as {named}, which is gone"));
        assert_eq!(node_of(pod), node(vm), "{name} counts where it does not run");
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        assert_eq!(phase, Some("Running"), "{name} counts as {named}, which does not run");
    }

    /// A VM that runs goes on running until somebody stops or deletes it.
    fn check_running(&self) {
        let Some(before) = &self.vm_before else { return };
        if before.spec.running
            && before.meta().deletion_timestamp.is_none()
            && status(before).phase == Some(Phase::Running)
        {
            let now = self.now.vms.get(&self.vm).unwrap_or_else(|| panic!("{} vanished", self.vm));
            assert_eq!(status(now).phase, Some(Phase::Running), "{} ran before", self.vm);
        }
    }

    fn check_limits(&self, settings: &VmControllerSettings) {
        let migrations = self.now.migrations();
        assert!(migrations.len() <= settings.migration.cluster as usize, "{migrations:?}");
        for node in &migrations {
            let leaving = migrations.iter().filter(|other| *other == node).count();
            assert!(leaving <= settings.migration.per_node as usize, "{migrations:?}");
        }
    }

    /// A VM changes its place in one write.
    fn check_move(&self) {
        let (Some(before), Some(after)) = (&self.vm_before, self.now.vms.get(&self.vm)) else { return };
        let (old, new) = (status(before), status(after));
        let both_ran = [&old, &new].iter().all(|status| status.phase == Some(Phase::Running));
        if both_ran && before.uid() == after.uid() && old.node_name != new.node_name {
            assert_ne!(old.pod_name, new.pod_name, "{} changed its node, but not its pod", self.vm);
        }
    }

    /// No target is created without an eviction request.
    fn check_cause(&self) {
        if let Seen::Pod(pod) = self.seen
            && self.is_new_pod
            && pod.annotations().contains_key(launcher::SOURCE)
        {
            let is_leaving = self.now.leaving.contains(&self.vm);
            assert!(is_leaving, "target {} was created without an eviction request", pod.name_any());
        }
    }
}

pub struct History {
    events: Vec<Event>,
    gaps: Vec<Range<u64>>,
}

impl History {
    fn of(recording: &Recording) -> History {
        let mut events = recording.events.clone();
        events.sort_by_key(|event| event.revision);
        History { events, gaps: recording.gaps.clone() }
    }

    pub fn last(&self) -> Moment {
        let mut moment = Moment::default();
        self.events.iter().for_each(|event| moment.put(event.seen.clone()));
        moment
    }

    /// Shows every revision of which everything is known.
    pub fn each(&self, mut look: impl FnMut(&Step<'_>)) {
        let mut now = Moment::default();
        for Event { revision, at, seen } in &self.events {
            let vm = match seen {
                Seen::Vm(vm) => vm.name_any(),
                Seen::VmGone(name) => name.clone(),
                Seen::Pod(pod) => vm_of(pod).to_owned(),
                Seen::PodGone(name) => now.pods.get(name).map(|pod| vm_of(pod)).unwrap_or_default().to_owned(),
            };
            let vm_before = now.vms.get(&vm).cloned();
            let is_new_pod = matches!(seen, Seen::Pod(pod) if !now.pods.contains_key(&pod.name_any()));
            now.put(seen.clone());
            if !self.gaps.iter().any(|gap| gap.contains(revision)) {
                look(&Step { at: *at, seen, vm_before, is_new_pod, vm, now: &now });
            }
        }
    }

    /// What holds whatever happens: a VM changes its place in one write, no target is created without an eviction request,
    /// and the limits are kept.
    pub fn check(&self, settings: &VmControllerSettings) {
        self.each(|step| {
            step.check_limits(settings);
            step.check_move();
            step.check_cause();
        });
    }

    /// What holds as long as nobody kills pods: a VM that runs goes on running, and counts as one pod that runs, on that
    /// pod's node.
    pub fn check_counted(&self) {
        self.each(|step| {
            step.check_running();
            step.check_counted();
        });
    }
}

pub fn status(vm: &VirtualMachine) -> VirtualMachineStatus {
    vm.status.clone().unwrap_or_default()
}

pub fn node(vm: &VirtualMachine) -> String {
    status(vm).node_name.unwrap_or_default()
}

pub fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

fn vm_of(pod: &Pod) -> &str {
    pod.labels().get(launcher::DOMAIN).map(String::as_str).unwrap_or_default()
}
