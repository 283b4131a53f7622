//! Whether the nodes measure pressure: where the advisor brings what makes them, they do when all run a config with it.

use std::collections::{BTreeMap, BTreeSet};

use advisor::kernel_arguments;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::watcher::{Config, Event},
};
use standins::machine_config::{MachineConfig, machine_config_resource, names};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use crate::{
    listing::{Change, Listing},
    watch as watches,
};

const BACKLOG: usize = 256;
const ARGUMENT: &str = "psi";

enum News {
    Config(Box<Event<MachineConfig>>),
    Node(Box<Event<PartialObjectMeta<Node>>>),
}

#[derive(Debug, Default)]
struct Sight {
    /// The configs that turn it on.
    configs: BTreeSet<String>,
    /// The nodes, and the config that each of them runs.
    nodes: BTreeMap<String, Option<String>>,
    listings: (Listing, Listing),
    listed: [bool; 2],
}

impl Sight {
    fn hear(&mut self, news: News) {
        let Sight { configs, nodes, listings, listed } = self;
        match news {
            News::Config(event) => {
                listed[0] |= listings.0.hear(*event, |change| match change {
                    Change::Is(config)
                        if kernel_arguments::value(&config.data, ARGUMENT).is_some_and(kernel_arguments::is_true) =>
                    {
                        configs.insert(config.name_any());
                    }
                    Change::Is(config) => {
                        configs.remove(&config.name_any());
                    }
                    Change::Gone((_, name)) => {
                        configs.remove(&name);
                    }
                });
            }
            News::Node(event) => {
                listed[1] |= listings.1.hear(*event, |change| match change {
                    Change::Is(node) => {
                        nodes.insert(node.name_any(), node.annotations().get(names::CURRENT_CONFIG).cloned());
                    }
                    Change::Gone((_, name)) => {
                        nodes.remove(&name);
                    }
                });
            }
        }
    }

    fn all_measure(&self) -> bool {
        let measures = |config: &Option<String>| config.as_ref().is_some_and(|name| self.configs.contains(name));
        self.listed == [true; 2] && !self.nodes.is_empty() && self.nodes.values().all(measures)
    }
}

/// Tells for as long as it is kept.
#[derive(Debug)]
pub(super) struct Keeper(JoinHandle<()>);

impl Keeper {
    pub(super) fn start(client: Client, tell: watch::Sender<bool>) -> Keeper {
        Keeper(tokio::spawn(async move {
            let (send, mut news) = mpsc::channel(BACKLOG);
            let configs = Api::all_with(client.clone(), &machine_config_resource());
            let nodes = Api::all(client);
            let told = async {
                let mut sight = Sight::default();
                while let Some(one) = news.recv().await {
                    sight.hear(one);
                    let is_on = sight.all_measure();
                    tell.send_if_modified(|before| std::mem::replace(before, is_on) != is_on);
                }
            };
            tokio::join!(
                watches::watch(configs, Config::default(), |_| {}, News::Config, send.clone()),
                watches::watch(nodes, Config::default(), |_| {}, News::Node, send),
                told
            );
        }))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(name: &str, arguments: &[&str]) -> News {
        let mut config = MachineConfig::new(name, &machine_config_resource());
        config.data = json!({"spec": {"kernelArguments": arguments}});
        News::Config(Box::new(Event::Apply(config)))
    }

    fn node(name: &str, config: &str) -> News {
        let mut node = PartialObjectMeta::<Node>::default();
        node.metadata.name = Some(name.to_owned());
        node.annotations_mut().insert(names::CURRENT_CONFIG.to_owned(), config.to_owned());
        News::Node(Box::new(Event::Apply(node)))
    }

    fn listed() -> Sight {
        let mut sight = Sight::default();
        sight.hear(News::Config(Box::new(Event::InitDone)));
        sight.hear(News::Node(Box::new(Event::InitDone)));
        sight
    }

    #[test]
    fn nodes_measure_pressure_when_the_last_of_them_runs_a_config_that_says_so() {
        let mut sight = listed();
        assert!(!sight.all_measure(), "there are no nodes");
        for news in [config("old", &["quiet"]), config("new", &["quiet", "psi=1"]), node("a", "new"), node("b", "old")]
        {
            sight.hear(news);
            assert_eq!(sight.all_measure(), sight.nodes.len() == 1, "only a node that does is known");
        }
        sight.hear(node("b", "new"));
        assert!(sight.all_measure());
        sight.hear(node("c", "unknown"));
        assert!(!sight.all_measure());
    }

    #[test]
    fn nothing_is_said_before_everything_is_known() {
        let mut sight = Sight::default();
        sight.hear(News::Config(Box::new(Event::InitDone)));
        sight.hear(config("new", &["psi=1"]));
        sight.hear(node("a", "new"));
        assert!(!sight.all_measure(), "nodes have not been listed");
        sight.hear(News::Node(Box::new(Event::InitDone)));
        // The list had no node in it, so the one that was seen before is not known to be there.
        sight.hear(node("a", "new"));
        assert!(sight.all_measure());
    }
}
