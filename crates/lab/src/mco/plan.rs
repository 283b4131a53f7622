//! What to do next about the whole cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::{
    Action, Machine, Membership, PoolView, Settings, TooManyPools, daemon, renders::Renders, retire, step, world::World,
};

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    /// Nodes that cannot be told what to run.
    pub(super) strays: Vec<TooManyPools>,
}

pub(super) fn plan(world: &World, renders: &Renders, now: Timestamp, settings: &Settings) -> Plan {
    let mut plan = Plan::default();
    let membership = Membership::of(world.pools.iter());
    let mut members: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
    for node in world.nodes.iter() {
        match membership.pool(node) {
            Ok(Some(pool)) => members.entry(pool.name_any()).or_default().push(node),
            // What it has begun it finishes, wherever it belongs.
            Ok(None) => plan.actions.extend(daemon::next(Machine::of(node), now, settings)),
            Err(stray) => {
                plan.strays.push(stray);
                plan.actions.extend(daemon::next(Machine::of(node), now, settings));
            }
        }
    }
    let used = retire::in_use(world.pools.iter(), world.nodes.iter());
    for pool in world.pools.iter() {
        let Some(render) = renders.of(pool) else { continue };
        let is_stored = render.as_ref().is_ok_and(|rendered| world.configs.get(&rendered.name).is_some());
        let view = PoolView { pool, render: render.as_ref(), is_stored };
        let name = pool.name_any();
        let nodes = members.remove(&name).unwrap_or_default();
        plan.actions.extend(step(&view, &nodes, now, settings));
        let superfluous = retire::superfluous(&name, world.configs.iter(), &used);
        // What was just rendered is not in use yet.
        let superfluous = superfluous.into_iter().filter(|name| !render.as_ref().is_ok_and(|it| it.name == *name));
        plan.actions.extend(superfluous.map(|config| Action::Retire { config }));
    }
    plan
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mco::action::Object;
    use crate::mco::test_objects::{NodeBuilder, at, node, pool, sample};

    fn sample_world() -> World {
        let (configs, pools) = sample();
        let mut world = World::default();
        configs.into_iter().for_each(|config| world.configs.put(config));
        pools.into_iter().for_each(|pool| world.pools.put(pool));
        world
    }

    fn planned(world: &World) -> Plan {
        let mut renders = Renders::default();
        renders.refresh(world, at(0), Duration::ZERO);
        plan(world, &renders, at(0), &Settings::default())
    }

    #[test]
    fn the_sample_cluster_with_its_nodes_needs_nothing() {
        let mut world = sample_world();
        let names: Vec<_> = world.pools.iter().map(|it| (it.name_any(), it.spec.configuration.name.clone())).collect();
        for (pool, config) in names {
            for number in 0..3 {
                let mut node =
                    NodeBuilder::new(&format!("{pool}-{number}")).annotated(&config, &config, "Done").build();
                node.metadata.labels = Some([(format!("node-role.kubernetes.io/{pool}"), String::new())].into());
                world.nodes.put(node);
            }
        }
        assert_eq!(planned(&world).actions, []);
    }

    #[test]
    fn nodes_without_a_pool_finish_what_they_began_and_get_nothing_new() {
        let mut world = sample_world();
        for name in ["gpu", "infra"] {
            world.pools.put(pool(name, &["worker"]));
        }
        let mut begun = NodeBuilder::new("begun").annotated("x", "y", "Done").build();
        begun.metadata.labels = None;
        world.nodes.put(begun);
        world.nodes.put(node("torn", &["worker", "gpu", "infra"]));
        let Plan { actions, strays } = planned(&world);
        let of_nodes: Vec<_> =
            actions.iter().filter(|action| matches!(action.object(), Some(Object::Node(_)))).collect();
        assert_eq!(of_nodes, [&Action::Cordon { node: "begun".into(), config: "y".into() }]);
        assert_eq!(strays.len(), 1);
        assert_eq!(
            strays[0].to_string(),
            "node torn belongs to 2 custom pools (gpu, infra) and gets no configuration; leave it in one"
        );
    }
}
