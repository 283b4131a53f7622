//! Spare capacity: whether what leaves the nodes of each wave fits elsewhere, by what it requests.
//!
//! The rollout is played wave by wave. A node that is done comes back empty, and is preferred from then on, because the machine config
//! operator marks all others with a taint that the scheduler avoids. Among equal nodes the one with the most free memory is taken.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use serde::Serialize;

use super::{
    Fate, Instance, Node, Outcome, Pod, Reading,
    demand::{Demand, Resources},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Nothing has to move.
    NotNeeded,
    Enough,
    Short,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    pub verdict: Verdict,
    /// The most nodes that are away at a time.
    pub nodes_away: usize,
    /// Why nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Virtual machines that fit nowhere.
    pub stranded: Vec<Stranded>,
    /// How many other pods fit nowhere.
    pub stranded_pods: usize,
}

impl Capacity {
    pub(super) fn of(verdict: Verdict, nodes_away: usize) -> Self {
        Capacity { verdict, nodes_away, why: None, stranded: Vec::new(), stranded_pods: 0 }
    }
}

/// A virtual machine that fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stranded {
    pub namespace: String,
    pub name: String,
    pub node: String,
    /// The first constraint after which no node is left.
    pub constraint: String,
}

/// Something on a node that has to go when the node is drained.
struct Load<'a> {
    /// Virtual machines have one.
    outcome: Option<&'a Outcome>,
    demand: &'a Demand,
}

impl Load<'_> {
    /// Whether it needs another node.
    fn moves(&self) -> bool {
        self.outcome.is_none_or(|outcome| matches!(outcome.fate, Fate::MovesLive | Fate::Restarts))
    }

    /// Whether it leaves its node at all.
    fn leaves(&self) -> bool {
        self.outcome.is_none_or(|outcome| outcome.fate != Fate::BlocksDrain)
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
}

impl Site<'_> {
    fn rank(&self) -> Rank {
        (Reverse(self.is_preferred), Reverse(self.free.memory))
    }

    fn is_open(&self) -> bool {
        !self.is_away && self.node.is_in_service()
    }
}

/// All waves of all pools: pools roll out at the same time.
pub(super) fn capacity<'a>(
    waves: &[Vec<&'a str>],
    nodes: &'a [Node],
    pods: &'a Reading<Vec<Pod>>,
    instances: &'a [Instance],
    outcomes: &HashMap<&str, &'a Outcome>,
) -> Capacity {
    let nodes_away = waves.iter().map(Vec::len).max().unwrap_or(0);
    let pods = match pods {
        Reading::Read(pods) => pods,
        Reading::NotServed => return Capacity::of(Verdict::Unknown, nodes_away),
        Reading::Unreadable(why) => {
            let why = Some(format!("what is free on nodes is known only from all pods, and these are not: {why}"));
            return Capacity { why, ..Capacity::of(Verdict::Unknown, nodes_away) };
        }
    };
    let mut sites = Sites::of(waves, nodes, pods, instances, outcomes);
    let mut found = Capacity::of(Verdict::NotNeeded, nodes_away);
    for wave in waves {
        sites.play(wave, &mut found);
    }
    let is_short = !found.stranded.is_empty() || found.stranded_pods > 0;
    found.verdict = match (is_short, sites.moved) {
        (true, _) => Verdict::Short,
        (false, true) => Verdict::Enough,
        (false, false) => Verdict::NotNeeded,
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
        outcomes: &HashMap<&str, &'a Outcome>,
    ) -> Self {
        let waiting: BTreeSet<&str> = waves.iter().flatten().copied().collect();
        let site = |node: &'a Node| Site {
            node,
            free: node.allocatable.clone(),
            loads: Vec::new(),
            is_preferred: !waiting.contains(node.name.as_str()),
            is_away: false,
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
        let mut leaving: Vec<(usize, Load<'a>)> = Vec::new();
        for &position in &away {
            self.ranked.remove(&(self.sites[position].rank(), position));
            let site = &mut self.sites[position];
            site.is_away = true;
            let (gone, kept) = std::mem::take(&mut site.loads).into_iter().partition(Load::leaves);
            site.loads = kept;
            for load in &gone {
                let requests = &load.demand.requests;
                site.free.add(requests);
            }
            let gone: Vec<Load<'a>> = gone;
            leaving.extend(gone.into_iter().map(|load| (position, load)));
        }
        // The largest first: what comes late finds what is left.
        leaving.sort_by_key(|(_, load)| Reverse((load.outcome.is_some(), load.demand.requests.memory)));
        for (from, load) in leaving.into_iter().filter(|(_, load)| load.moves()) {
            self.moved = true;
            match (self.place(load.demand), load.outcome) {
                (Some(position), _) => self.settle(position, load),
                (None, None) => found.stranded_pods += 1,
                (None, Some(outcome)) => found.stranded.push(Stranded {
                    namespace: outcome.namespace.clone(),
                    name: outcome.name.clone(),
                    node: self.sites[from].node.name.clone(),
                    constraint: self.constraint(load.demand),
                }),
            }
        }
        for position in away {
            let site = &mut self.sites[position];
            (site.is_away, site.is_preferred) = (false, true);
            if site.is_open() {
                self.ranked.insert((site.rank(), position));
            }
        }
    }

    fn place(&self, demand: &Demand) -> Option<usize> {
        let fits = |position: &usize| {
            let site = &self.sites[*position];
            let others = &demand.requests.others;
            demand.requests.memory <= site.free.memory
                && demand.requests.cpu <= site.free.cpu
                && others.iter().all(|(name, amount)| *amount <= site.free.other(name))
                && is_allowed(demand, site.node)
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
        left.retain(|site| allowed_by_affinity(demand, site.node));
        if left.is_empty() {
            return "node affinity: it allows no other node in service".into();
        }
        let tainted = left.iter().find_map(|site| site.node.taints.iter().find(|taint| !demand.tolerates(taint)));
        let tainted = tainted.map(ToString::to_string).unwrap_or_default();
        left.retain(|site| site.node.taints.iter().all(|taint| demand.tolerates(taint)));
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

fn is_allowed(demand: &Demand, node: &Node) -> bool {
    demand.selector.matches(&node.labels)
        && allowed_by_affinity(demand, node)
        && node.taints.iter().all(|taint| demand.tolerates(taint))
}

fn allowed_by_affinity(demand: &Demand, node: &Node) -> bool {
    demand.affinity.as_ref().is_none_or(|affinity| affinity.allows(&node.name, &node.labels))
}
