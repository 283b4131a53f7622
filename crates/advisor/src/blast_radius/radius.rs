//! Puts it together: pools, their nodes in order, the virtual machines on them, capacity, time and risks.

use std::collections::{BTreeMap, HashMap};

use api::virt_platform_config::{Item, ItemState, Risk, RolloutState};
use serde::Serialize;

use super::{
    BudgetAtLimit, Capacity, Estimate, Fate, Instance, MachinePool, NamedRisk, Node, Observed, Outcome, Unread,
    Verdict, budgets, capacity::capacity, duration::Timing, fate::Circumstances, node, order::Order, risks,
    unread::unread,
};

/// What a plan says about itself, as it is in the status of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct PlanView<'a> {
    pub items: &'a [Item],
    pub risks: &'a [Risk],
}

/// What a plan does to nodes and virtual machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlastRadius {
    /// Whether the plan reboots anything, or still has to.
    pub reboots: bool,
    /// Whether nodes are drained before. The only node of a cluster is not.
    pub drained: bool,
    pub totals: Totals,
    pub pools: Vec<PoolRadius>,
    pub capacity: Capacity,
    pub budgets: Vec<BudgetAtLimit>,
    /// All pools together: they roll out at the same time.
    pub duration: Estimate,
    /// What the times come from.
    pub basis: Vec<String>,
    pub risks: Vec<NamedRisk>,
    pub unread: Vec<Unread>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub nodes: usize,
    pub machines: usize,
    pub moves_live: usize,
    pub restarts: usize,
    pub stays_down: usize,
    pub blocks_drain: usize,
    pub unknown: usize,
}

impl Totals {
    pub fn count(&self, fate: Fate) -> usize {
        match fate {
            Fate::BlocksDrain => self.blocks_drain,
            Fate::StaysDown => self.stays_down,
            Fate::Unknown => self.unknown,
            Fate::Restarts => self.restarts,
            Fate::MovesLive => self.moves_live,
        }
    }

    fn add(&mut self, fate: Fate) {
        self.machines += 1;
        *match fate {
            Fate::BlocksDrain => &mut self.blocks_drain,
            Fate::StaysDown => &mut self.stays_down,
            Fate::Unknown => &mut self.unknown,
            Fate::Restarts => &mut self.restarts,
            Fate::MovesLive => &mut self.moves_live,
        } += 1;
    }
}

/// A pool whose nodes reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRadius {
    pub name: String,
    /// Whether its nodes wait until somebody resumes it.
    pub paused: bool,
    /// None if the pool could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<usize>,
    /// How many nodes are taken at a time as things stand; 0 while others keep too many out of service.
    pub at_a_time: usize,
    /// How many nodes the rollout has behind it.
    pub done: usize,
    /// How many nodes it has by the plan, if they could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_nodes: Option<i32>,
    /// In the order in which the pool takes them.
    pub nodes: Vec<NodeRadius>,
    pub duration: Estimate,
}

/// A node that reboots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRadius {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// With which others it is taken, from 1 on. None while it is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<usize>,
    /// Why the pool does not take it as things stand: cordoned or not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<&'static str>,
    pub control_plane: bool,
    pub drain: Estimate,
    /// From the beginning of the drain until it is ready again.
    pub total: Estimate,
    /// The worst first.
    pub machines: Vec<Outcome>,
}

impl NodeRadius {
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { nodes: 1, ..Totals::default() };
        self.machines.iter().for_each(|outcome| totals.add(outcome.fate));
        totals
    }
}

/// A pool that a plan reboots.
struct Affected {
    nodes: Option<i32>,
    paused: bool,
    /// Whether all changes are on their way to it.
    begun: bool,
}

