//! Spare capacity: whether what leaves the nodes of each wave fits elsewhere, by what it requests.
//! The rollout is played wave by wave. A node that is done comes back empty, and is preferred from then on, because the machine config
//! operator marks all others with a taint that the scheduler avoids. Among equal nodes the one with the most free memory is taken.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use schemars::JsonSchema;
use serde::Serialize;

use super::{DrainEffect, GuestOutcome, Instance, Node, Pod, Reading};
use crate::demand::{Demand, Resources};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CapacityResult {
    /// Nothing has to move.
    NotNeeded,
    Enough,
    Short,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    pub result: CapacityResult,
    /// The most nodes that are away at a time.
    pub nodes_away: usize,
    /// Why nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Virtual machines that fit nowhere.
    pub unschedulable: Vec<UnschedulableGuest>,
    /// How many other pods fit nowhere.
    pub unschedulable_pods: usize,
}

impl Capacity {
    pub(super) fn of(result: CapacityResult, nodes_away: usize) -> Self {
        Capacity { result, nodes_away, why: None, unschedulable: Vec::new(), unschedulable_pods: 0 }
    }

    /// The same if there may be more that needs room. What has none stays without.
    pub(super) fn but_for(self, unknown: Option<String>) -> Self {
        match (self.result, unknown) {
            (CapacityResult::NotNeeded | CapacityResult::Enough, why @ Some(_)) => {
                Capacity { result: CapacityResult::Unknown, why, ..self }
            }
            _ => self,
        }
    }
}

/// A virtual machine that fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnschedulableGuest {
    pub namespace: String,
    pub name: String,
    /// Where it is now. Earlier waves may have moved it by then.
    pub node: String,
    /// The first constraint after which no node is left.
    pub constraint: String,
}

/// Something on a node that has to go when the node is drained.
struct Load<'a> {
    /// Virtual machines have one.
    outcome: Option<&'a GuestOutcome>,
    demand: &'a Demand,
}

impl Load<'_> {
    /// Whether it needs another node.
    fn moves(&self) -> bool {
        self.outcome.is_none_or(|outcome| matches!(outcome.effect, DrainEffect::MovesLive | DrainEffect::Restarts))
    }

    /// Whether it leaves its node at all.
    fn leaves(&self) -> bool {
        self.outcome.is_none_or(|outcome| outcome.effect != DrainEffect::BlocksDrain)
    }
}

/// Preferred nodes first, then those with the most free memory.
type Rank = (Reverse<bool>, Reverse<u64>);

struct Site<'a> {
    node: &'a Node,
    free: Resources,
    loads: Vec<Load<'a>>,
    /// The rollout is done with it, or does not concern it.
    is_preferred: bool,
    is_away: bool,
    /// It takes nothing now. Its own wave opens it again; what others have closed, they open.
    is_closed: bool,
}

impl Site<'_> {
    fn rank(&self) -> Rank {
        (Reverse(self.is_preferred), Reverse(self.free.memory))
    }

    fn is_open(&self) -> bool {
        !self.is_away && !self.is_closed
    }
}

/// All waves of all pools: pools roll out at the same time.
pub(super) fn capacity<'a>(
    waves: &[Vec<&'a str>],
    nodes: &'a [Node],
    pods: &'a Reading<Vec<Pod>>,
    instances: &'a [Instance],
    outcomes: &HashMap<&str, &'a GuestOutcome>,
) -> Capacity {
    let nodes_away = waves.iter().map(Vec::len).max().unwrap_or(0);
    let pods = match pods {
        Reading::Read(pods) => pods,
        Reading::NotServed => return Capacity::of(CapacityResult::Unknown, nodes_away),
        Reading::Unreadable(why) => {
            let why = Some(format!("what is free on nodes is known only from all pods, and these are not: {why}"));
            return Capacity { why, ..Capacity::of(CapacityResult::Unknown, nodes_away) };
        }
    };
    let mut sites = Sites::of(waves, nodes, pods, instances, outcomes);
    let mut found = Capacity::of(CapacityResult::NotNeeded, nodes_away);
    for wave in waves {
        sites.play(wave, &mut found);
    }
    let is_short = !found.unschedulable.is_empty() || found.unschedulable_pods > 0;
    found.result = match (is_short, sites.moved) {
        (true, _) => CapacityResult::Short,
        (false, true) => CapacityResult::Enough,
        (false, false) => CapacityResult::NotNeeded,
    };
    found
}

