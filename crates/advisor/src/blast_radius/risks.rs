//! What may go wrong, each with a name to refer to and what it is seen from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    BlastRadius, CapacityResult, DrainEffect, GuestOutcome, ObservedCluster, PlanContents, PoolRadius,
    attempts::DEGRADED_AFTER, counted, estimate::at_most,
};
use crate::plan_risks::{CONTROL_PLANE_POOL, REBOOTS_CONTROL_PLANE, TAKES_OVER, TAKES_OVER_FIELDS, taken_over};

/// A risk that people refer to by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedRisk {
    pub name: String,
    pub message: String,
    /// The objects that it is seen from.
    pub evidence: Vec<String>,
}

fn risk(name: &str, message: impl Into<String>, evidence: Vec<String>) -> Option<NamedRisk> {
    (!evidence.is_empty()).then(|| NamedRisk { name: name.into(), message: message.into(), evidence })
}

pub(super) fn risks(radius: &BlastRadius, plan: PlanContents<'_>, observed: &ObservedCluster) -> Vec<NamedRisk> {
    let mut found = Vec::new();
    if radius.reboots {
        found.extend(of_machines(radius));
        found.extend(of_pools(radius));
        found.extend(of_rollout(radius));
        found.extend(of_others(observed));
        let unread = radius.unread.iter().map(|unread| format!("{}: {}", unread.what, unread.why)).collect();
        found.extend(risk("NotEverythingRead", "What could not be read is not part of this", unread));
    }
    found.extend(risk(TAKES_OVER_FIELDS, TAKES_OVER, taken_over(plan.items.iter())));
    for known in plan.risks {
        // The plan may see the same; what is seen here has evidence.
        if !found.iter().any(|seen| seen.name == known.name) {
            found.push(NamedRisk { name: known.name.clone(), message: known.message.clone(), evidence: Vec::new() });
        }
    }
    found
}

