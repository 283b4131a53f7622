//! Puts it together: pools, their nodes in order, the virtual machines on them, capacity, time and risks.

use std::collections::{BTreeMap, HashMap, HashSet};

use api::virt_platform_config::{Item, ItemState, Risk, RolloutState};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    BudgetAtLimit, Capacity, CapacityResult, DrainEffect, Estimate, GuestOutcome, Instance, MachinePool, NamedRisk,
    Node, ObservedCluster, Reading, Unread, budgets,
    capacity::capacity,
    drain_effect::DrainContext,
    duration::Timing,
    node,
    notes::{is_drained, notes},
    order::Order,
    risks,
    unread::{unknown_load, unread},
};

/// What a plan says about itself, as it is in the status of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct PlanContents<'a> {
    pub items: &'a [Item],
    pub risks: &'a [Risk],
}

/// What a plan does to nodes and virtual machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlastRadius {
    /// Whether the plan reboots anything, or still has to.
    pub reboots: bool,
    /// Whether nodes are drained before. They are not where the control plane is one node.
    pub drained: bool,
    /// The only namespace whose virtual machines are counted. None if all are.
    #[serde(skip)]
    pub namespace: Option<String>,
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

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub nodes: usize,
    pub guests: usize,
    pub moves_live: usize,
    pub restarts: usize,
    pub stays_down: usize,
    pub blocks_drain: usize,
    pub unknown: usize,
}

impl Totals {
    pub fn count(&self, effect: DrainEffect) -> usize {
        match effect {
            DrainEffect::BlocksDrain => self.blocks_drain,
            DrainEffect::StaysDown => self.stays_down,
            DrainEffect::Unknown => self.unknown,
            DrainEffect::Restarts => self.restarts,
            DrainEffect::MovesLive => self.moves_live,
        }
    }

    fn add(&mut self, effect: DrainEffect) {
        self.guests += 1;
        *match effect {
            DrainEffect::BlocksDrain => &mut self.blocks_drain,
            DrainEffect::StaysDown => &mut self.stays_down,
            DrainEffect::Unknown => &mut self.unknown,
            DrainEffect::Restarts => &mut self.restarts,
            DrainEffect::MovesLive => &mut self.moves_live,
        } += 1;
    }
}

/// A pool whose nodes reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolRadius {
    pub name: String,
    /// Whether its nodes wait until somebody resumes it.
    pub paused: bool,
    /// Absent if the pool could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<usize>,
    /// How many nodes are taken at a time as things stand; 0 while others keep too many out of service.
    pub at_a_time: usize,
    /// The nodes that use up places, each with why.
    #[serde(skip)]
    pub out_of_service: Vec<String>,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRadius {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// With which others it is taken, from 1 on. Absent while it is held back.
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
    pub guests: Vec<GuestOutcome>,
}