struct Sites<'a> {
    sites: Vec<Site<'a>>,
    positions: HashMap<&'a str, usize>,
    /// The sites that can take something, the best one first.
    ranked: BTreeSet<(Rank, usize)>,
    moved: bool,
}

impl<'a> Sites<'a> {
    fn of(
        waves: &[Vec<&'a str>],
        nodes: &'a [Node],
        pods: &'a [Pod],
        instances: &'a [Instance],
        outcomes: &HashMap<&str, &'a GuestOutcome>,
    ) -> Self {
        let waiting: BTreeSet<&str> = waves.iter().flatten().copied().collect();
        let site = |node: &'a Node| Site {
            node,
            free: node.allocatable.clone(),
            loads: Vec::new(),
            is_preferred: !waiting.contains(node.name.as_str()),
            is_away: false,
            is_closed: !node.is_in_service(),
        };
        let mut sites: Vec<Site<'a>> = nodes.iter().map(site).collect();
        let positions: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(position, node)| (node.name.as_str(), position)).collect();
        let by_uid: HashMap<&str, &Instance> = instances.iter().map(|known| (known.uid.as_str(), known)).collect();
        let mut placed: BTreeSet<&str> = BTreeSet::new();
        for pod in pods {
            let Some(site) = positions.get(pod.node.as_str()).and_then(|position| sites.get_mut(*position)) else {
                continue;
            };
            site.free.take(&pod.demand.requests);
            let instance = pod.instance.as_deref().and_then(|uid| by_uid.get(uid));
            match instance.filter(|instance| pod.runs(instance)) {
                Some(instance) => {
                    placed.insert(&instance.uid);
                    let outcome = outcomes.get(instance.uid.as_str()).copied();
                    site.loads.extend(outcome.map(|outcome| Load { outcome: Some(outcome), demand: &pod.demand }));
                }
                // The target of a migration stays where it is.
                None if pod.stays || pod.instance.is_some() => {}
                None => site.loads.push(Load { outcome: None, demand: &pod.demand }),
            }
        }
        // A virtual machine whose pod was not seen takes at least what its own spec asks for.
        for instance in instances.iter().filter(|instance| !placed.contains(instance.uid.as_str())) {
            let position = positions.get(instance.node.as_str());
            let Some(site) = position.and_then(|position| sites.get_mut(*position)) else { continue };
            site.free.take(&instance.demand.requests);
            let outcome = outcomes.get(instance.uid.as_str()).copied();
            site.loads.extend(outcome.map(|outcome| Load { outcome: Some(outcome), demand: &instance.demand }));
        }
        let ranked = sites.iter().enumerate().filter(|(_, site)| site.is_open());
        let ranked = ranked.map(|(position, site)| (site.rank(), position)).collect();
        Sites { sites, positions, ranked, moved: false }
    }

    /// Drains the nodes of one wave, and brings them back.
    fn play(&mut self, wave: &[&'a str], found: &mut Capacity) {
        let away: Vec<usize> = wave.iter().filter_map(|name| self.positions.get(name).copied()).collect();
        let mut leaving: Vec<Load<'a>> = Vec::new();
        for &position in &away {
            self.ranked.remove(&(self.sites[position].rank(), position));
            let site = &mut self.sites[position];
            site.is_away = true;
            let (gone, kept): (Vec<Load<'a>>, _) = std::mem::take(&mut site.loads).into_iter().partition(Load::leaves);
            site.loads = kept;
            for load in &gone {
                let requests = &load.demand.requests;
                site.free.add(requests);
            }
            leaving.extend(gone);
        }
        // The largest first: what comes late finds what is left.
        leaving.sort_by_key(|load| Reverse((load.outcome.is_some(), load.demand.requests.memory)));
        for load in leaving.into_iter().filter(Load::moves) {
            self.moved = true;
            match (self.place(load.demand), load.outcome) {
                (Some(position), _) => self.settle(position, load),
                (None, None) => found.unschedulable_pods += 1,
                (None, Some(outcome)) => found.unschedulable.push(UnschedulableGuest {
                    namespace: outcome.namespace.clone(),
                    name: outcome.name.clone(),
                    node: outcome.node.clone(),
                    constraint: self.constraint(load.demand),
                }),
            }
        }
        for position in away {
            let site = &mut self.sites[position];
            (site.is_away, site.is_closed, site.is_preferred) = (false, false, true);
            self.ranked.insert((site.rank(), position));
        }
    }

    fn place(&self, demand: &Demand) -> Option<usize> {
        let fits = |position: &usize| {
            let site = &self.sites[*position];
            let others = &demand.requests.others;
            demand.requests.memory <= site.free.memory
                && demand.requests.cpu <= site.free.cpu
                && others.iter().all(|(name, amount)| *amount <= site.free.other(name))
                && demand.allows(&site.node.name, &site.node.labels, &site.node.taints)
        };
        self.ranked.iter().map(|(_, position)| *position).find(fits)
    }

    fn settle(&mut self, position: usize, load: Load<'a>) {
        let site = &mut self.sites[position];
        self.ranked.remove(&(site.rank(), position));
        site.free.take(&load.demand.requests);
        site.loads.push(load);
        self.ranked.insert((site.rank(), position));
    }

    /// The constraints one after the other: the first after which no node is left.
    fn constraint(&self, demand: &Demand) -> String {
        let mut left: Vec<&Site<'_>> = self.sites.iter().filter(|site| site.is_open()).collect();
        if left.is_empty() {
            return "no other node is in service".into();
        }
        left.retain(|site| demand.selector.matches(&site.node.labels));
        if left.is_empty() {
            return format!("node selector: no other node in service has {}", demand.selector_text);
        }
        left.retain(|site| demand.affinity_allows(&site.node.name, &site.node.labels));
        if left.is_empty() {
            return "node affinity: it allows no other node in service".into();
        }
        let tainted = left.iter().find_map(|site| site.node.taints.iter().find(|taint| !demand.tolerates(taint)));
        let tainted = tainted.map(ToString::to_string).unwrap_or_default();
        left.retain(|site| demand.tolerates_all(&site.node.taints));
        if left.is_empty() {
            return format!("taint: all other nodes have one that it does not tolerate, for example {tainted}");
        }
        let requests = &demand.requests;
        let cpu = ("CPU", requests.cpu, Amount::Thousandths, Box::new(|site: &Site<'_>| site.free.cpu) as Measure<'_>);
        let memory =
            ("memory", requests.memory, Amount::Bytes, Box::new(|site: &Site<'_>| site.free.memory) as Measure<'_>);
        let others = requests.others.iter().map(|(name, amount)| {
            (
                name.as_str(),
                *amount,
                Amount::Units,
                Box::new(move |site: &Site<'_>| site.free.other(name)) as Measure<'_>,
            )
        });
        for (name, needed, amount, free) in [cpu, memory].into_iter().chain(others) {
            let most = left.iter().map(|site| free(site)).max().unwrap_or(0);
            left.retain(|site| needed <= free(site));
            if left.is_empty() {
                return format!(
                    "{name}: it requests {}, and at most {} are free",
                    amount.text(needed),
                    amount.text(most)
                );
            }
        }
        // Unreachable while `place` looks at the same constraints.
        "no node fits".into()
    }
}

type Measure<'a> = Box<dyn Fn(&Site<'_>) -> u64 + 'a>;

#[derive(Clone, Copy)]
enum Amount {
    Thousandths,
    Bytes,
    Units,
}

impl Amount {
    fn text(self, amount: u64) -> String {
        match self {
            Amount::Thousandths if amount.is_multiple_of(1000) => format!("{}", amount / 1000),
            Amount::Thousandths => format!("{amount}m"),
            Amount::Bytes => format!("{:.1} GiB", amount as f64 / f64::from(1 << 30)),
            Amount::Units => amount.to_string(),
        }
    }
}
