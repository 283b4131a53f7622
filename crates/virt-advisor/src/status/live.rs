//! What the watches know: configurations, nodes, pools and MachineConfigNodes, each reduced to what is shown.

use std::collections::BTreeMap;

use advisor::{
    Kind,
    blast_radius::{MachinePool, Node, Reading},
    kind::MACHINE_CONFIG_POOL,
    rollout_view::{Cluster, NodeReport},
};
use api::VirtPlatformConfig;
use kube::api::DynamicObject;
use kube_io::{Change, Class, WatchEvent};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    configs,
    gather::collect::CONFIG,
    reader::{Reader, why},
    unreadable::Unreadable,
    watching::watch,
};

static NODE: Kind = Kind { group: "", versions: &["v1"], kind: "Node", plural: "nodes", namespaced: false };
static MACHINE_CONFIG_NODE: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfigNode",
    plural: "machineconfignodes",
    namespaced: false,
};

#[derive(Debug, Clone, Copy)]
pub(super) enum Watched {
    Configs,
    Nodes,
    Pools,
    Reports,
}

impl Watched {
    const ALL: [Watched; 4] = [Watched::Configs, Watched::Nodes, Watched::Pools, Watched::Reports];

    fn kind(self) -> &'static Kind {
        match self {
            Watched::Configs => &CONFIG,
            Watched::Nodes => &NODE,
            Watched::Pools => &MACHINE_CONFIG_POOL,
            Watched::Reports => &MACHINE_CONFIG_NODE,
        }
    }
}

pub(super) type Observation = (Watched, WatchEvent<DynamicObject>);

/// Starts all watches. They end when the set is dropped.
pub(super) fn start(reader: &Reader, profile: Option<&str>) -> (JoinSet<()>, mpsc::Receiver<Observation>) {
    let (sender, observations) = mpsc::channel(1024);
    let mut tasks = JoinSet::new();
    for watched in Watched::ALL {
        let name = profile.filter(|_| matches!(watched, Watched::Configs));
        let mut watch = watch(reader, watched.kind(), name);
        let sender = sender.clone();
        tasks.spawn(async move { while sender.send((watched, watch.next().await)).await.is_ok() {} });
    }
    (tasks, observations)
}

/// The objects of a kind, and whether they are all of them.
#[derive(Debug)]
struct Kept<T> {
    objects: BTreeMap<String, T>,
    /// None until the first list is complete, or is known to be impossible.
    state: Option<Reading<()>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept { objects: BTreeMap::new(), state: None }
    }
}

impl<T: Clone> Kept<T> {
    fn apply(&mut self, event: WatchEvent<DynamicObject>, of: impl Fn(&Value) -> Option<T>) {
        match event {
            WatchEvent::Change(Change::Applied(object)) => {
                let name = object.metadata.name.clone().unwrap_or_default();
                match serde_json::to_value(*object).ok().as_ref().and_then(of) {
                    Some(object) => drop(self.objects.insert(name, object)),
                    None => drop(self.objects.remove(&name)),
                }
            }
            WatchEvent::Change(Change::Deleted(key)) => drop(self.objects.remove(&key.name)),
            WatchEvent::Change(Change::Synced) => self.state = Some(Reading::Read(())),
            WatchEvent::NotServed => {
                self.objects.clear();
                self.state = Some(Reading::NotServed);
            }
            WatchEvent::Forbidden(_) => self.state = Some(Reading::Unreadable(why(&Class::Forbidden).into())),
        }
    }

