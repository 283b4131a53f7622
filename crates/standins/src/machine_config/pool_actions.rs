//! The next actions for one pool. This combines the render controller, the node controller and the daemons of MCO.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::{
    Actions, Machine, MachineConfigPool, MachineConfigSettings, RenderError, Rendered, Request,
    membership::max_unavailable, node_actions::node_actions, status::status,
};

/// A pool and the result of rendering it.
#[derive(Debug, Clone, Copy)]
pub struct PoolView<'a> {
    pub pool: &'a MachineConfigPool,
    pub render: Result<&'a Rendered, &'a RenderError>,
    /// Whether the rendered config exists in the cluster.
    pub is_stored: bool,
}

/// The next actions for a pool and the nodes that belong to it.
pub fn pool_actions(view: &PoolView<'_>, nodes: &[&Node], now: Timestamp, settings: &MachineConfigSettings) -> Actions {
    let pool = view.pool;
    let mut machines: Vec<Machine<'_>> = nodes.iter().map(|node| Machine::of(node)).collect();
    machines.sort_by_cached_key(|machine| machine.rollout_order());

    let mut requests = set_target(view);
    // A pool that gets a new target now is decided on again afterwards.
    if requests.is_empty() {
        requests = adopt(pool, &machines);
        // A node that is new and not ready yet is not counted as unavailable.
        if requests.is_empty() && !machines.iter().any(|machine| machine.current().is_some() && machine.lacks_kubelet())
        {
            let status = status(pool, view.render.err(), &machines, now);
            if pool.status.as_ref() != Some(&status) {
                requests.push(Request::UpdatePoolStatus { pool: pool.name_any(), status });
            }
        }
        requests.extend(set_update_taints(pool, &machines));
        requests.extend(set_desired_configs(pool, &machines));
    }
    let mut actions = Actions { requests, ..Actions::default() };
    machines.iter().for_each(|machine| actions.append(node_actions(*machine, now, settings)));
    actions
}

/// The render controller: creates the rendered config, then makes it the target, also of a paused pool.
fn set_target(view: &PoolView<'_>) -> Vec<Request> {
    let Ok(rendered) = view.render else { return Vec::new() };
    let pool = view.pool.name_any();
    if !view.is_stored {
        return vec![Request::CreateRendered { pool, rendered: rendered.clone() }];
    }
    let configuration = rendered.configuration();
    if view.pool.spec.configuration == configuration {
        return Vec::new();
    }
    vec![Request::SetPoolTarget { pool, configuration }]
}

/// A node without annotations runs the config that was rolled out last. A newer target reaches it like any other node.
fn adopt(pool: &MachineConfigPool, machines: &[Machine<'_>]) -> Vec<Request> {
    let rolled_out = pool.status.as_ref().map(|status| &status.configuration.name).filter(|name| !name.is_empty());
    let config = rolled_out.unwrap_or(&pool.spec.configuration.name);
    if config.is_empty() {
        return Vec::new();
    }
    let new = machines.iter().filter(|machine| machine.current().is_none());
    new.map(|machine| Request::Adopt { node: machine.name(), config: config.clone() }).collect()
}

/// The node controller: new pods should prefer nodes that have their update behind them.
fn set_update_taints(pool: &MachineConfigPool, machines: &[Machine<'_>]) -> Vec<Request> {
    let config = &pool.spec.configuration.name;
    if pool.spec.paused || config.is_empty() {
        return Vec::new();
    }
    let known = machines.iter().filter(|machine| machine.current().is_some());
    let states = known.map(|machine| (machine, machine.current() != Some(config)));
    let changed = states.filter(|(machine, is_set)| machine.is_update_in_progress() != *is_set);
    changed.map(|(machine, is_set)| Request::SetUpdateTaint { node: machine.name(), is_set }).collect()
}

/// The node controller: updates as many nodes at a time as may be unavailable, in the order of the rollout.
fn set_desired_configs(pool: &MachineConfigPool, machines: &[Machine<'_>]) -> Vec<Request> {
    let config = &pool.spec.configuration.name;
    if pool.spec.paused || config.is_empty() {
        return Vec::new();
    }
    let has_target = |machine: &&Machine<'_>| machine.desired() == Some(config);
    let unavailable = machines.iter().filter(|machine| machine.is_unavailable()).count();
    // A failing node may continue at any time, so it counts, and twice if it is unavailable: MCO counts like this.
    let failing = machines.iter().filter(has_target).filter(|machine| machine.is_failing()).count();
    let capacity = max_unavailable(pool, machines.len()).saturating_sub(unavailable + failing);

    let is_known = |machine: &&Machine<'_>| machine.current().is_some();
    let candidates = machines.iter().filter(is_known).filter(|machine| !has_target(machine) && machine.is_in_service());
    // A node that is being updated to another config finishes that first.
    let free = candidates.filter(|machine| machine.is_done() || machine.is_failing());
    free.take(capacity)
        .map(|machine| Request::SetDesiredConfig { node: machine.name(), config: config.clone() })
        .collect()
}

#[cfg(test)]
mod tests;