/// The blast radius of a plan. Items that are completed have it behind them.
pub fn blast_radius(plan: PlanView<'_>, observed: &Observed) -> BlastRadius {
    let affected = affected(plan.items);
    let reboots = affected.is_some();
    let affected = affected.unwrap_or_default();
    let nodes = observed.nodes.items();
    let drained = nodes.len() != 1;
    let (members, ambiguous) = node::members(observed.pools.items(), nodes);
    let operator = observed.pods.items().iter().find(|pod| pod.is_machine_config_operator());
    let pools: HashMap<&str, &MachinePool> =
        observed.pools.items().iter().map(|pool| (pool.name.as_str(), pool)).collect();
    let mut rolls: Vec<(&str, &Affected, Option<Order<'_>>)> = Vec::new();
    for (name, change) in &affected {
        let of = |pool: &&MachinePool| {
            let last = operator.filter(|_| name == "master").map(|pod| pod.node.as_str());
            Order::of(pool, members.get(name).map_or(&[], Vec::as_slice), change.begun, last)
        };
        let order = pools.get(name.as_str()).filter(|_| observed.nodes.value().is_some()).map(of);
        rolls.push((name, change, order));
    }
    let circumstances = Circumstances::of(observed, drained);
    let mut by_node: HashMap<&str, Vec<(&Instance, Outcome)>> = HashMap::new();
    let rebooting = || {
        rolls
            .iter()
            .filter_map(|(_, _, order)| order.as_ref())
            .flat_map(|order| order.candidates.iter().chain(&order.held_back))
    };
    rebooting().for_each(|node| drop(by_node.insert(&node.name, Vec::new())));
    for instance in observed.instances.items() {
        if let Some(machines) = by_node.get_mut(instance.node.as_str()) {
            machines.push((instance, circumstances.outcome(instance)));
        }
    }
    by_node.values_mut().for_each(|machines| {
        machines.sort_by(|(_, one), (_, other)| {
            (one.fate, &one.namespace, &one.name).cmp(&(other.fate, &other.namespace, &other.name))
        });
    });
    let outcomes: HashMap<&str, &Outcome> =
        by_node.values().flatten().map(|(instance, outcome)| (instance.uid.as_str(), outcome)).collect();
    let budgets =
        if drained { budgets::at_limit(observed, |node| by_node.contains_key(node), &outcomes) } else { Vec::new() };
    let capacity = match reboots && drained {
        true => capacity(&waves(&rolls), nodes, &observed.pods, observed.instances.items(), &outcomes),
        false => Capacity::of(Verdict::NotNeeded, 0),
    };

    let at_a_time = |order: &Order<'_>| order.at_a_time.max(1).min(order.candidates.len());
    let timing = Timing::of(observed, rolls.iter().filter_map(|(_, _, order)| order.as_ref().map(at_a_time)).sum());
    let knows_machines = !observed.instances.is_unreadable();
    let clock = Clock { timing: &timing, drained, grace: graces(observed), budgets: &budgets, knows_machines };
    let pools: Vec<PoolRadius> =
        rolls.iter().map(|(name, change, order)| clock.pool(name, change, order.as_ref(), &by_node)).collect();
    let mut totals = Totals::default();
    for node in pools.iter().flat_map(|pool| &pool.nodes) {
        totals.nodes += 1;
        node.machines.iter().for_each(|outcome| totals.add(outcome.fate));
    }
    let duration = pools.iter().map(|pool| pool.duration).fold(Estimate::NONE, Estimate::beside);
    let basis = match reboots {
        true => timing.basis(&rebooting().copied().collect::<Vec<_>>(), totals.moves_live > 0),
        false => Vec::new(),
    };
    let unread = if reboots { unread(observed) } else { Vec::new() };
    let notes = if reboots {
        notes(drained, &ambiguous, by_node.values().flatten().map(|(instance, _)| *instance))
    } else {
        Vec::new()
    };
    let mut radius = BlastRadius {
        reboots,
        drained,
        totals,
        pools,
        capacity,
        budgets,
        duration,
        basis,
        risks: Vec::new(),
        unread,
        notes,
    };
    radius.risks = risks::risks(&radius, plan, observed);
    radius
}

/// The pools whose nodes reboot. None if nothing reboots; empty if it is not known where.
fn affected(items: &[Item]) -> Option<BTreeMap<String, Affected>> {
    let mut found: Option<BTreeMap<String, Affected>> = None;
    for item in items.iter().filter(|item| item.state != ItemState::Completed) {
        let Some(detail) = item.impact_detail.as_ref().filter(|detail| detail.reboot) else { continue };
        let found = found.get_or_insert_default();
        for pool in &detail.pools {
            let rollout = item.rollout.iter().find(|rollout| rollout.pool == pool.name);
            let begun = rollout.is_some_and(|rollout| rollout.state != RolloutState::Pending);
            let known =
                found.entry(pool.name.clone()).or_insert(Affected { nodes: pool.nodes, paused: pool.paused, begun });
            known.begun &= begun;
        }
    }
    found
}

/// The nodes that are away together, wave by wave. Pools roll out at the same time.
fn waves<'a>(rolls: &[(&str, &Affected, Option<Order<'a>>)]) -> Vec<Vec<&'a str>> {
    let mut waves: Vec<Vec<&str>> = Vec::new();
    for order in rolls.iter().filter_map(|(_, _, order)| order.as_ref()) {
        for (position, node) in order.candidates.iter().enumerate() {
            let wave = order.wave(position);
            if waves.len() <= wave {
                waves.resize_with(wave + 1, Vec::new);
            }
            waves[wave].push(&node.name);
        }
    }
    waves
}

