//! What to do next about one pool: the three controllers of the machine config operator in one function.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::{
    Action, Machine, MachineConfigPool, RenderError, Rendered, Settings, daemon, membership::max_unavailable,
    status::status,
};

/// A pool, and what rendering it came to.
#[derive(Debug, Clone, Copy)]
pub struct PoolView<'a> {
    pub pool: &'a MachineConfigPool,
    pub render: Result<&'a Rendered, &'a RenderError>,
    /// Whether what was rendered is stored.
    pub is_stored: bool,
}

/// What to do next about a pool and the nodes that belong to it.
pub fn step(view: &PoolView<'_>, nodes: &[&Node], now: Timestamp, settings: &Settings) -> Vec<Action> {
    let pool = view.pool;
    let mut machines: Vec<Machine<'_>> = nodes.iter().map(|node| Machine::of(node)).collect();
    machines.sort_by_cached_key(|machine| machine.turn());

    let mut actions = point(view);
    // A pool that is about to move is looked at again after it moved.
    if actions.is_empty() {
        actions = adopt(pool, &machines);
        // Nodes that are only just being met are not reported as if they were changing.
        if actions.is_empty() && !machines.iter().any(|machine| machine.current().is_some() && machine.is_bare()) {
            let status = status(pool, view.render.err(), &machines, now);
            if pool.status.as_ref() != Some(&status) {
                actions.push(Action::Report { pool: pool.name_any(), status });
            }
        }
        actions.extend(target(pool, &machines));
    }
    actions.extend(machines.iter().flat_map(|machine| daemon::next(*machine, now, settings)));
    actions
}

/// The render controller: what was rendered is stored first and pointed at second, also while the pool is paused.
fn point(view: &PoolView<'_>) -> Vec<Action> {
    let Ok(rendered) = view.render else { return Vec::new() };
    let pool = view.pool.name_any();
    if !view.is_stored {
        return vec![Action::Store { pool, rendered: rendered.clone() }];
    }
    let configuration = rendered.configuration();
    if view.pool.spec.configuration == configuration {
        return Vec::new();
    }
    vec![Action::Point { pool, configuration }]
}

/// Nodes that nobody has told anything run what the pool's nodes run. They get what is newer in their turn.
fn adopt(pool: &MachineConfigPool, machines: &[Machine<'_>]) -> Vec<Action> {
    let rolled_out = pool.status.as_ref().map(|status| &status.configuration.name).filter(|name| !name.is_empty());
    let config = rolled_out.unwrap_or(&pool.spec.configuration.name);
    if config.is_empty() {
        return Vec::new();
    }
    let new = machines.iter().filter(|machine| machine.current().is_none());
    new.map(|machine| Action::Adopt { node: machine.name(), config: config.clone() }).collect()
}

/// The node controller: as many nodes at a time as may be away, in their turn.
fn target(pool: &MachineConfigPool, machines: &[Machine<'_>]) -> Vec<Action> {
    let config = &pool.spec.configuration.name;
    if pool.spec.paused || config.is_empty() {
        return Vec::new();
    }
    let wants_it = |machine: &&Machine<'_>| machine.desired() == Some(config);
    let unavailable = machines.iter().filter(|machine| machine.is_unavailable()).count();
    // What is stuck may go on at any time, so it counts, and once more if it is away already: that is how MCO counts.
    let stuck = machines.iter().filter(wants_it).filter(|machine| machine.is_failing()).count();
    let capacity = max_unavailable(pool, machines.len()).saturating_sub(unavailable + stuck);

    let is_known = |machine: &&Machine<'_>| machine.current().is_some();
    let candidates = machines.iter().filter(is_known).filter(|machine| !wants_it(machine) && machine.is_in_service());
    // One that is on its way to another config is not turned around.
    let free = candidates.filter(|machine| machine.is_done() || machine.is_failing());
    free.take(capacity).map(|machine| Action::Target { node: machine.name(), config: config.clone() }).collect()
}

#[cfg(test)]
mod tests;