impl NodeRadius {
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { nodes: 1, ..Totals::default() };
        self.guests.iter().for_each(|outcome| totals.add(outcome.effect));
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
pub fn blast_radius(plan: PlanContents<'_>, observed: &ObservedCluster) -> BlastRadius {
    let affected = affected(plan.items);
    let reboots = affected.is_some();
    let affected = affected.unwrap_or_default();
    let nodes = observed.nodes.items();
    let drained = is_drained(observed);
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
    let context = DrainContext::of(observed, drained);
    let mut by_node: HashMap<&str, Vec<(&Instance, GuestOutcome)>> = HashMap::new();
    let rebooting = || {
        rolls
            .iter()
            .filter_map(|(_, _, order)| order.as_ref())
            .flat_map(|order| order.candidates.iter().chain(&order.held_back))
    };
    rebooting().for_each(|node| drop(by_node.insert(&node.name, Vec::new())));
    for instance in observed.instances.items() {
        if let Some(guests) = by_node.get_mut(instance.node.as_str()) {
            guests.push((instance, context.outcome(instance)));
        }
    }
    by_node.values_mut().for_each(|guests| {
        guests.sort_by(|(_, one), (_, other)| {
            (one.effect, &one.namespace, &one.name).cmp(&(other.effect, &other.namespace, &other.name))
        });
    });
    let outcomes: HashMap<&str, &GuestOutcome> =
        by_node.values().flatten().map(|(instance, outcome)| (instance.uid.as_str(), outcome)).collect();
    let budgets =
        if drained { budgets::at_limit(observed, |node| by_node.contains_key(node), &outcomes) } else { Vec::new() };
    let others_unread =
        observed.namespace.as_ref().map(|own| Reading::Unreadable(format!("only those of {own} were read")));
    let pods = others_unread.as_ref().unwrap_or(&observed.pods);
    let knows_nodes = !rolls.is_empty() && rolls.iter().all(|(_, _, order)| order.is_some());
    let unknown = unknown_load(knows_nodes, observed, outcomes.values().copied());
    let capacity = match reboots && drained {
        true => capacity(&waves(&rolls), nodes, pods, observed.instances.items(), &outcomes).but_for(unknown),
        false => Capacity::of(CapacityResult::NotNeeded, 0),
    };

    let at_a_time = |order: &Order<'_>| order.at_a_time.max(1).min(order.candidates.len());
    let timing = Timing::of(observed, rolls.iter().filter_map(|(_, _, order)| order.as_ref().map(at_a_time)).sum());
    let knows_machines = !observed.instances.is_unreadable();
    // What is in other namespaces may hold any node.
    let (grace, waiting) = match observed.namespace {
        Some(_) => (None, None),
        None => (graces(observed), budgets::nodes(&budgets)),
    };
    let clock = Clock { timing: &timing, drained, grace, waiting, knows_machines };
    let pools: Vec<PoolRadius> =
        rolls.iter().map(|(name, change, order)| clock.pool(name, change, order.as_ref(), &by_node)).collect();
    let mut totals = Totals::default();
    for node in pools.iter().flat_map(|pool| &pool.nodes) {
        totals.nodes += 1;
        node.guests.iter().for_each(|outcome| totals.add(outcome.effect));
    }
    let duration = pools.iter().map(|pool| pool.duration).fold(Estimate::NONE, Estimate::beside);
    let basis = match reboots {
        true => timing.basis(&rebooting().copied().collect::<Vec<_>>(), totals.moves_live > 0),
        false => Vec::new(),
    };
    let unread = if reboots { unread(observed) } else { Vec::new() };
    let notes = if reboots {
        let instances = by_node.values().flatten().map(|(instance, _)| *instance);
        notes(observed, &ambiguous, totals.moves_live > 0, instances)
    } else {
        Vec::new()
    };
    let mut radius = BlastRadius {
        reboots,
        drained,
        namespace: observed.namespace.clone(),
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
fn graces(observed: &ObservedCluster) -> Option<HashMap<&str, u64>> {
    let mut graces: HashMap<&str, u64> = HashMap::new();
    for pod in observed.pods.value()?.iter().filter(|pod| !pod.stays && pod.instance.is_none()) {
        let grace = graces.entry(&pod.node).or_default();
        *grace = (*grace).max(pod.grace_seconds);
    }
    Some(graces)
}

/// What the times of pools and nodes are computed from.
struct Clock<'a> {
    timing: &'a Timing<'a>,
    drained: bool,
    grace: Option<HashMap<&'a str, u64>>,
    /// The nodes whose drain waits for a budget. None if it may be any node.
    waiting: Option<HashSet<&'a str>>,
    /// Whether it is known which virtual machines there are.
    knows_machines: bool,
}

impl Clock<'_> {
    fn pool(
        &self,
        name: &str,
        change: &Affected,
        order: Option<&Order<'_>>,
        by_node: &HashMap<&str, Vec<(&Instance, GuestOutcome)>>,
    ) -> PoolRadius {
        let Some(order) = order else {
            return PoolRadius {
                name: name.to_owned(),
                paused: change.paused,
                max_unavailable: None,
                at_a_time: 0,
                out_of_service: Vec::new(),
                done: 0,
                expected_nodes: change.nodes,
                nodes: Vec::new(),
                duration: Estimate::UNKNOWN,
            };
        };
        let guests = |node: &Node| by_node.get(node.name.as_str()).map_or(&[][..], Vec::as_slice);
        let mut nodes = Vec::new();
        for (position, node) in order.candidates.iter().enumerate() {
            nodes.push(self.node(node, Some(order.wave(position) + 1), guests(node)));
        }
        let totals: Vec<Estimate> = nodes.iter().map(|node| node.total).collect();
        nodes.extend(order.held_back.iter().map(|node| self.node(node, None, guests(node))));
        let rolled = Estimate::rolling(&totals, order.at_a_time).then(self.second_moves(order, &guests));
        let stands_still = (order.at_a_time == 0 || !order.held_back.is_empty()) && !nodes.is_empty();
        PoolRadius {
            name: name.to_owned(),
            paused: order.is_paused,
            max_unavailable: Some(order.max_unavailable),
            at_a_time: order.at_a_time,
            out_of_service: order
                .out_of_service
                .iter()
                .map(|node| format!("{} is {}", node.name, node.out_of_service()))
                .collect(),
            done: order.done,
            expected_nodes: None,
            nodes,
            // Nobody knows when nodes that others have taken out of service come back.
            duration: if stands_still { Estimate { max_seconds: None, ..rolled } } else { rolled },
        }
    }

    /// Guests leave a node twice only as long as no node is done.
    fn second_moves<'a>(
        &self,
        order: &Order<'_>,
        guests: &impl Fn(&Node) -> &'a [(&'a Instance, GuestOutcome)],
    ) -> Estimate {
        let (first, waiting) = order.candidates.split_at(order.at_a_time.max(1).min(order.candidates.len()));
        if order.done > 0 || waiting.is_empty() || !self.drained {
            return Estimate::NONE;
        }
        let guests = first.iter().flat_map(|node| guests(node)).map(|(instance, outcome)| (*instance, outcome));
        self.timing.second_moves(&guests.collect::<Vec<_>>(), waiting.len())
    }

    fn node(&self, node: &Node, wave: Option<usize>, guests: &[(&Instance, GuestOutcome)]) -> NodeRadius {
        let known: Vec<(&Instance, &GuestOutcome)> =
            guests.iter().map(|(instance, outcome)| (*instance, outcome)).collect();
        let waits = self.waiting.as_ref().is_none_or(|nodes| nodes.contains(node.name.as_str()));
        let is_open = waits || !self.knows_machines;
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
            guests: guests.iter().map(|(_, outcome)| outcome.clone()).collect(),
        }
    }
}