fn of_machines(radius: &BlastRadius) -> Vec<NamedRisk> {
    let all = || radius.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.guests);
    let told = |outcome: &GuestOutcome| {
        format!("{}/{} on {}: {}", outcome.namespace, outcome.name, outcome.node, outcome.cause)
    };
    let of = |effect: DrainEffect| all().filter(|outcome| outcome.effect == effect).map(told).collect::<Vec<_>>();
    let unschedulable = radius
        .capacity
        .unschedulable
        .iter()
        .map(|vm| format!("{}/{} on {}: {}", vm.namespace, vm.name, vm.node, vm.constraint));
    let mut unschedulable: Vec<String> = unschedulable.collect();
    if radius.capacity.unschedulable_pods > 0 {
        unschedulable.push(counted(radius.capacity.unschedulable_pods, "other pod"));
    }
    let away = counted(radius.capacity.nodes_away, "node");
    let are = if radius.capacity.nodes_away == 1 { "is" } else { "are" };
    let unknown = radius.capacity.why.iter().filter(|_| radius.capacity.result == CapacityResult::Unknown);
    [
        risk(
            "VMBlocksDrain",
            "These virtual machines can neither be moved nor shut down by a drain. Their nodes become Degraded after an hour, \
             and the drain goes on until somebody moves them or shuts them down",
            of(DrainEffect::BlocksDrain),
        ),
        risk("VMStaysDown", "These virtual machines are shut down, and nobody starts them again", of(DrainEffect::StaysDown)),
        risk("VMRestarts", "The guests of these virtual machines reboot", of(DrainEffect::Restarts)),
        risk("VMOutcomeUnknown", "What happens to these virtual machines is not known", of(DrainEffect::Unknown)),
        risk(
            "NoSpareCapacity",
            format!("While {away} {are} away, these fit on no other node by what they request"),
            unschedulable,
        ),
        risk("SpareCapacityUnknown", "Whether there is room elsewhere is not known", unknown.cloned().collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_pools(radius: &BlastRadius) -> Vec<NamedRisk> {
    let control_plane =
        |pool: &&PoolRadius| pool.name == CONTROL_PLANE_POOL || pool.nodes.iter().any(|node| node.control_plane);
    let pools = || radius.pools.iter();
    let named = |pool: &PoolRadius| format!("MachineConfigPool {}", pool.name);
    let stands_still = pools().filter(|pool| pool.max_unavailable.is_some() && pool.at_a_time == 0);
    let stands_still = stands_still.filter(|pool| !pool.nodes.is_empty()).map(|pool| {
        let allowed = pool.max_unavailable.unwrap_or(0);
        format!("{}: {allowed} may be unavailable; {}", named(pool), pool.out_of_service.join(", "))
    });
    let at_a_time = |pool: &PoolRadius| match pool.max_unavailable {
        Some(most) => format!("{}: at most {most} at a time", named(pool)),
        None => named(pool),
    };
    let held_back = pools().filter(|pool| pool.at_a_time > 0).flat_map(|pool| &pool.nodes);
    let held_back = held_back.filter_map(|node| Some(format!("{}: {}", node.name, node.held_back?)));
    let missing = pools().filter(|pool| pool.max_unavailable.is_none());
    [
        risk(
            REBOOTS_CONTROL_PLANE,
            "Nodes of the control plane reboot",
            pools().filter(control_plane).map(at_a_time).collect(),
        ),
        risk(
            "PoolPaused",
            "These pools are paused: nothing of this happens until somebody resumes them, and then it happens at once",
            pools().filter(|pool| pool.paused).map(named).collect(),
        ),
        risk(
            "PoolStandsStill",
            "As many nodes are out of service as may be, or more: the pool takes no other node until they are back",
            stands_still.collect(),
        ),
        risk("NodesHeldBack", "These nodes are taken only when they are back in service", held_back.collect()),
        risk("PoolUnknown", "Which nodes of these pools reboot is not known", missing.map(named).collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_rollout(radius: &BlastRadius) -> Vec<NamedRisk> {
    let nodes = radius.pools.iter().flat_map(|pool| &pool.nodes);
    let exceeds = nodes.filter(|node| match node.drain.max_seconds {
        Some(most) => most >= DEGRADED_AFTER,
        None => node.drain.min_seconds >= DEGRADED_AFTER,
    });
    let exceeds = exceeds.map(|node| format!("{}: {}", node.name, node.drain.text()));
    let budgets = radius.budgets.iter().map(|budget| {
        let nodes = budget.nodes.as_ref().map_or_else(|| "nodes that are not known".into(), |nodes| nodes.join(", "));
        let pods = counted(budget.pods, "pod");
        format!("PodDisruptionBudget {}/{} with {pods} on {nodes}", budget.namespace, budget.name)
    });
    [
        risk(
            "DrainExceedsOneHour",
            format!(
                "The drain of these nodes may take more than {}. Then they become Degraded although nothing is broken, and use \
                 up what may be unavailable in their pool",
                at_most(DEGRADED_AFTER)
            ),
            exceeds.collect(),
        ),
        risk(
            "PDBAllowsNoDisruption",
            "These budgets of other pods allow no disruption now: a drain waits until they do",
            budgets.collect(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_others(observed: &ObservedCluster) -> Option<NamedRisk> {
    let migrations = observed.migrations.items().iter().filter(|migration| migration.is_running).count();
    let mut evidence = Vec::new();
    if migrations > 0 {
        evidence.push(counted(migrations, "migration"));
    }
    let mut by_kind: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for operation in observed.operations.items() {
        by_kind.entry(&operation.what).or_default().push(&operation.subject);
    }
    evidence.extend(by_kind.into_iter().map(|(what, subjects)| format!("{what}: {}", subjects.join(", "))));
    risk("OperationsRunning", "Other things are going on in the cluster now", evidence)
}
