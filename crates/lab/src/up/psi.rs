//! Whether all nodes measure pressure (PSI). With the advisor, that is so when every node runs a config that enables it.

use std::collections::{BTreeMap, BTreeSet};

use advisor::kernel_arguments;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt, core::PartialObjectMeta, runtime::watcher::Config};
use kube_io::{Change, ResilientWatch, forward};
use standins::machine_config::{MachineConfig, machine_config_resource, names};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

const BACKLOG: usize = 256;
const ARGUMENT: &str = "psi";

enum WatchedChange {
    Config(Change<MachineConfig>),
    Node(Change<PartialObjectMeta<Node>>),
}

#[derive(Debug, Default)]
struct PsiCache {
    /// The configs that enable PSI.
    configs: BTreeSet<String>,
    /// The nodes, and the config that each runs.
    nodes: BTreeMap<String, Option<String>>,
    /// Whether configs and nodes have been listed.
    synced: [bool; 2],
}

impl PsiCache {
    fn take(&mut self, change: WatchedChange) {
        match change {
            WatchedChange::Config(Change::Applied(config)) => {
                let value = kernel_arguments::value(&config.data, ARGUMENT);
                match value.is_some_and(kernel_arguments::is_true) {
                    true => self.configs.insert(config.name_any()),
                    false => self.configs.remove(&config.name_any()),
                };
            }
            WatchedChange::Config(Change::Deleted(key)) => {
                self.configs.remove(&key.name);
            }
            WatchedChange::Config(Change::Synced) => self.synced[0] = true,
            WatchedChange::Node(Change::Applied(node)) => {
                self.nodes.insert(node.name_any(), node.annotations().get(names::CURRENT_CONFIG).cloned());
            }
            WatchedChange::Node(Change::Deleted(key)) => {
                self.nodes.remove(&key.name);
            }
            WatchedChange::Node(Change::Synced) => self.synced[1] = true,
        }
    }

    fn all_measure(&self) -> bool {
        let measures = |config: &Option<String>| config.as_ref().is_some_and(|name| self.configs.contains(name));
        self.synced == [true; 2] && !self.nodes.is_empty() && self.nodes.values().all(measures)
    }
}

/// Publishes whether all nodes measure pressure. It stops when dropped.
#[derive(Debug)]
pub(super) struct PsiTask(JoinHandle<()>);

impl PsiTask {
    pub(super) fn start(client: Client, sender: watch::Sender<bool>) -> PsiTask {
        PsiTask(tokio::spawn(async move {
            let (send, mut changes) = mpsc::channel(BACKLOG);
            let configs = Api::all_with(client.clone(), &machine_config_resource());
            let nodes = Api::all(client);
            let published = async {
                let mut cache = PsiCache::default();
                while let Some(change) = changes.recv().await {
                    cache.take(change);
                    let is_on = cache.all_measure();
                    sender.send_if_modified(|before| std::mem::replace(before, is_on) != is_on);
                }
            };
            tokio::join!(
                forward(ResilientWatch::local(configs, Config::default()), WatchedChange::Config, send.clone()),
                forward(ResilientWatch::local(nodes, Config::default()), WatchedChange::Node, send),
                published
            );
        }))
    }
}

impl Drop for PsiTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(name: &str, arguments: &[&str]) -> WatchedChange {
        let mut config = MachineConfig::new(name, &machine_config_resource());
        config.data = json!({"spec": {"kernelArguments": arguments}});
        WatchedChange::Config(Change::Applied(Box::new(config)))
    }

    fn node(name: &str, config: &str) -> WatchedChange {
        let mut node = PartialObjectMeta::<Node>::default();
        node.metadata.name = Some(name.to_owned());
        node.annotations_mut().insert(names::CURRENT_CONFIG.to_owned(), config.to_owned());
        WatchedChange::Node(Change::Applied(Box::new(node)))
    }

    fn listed() -> PsiCache {
        let mut cache = PsiCache::default();
        cache.take(WatchedChange::Config(Change::Synced));
        cache.take(WatchedChange::Node(Change::Synced));
        cache
    }

    #[test]
    fn nodes_measure_pressure_when_the_last_of_them_runs_a_config_that_enables_it() {
        let mut cache = listed();
        assert!(!cache.all_measure(), "there are no nodes");
        for change in
            [config("old", &["quiet"]), config("new", &["quiet", "psi=1"]), node("a", "new"), node("b", "old")]
        {
            cache.take(change);
            assert_eq!(cache.all_measure(), cache.nodes.len() == 1, "only a node that does is known");
        }
        cache.take(node("b", "new"));
        assert!(cache.all_measure());
        cache.take(node("c", "unknown"));
        assert!(!cache.all_measure());
    }

    #[test]
    fn nothing_is_published_before_everything_is_listed() {
        let mut cache = PsiCache::default();
        cache.take(WatchedChange::Config(Change::Synced));
        cache.take(config("new", &["psi=1"]));
        cache.take(node("a", "new"));
        assert!(!cache.all_measure(), "nodes have not been listed");
        cache.take(WatchedChange::Node(Change::Synced));
        assert!(cache.all_measure());
    }
}