/// The longest time that other pods of each node may take to end. None if pods are not known.
fn graces(observed: &Observed) -> Option<HashMap<&str, u64>> {
    let mut graces: HashMap<&str, u64> = HashMap::new();
    for pod in observed.pods.value()?.iter().filter(|pod| !pod.stays && pod.instance.is_none()) {
        let grace = graces.entry(&pod.node).or_default();
        *grace = (*grace).max(pod.grace_seconds);
    }
    Some(graces)
}

fn notes<'a>(drained: bool, ambiguous: &[&Node], instances: impl Iterator<Item = &'a Instance>) -> Vec<String> {
    let mut notes = Vec::new();
    if !drained {
        notes.push("The cluster has one node, which is not drained: guests get the kubelet's time for a shutdown and are cut off then".into());
    }
    if !ambiguous.is_empty() {
        let names: Vec<&str> = ambiguous.iter().map(|node| node.name.as_str()).collect();
        notes.push(format!(
            "Several custom pools select {}: such a node gets no configuration and does not reboot",
            names.join(", ")
        ));
    }
    let dependent = instances.filter(|instance| instance.demand.depends_on_pods).count();
    if dependent > 0 {
        notes.push(format!("Where the other pods are that a pod affinity asks for is not looked at; {dependent} virtual machines have one"));
    }
    notes
}

/// What the times of pools and nodes are computed from.
struct Clock<'a> {
    timing: &'a Timing<'a>,
    drained: bool,
    grace: Option<HashMap<&'a str, u64>>,
    budgets: &'a [BudgetAtLimit],
    /// Whether it is known which virtual machines there are.
    knows_machines: bool,
}

impl Clock<'_> {
    fn pool(
        &self,
        name: &str,
        change: &Affected,
        order: Option<&Order<'_>>,
        by_node: &HashMap<&str, Vec<(&Instance, Outcome)>>,
    ) -> PoolRadius {
        let Some(order) = order else {
            return PoolRadius {
                name: name.to_owned(),
                paused: change.paused,
                max_unavailable: None,
                at_a_time: 0,
                done: 0,
                expected_nodes: change.nodes,
                nodes: Vec::new(),
                duration: Estimate::UNKNOWN,
            };
        };
        let machines = |node: &Node| by_node.get(node.name.as_str()).map_or(&[][..], Vec::as_slice);
        let mut nodes = Vec::new();
        let mut waves: Vec<Estimate> = Vec::new();
        for (position, node) in order.candidates.iter().enumerate() {
            let wave = order.wave(position);
            let radius = self.node(node, Some(wave + 1), machines(node));
            if waves.len() <= wave {
                waves.push(Estimate::NONE);
            }
            waves[wave] = waves[wave].beside(radius.total);
            nodes.push(radius);
        }
        nodes.extend(order.held_back.iter().map(|node| self.node(node, None, machines(node))));
        let rolled = waves.into_iter().fold(Estimate::NONE, Estimate::then);
        let stands_still = (order.at_a_time == 0 || !order.held_back.is_empty()) && !nodes.is_empty();
        PoolRadius {
            name: name.to_owned(),
            paused: order.is_paused,
            max_unavailable: Some(order.max_unavailable),
            at_a_time: order.at_a_time,
            done: order.done,
            expected_nodes: None,
            nodes,
            // Nobody knows when nodes that others have taken out of service come back.
            duration: if stands_still { Estimate { max_seconds: None, ..rolled } } else { rolled },
        }
    }

    fn node(&self, node: &Node, wave: Option<usize>, machines: &[(&Instance, Outcome)]) -> NodeRadius {
        let known: Vec<(&Instance, &Outcome)> =
            machines.iter().map(|(instance, outcome)| (*instance, outcome)).collect();
        let is_covered = |budget: &BudgetAtLimit| budget.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node.name));
        let is_open = self.budgets.iter().any(is_covered) || !self.knows_machines;
        let pods = self.grace.as_ref().map(|graces| graces.get(node.name.as_str()).copied().unwrap_or(0));
        let drain = match self.drained {
            true => self.timing.drain(&known, pods, is_open),
            false => Estimate::NONE,
        };
        NodeRadius {
            name: node.name.clone(),
            zone: node.zone().map(str::to_owned),
            wave,
            held_back: node.held_back().filter(|_| wave.is_none()),
            control_plane: node.is_control_plane(),
            drain,
            total: drain.then(self.timing.reboot(node)),
            machines: machines.iter().map(|(_, outcome)| outcome.clone()).collect(),
        }
    }
}
