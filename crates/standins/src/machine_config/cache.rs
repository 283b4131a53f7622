//! The objects that the stand-in knows.

use k8s_openapi::api::core::v1::Node;
use kube::core::ApiResource;
use kube_io::Change;

use super::{MachineConfig, MachineConfigPool, machine_config_resource, request::Object};
use crate::{Time, objects::Objects};

/// A change that one of the watches reports.
#[derive(Debug)]
pub(super) enum Observation {
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
    pub(super) fn apply(&mut self, observation: Observation) {
        match observation {
            Observation::Config(change) => self.configs.apply(change),
            Observation::Pool(change) => self.pools.apply(change),
            Observation::Node(change) => self.nodes.apply(change),
        }
    }

    /// Tells what is known.
    pub(super) fn tell(&self, time: &Time) {
        time.knows(machine_config_resource(), "", &self.configs);
        time.knows(ApiResource::erase::<MachineConfigPool>(&()), "", &self.pools);
        time.knows(ApiResource::erase::<Node>(&()), "", &self.nodes);
    }

    /// Whether every kind was listed.
    pub(super) fn is_synced(&self) -> bool {
        self.configs.is_synced() && self.pools.is_synced() && self.nodes.is_synced()
    }

    pub(super) fn has(&self, object: &Object) -> bool {
        match object {
            Object::Config(name) => self.configs.get(name).is_some(),
            Object::Pool(name) => self.pools.get(name).is_some(),
            Object::Node(name) => self.nodes.get(name).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::node;

    #[test]
    fn the_cache_is_synced_when_every_kind_was_listed() {
        let mut cache = Cache::default();
        let node = Change::Applied(Box::new(node("a", &[])));
        let observations =
            [Observation::Node(node), Observation::Node(Change::Synced), Observation::Pool(Change::Synced)];
        for observation in observations {
            cache.apply(observation);
            assert!(!cache.is_synced());
        }
        cache.apply(Observation::Config(Change::Synced));
        assert!(cache.is_synced());
        assert!(cache.has(&Object::Node("a".into())));
    }
}
