//! The next actions for the whole cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::{
    Actions, Machine, MachineConfigSettings, Membership, PoolView, Request, TooManyPools, cache::Cache, garbage,
    node_actions::node_actions, pool_actions, render_cache::RenderCache,
};

#[derive(Debug, Default)]
pub(super) struct ClusterActions {
    pub(super) actions: Actions,
    /// Nodes that get no config, because they belong to several pools.
    pub(super) unassigned: Vec<TooManyPools>,
}

pub(super) fn cluster_actions(
    cache: &Cache,
    renders: &RenderCache,
    now: Timestamp,
    settings: &MachineConfigSettings,
) -> ClusterActions {
    let mut result = ClusterActions::default();
    let membership = Membership::of(cache.pools.iter());
    let mut members: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
    for node in cache.nodes.iter() {
        match membership.pool(node) {
            Ok(Some(pool)) => members.entry(pool.name_any()).or_default().push(node),
            // A node without a pool finishes an update that has begun.
            Ok(None) => result.actions.append(node_actions(Machine::of(node), now, settings)),
            Err(error) => {
                result.unassigned.push(error);
                result.actions.append(node_actions(Machine::of(node), now, settings));
            }
        }
    }
    let used = garbage::in_use(cache.pools.iter(), cache.nodes.iter());
    for pool in cache.pools.iter() {
        let Some(render) = renders.of(pool) else { continue };
        let is_stored = render.as_ref().is_ok_and(|rendered| cache.configs.get(&rendered.name).is_some());
        let view = PoolView { pool, render: render.as_ref(), is_stored };
        let name = pool.name_any();
        let nodes = members.remove(&name).unwrap_or_default();
        result.actions.append(pool_actions(&view, &nodes, now, settings));
        let unused = garbage::unused(&name, cache.configs.iter(), &used);
        // The config that was just rendered is not in use yet.
        let unused = unused.into_iter().filter(|name| !render.as_ref().is_ok_and(|it| it.name == *name));
        result.actions.requests.extend(unused.map(|config| Request::DeleteRendered { config }));
    }
    result
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::machine_config::request::Object;
    use crate::machine_config::test_objects::{NodeBuilder, at, node, pool, sample};

    fn sample_cache() -> Cache {
        let (configs, pools) = sample();
        let mut cache = Cache::default();
        configs.into_iter().for_each(|config| cache.configs.put(config));
        pools.into_iter().for_each(|pool| cache.pools.put(pool));
        cache
    }

    fn actions_of(cache: &Cache) -> ClusterActions {
        let mut renders = RenderCache::default();
        renders.refresh(cache, at(0), Duration::ZERO);
        cluster_actions(cache, &renders, at(0), &MachineConfigSettings::default())
    }

    #[test]
    fn the_sample_cluster_with_its_nodes_needs_nothing() {
        let mut cache = sample_cache();
        let names: Vec<_> = cache.pools.iter().map(|it| (it.name_any(), it.spec.configuration.name.clone())).collect();
        for (pool, config) in names {
            for number in 0..3 {
                let mut node =
                    NodeBuilder::new(&format!("{pool}-{number}")).annotated(&config, &config, "Done").build();
                node.metadata.labels = Some([(format!("node-role.kubernetes.io/{pool}"), String::new())].into());
                cache.nodes.put(node);
            }
        }
        assert_eq!(actions_of(&cache).actions, Actions::default());
    }

    #[test]
    fn nodes_without_a_pool_finish_what_they_began_and_get_nothing_new() {
        let mut cache = sample_cache();
        for name in ["gpu", "infra"] {
            cache.pools.put(pool(name, &["worker"]));
        }
        let mut begun = NodeBuilder::new("begun").annotated("x", "y", "Done").build();
        begun.metadata.labels = None;
        cache.nodes.put(begun);
        cache.nodes.put(node("torn", &["worker", "gpu", "infra"]));
        let ClusterActions { actions, unassigned } = actions_of(&cache);
        let of_nodes: Vec<_> =
            actions.requests.iter().filter(|request| matches!(request.object(), Object::Node(_))).collect();
        assert_eq!(of_nodes, [&Request::Cordon { node: "begun".into(), config: "y".into() }]);
        assert_eq!(unassigned.len(), 1);
        assert_eq!(
            unassigned[0].to_string(),
            "node torn belongs to 2 custom pools (gpu, infra) and gets no configuration; leave it in one"
        );
    }
}