    fn reading(&self) -> Reading<Vec<T>> {
        match &self.state {
            Some(Reading::Unreadable(why)) => Reading::Unreadable(why.clone()),
            Some(Reading::NotServed) => Reading::NotServed,
            Some(Reading::Read(())) => Reading::Read(self.objects.values().cloned().collect()),
            None => Reading::Unreadable("not read yet".into()),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Live {
    configs: Kept<VirtPlatformConfig>,
    /// Those that this version cannot read, by name.
    unreadable: BTreeMap<String, Unreadable>,
    nodes: Kept<Node>,
    pools: Kept<MachinePool>,
    reports: Kept<NodeReport>,
}

impl Live {
    pub(super) fn apply(&mut self, (watched, event): Observation) {
        match watched {
            Watched::Configs => {
                self.note_unreadable(&event);
                self.configs.apply(event, |object| configs::parse(object.clone()).ok());
            }
            Watched::Nodes => self.nodes.apply(event, Node::of),
            Watched::Pools => self.pools.apply(event, MachinePool::of),
            Watched::Reports => self.reports.apply(event, NodeReport::of),
        }
    }

    fn note_unreadable(&mut self, event: &WatchEvent<DynamicObject>) {
        match event {
            WatchEvent::Change(Change::Applied(object)) => {
                let name = object.metadata.name.clone().unwrap_or_default();
                match serde_json::to_value(object).map(configs::parse) {
                    Ok(Err(unreadable)) => drop(self.unreadable.insert(name, unreadable)),
                    _ => drop(self.unreadable.remove(&name)),
                }
            }
            WatchEvent::Change(Change::Deleted(key)) => drop(self.unreadable.remove(&key.name)),
            WatchEvent::NotServed => self.unreadable.clear(),
            WatchEvent::Change(Change::Synced) | WatchEvent::Forbidden(_) => {}
        }
    }

    /// The configurations that this version cannot read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &Unreadable> {
        self.unreadable.values()
    }

    /// Whether every kind was listed, or is known not to be readable.
    pub(super) fn is_settled(&self) -> bool {
        let Live { configs, nodes, pools, reports, .. } = self;
        configs.state.is_some() && nodes.state.is_some() && pools.state.is_some() && reports.state.is_some()
    }

    pub(super) fn configs(&self) -> Reading<Vec<VirtPlatformConfig>> {
        self.configs.reading()
    }

    pub(super) fn cluster(&self) -> Cluster {
        Cluster { nodes: self.nodes.reading(), pools: self.pools.reading(), reports: self.reports.reading() }
    }
}

#[cfg(test)]
mod tests {
    use kube_io::ObjectKey;
    use serde_json::json;

    use super::*;

    fn node(name: &str) -> Observation {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        (Watched::Nodes, WatchEvent::Change(Change::Applied(serde_json::from_value(object).unwrap())))
    }

    #[test]
    fn a_configuration_that_cannot_be_read_is_not_a_deleted_one() {
        let mut live = Live::default();
        let config = |phase: &str| {
            let object = json!({
                "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
                "metadata": {"name": "example-profile"}, "spec": {"profile": "example-profile", "action": "Apply"},
                "status": {"phase": phase},
            });
            (Watched::Configs, WatchEvent::Change(Change::Applied(serde_json::from_value(object).unwrap())))
        };
        live.apply(config("Dreaming"));
        live.apply((Watched::Configs, WatchEvent::Change(Change::Synced)));
        assert!(live.configs().items().is_empty());
        let told: Vec<String> = live.unreadable().map(ToString::to_string).collect();
        assert!(told[0].starts_with("VirtPlatformConfig example-profile cannot be read by this version"), "{told:?}");
        live.apply(config("Completed"));
        assert_eq!((live.unreadable().count(), live.configs().items().len()), (0, 1));
    }

    #[test]
    fn watches_that_cannot_read_settle_too() {
        let mut live = Live::default();
        let synced = || WatchEvent::Change(Change::Synced);
        live.apply((Watched::Configs, synced()));
        live.apply(node("a"));
        assert!(live.cluster().nodes.is_unreadable(), "a list that is not complete is none");
        live.apply((Watched::Nodes, synced()));
        live.apply((Watched::Reports, WatchEvent::NotServed));
        assert!(!live.is_settled());
        live.apply((Watched::Pools, WatchEvent::Forbidden("no".into())));
        assert!(live.is_settled());
        let cluster = live.cluster();
        assert_eq!(cluster.nodes.items().len(), 1);
        assert_eq!(cluster.pools, Reading::Unreadable("forbidden (403)".into()));
        assert_eq!(cluster.reports, Reading::NotServed);
        let key = ObjectKey { namespace: String::new(), name: "a".into() };
        live.apply((Watched::Nodes, WatchEvent::Change(Change::Deleted(key))));
        assert_eq!(live.cluster().nodes, Reading::Read(Vec::new()));
    }
}
