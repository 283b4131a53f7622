//! How long a drain and a reboot take, as a range. What is assumed is said; where nothing is known, a range has no end.

use super::{
    DrainEffect, Estimate, GuestOutcome, Instance, Node, ObservedCluster, ObservedMigration, Platform, Reboot,
    attempts::{AT_A_TIME, noticed, noticed_at_most},
    counted,
    estimate::{at_least, at_most},
};

/// Between drain and reboot the machine config daemon writes files and deploys the operating system. Nothing measures that.
const APPLY: Estimate = Estimate { min_seconds: 60, max_seconds: Some(120) };

/// From so many values on, the outermost tenths are left out.
const MANY: usize = 10;

const GIB: u64 = 1 << 30;

/// What is known about time in this cluster.
#[derive(Debug)]
pub(super) struct Timing<'a> {
    platform: Option<&'a Platform>,
    /// The range of past migrations, and their number.
    migrations: Option<(u64, u64, usize)>,
    reboots: &'a [Reboot],
    /// How many nodes drain at the same time, in all pools.
    nodes_at_a_time: u64,
}

impl<'a> Timing<'a> {
    pub(super) fn of(observed: &'a ObservedCluster, nodes_at_a_time: usize) -> Self {
        let seconds = observed.migrations.items().iter().filter_map(|migration: &ObservedMigration| migration.seconds);
        Timing {
            platform: observed.platform.value(),
            migrations: range(seconds.collect()),
            reboots: observed.reboots.items(),
            nodes_at_a_time: u64::try_from(nodes_at_a_time.max(1)).unwrap_or(u64::MAX),
        }
    }

    /// The drain of a node with these virtual machines. `pods` is the longest time that its other pods may take to end, if known.
    /// `is_open` says that something else may keep the drain from ending.
    pub(super) fn drain(&self, guests: &[(&Instance, &GuestOutcome)], pods: Option<u64>, is_open: bool) -> Estimate {
        let of = |effect: DrainEffect| guests.iter().filter(move |(_, outcome)| outcome.effect == effect);
        let moving: Vec<&Instance> = of(DrainEffect::MovesLive).map(|(instance, _)| *instance).collect();
        let shutdown = guests.iter().filter_map(|(_, outcome)| outcome.shutdown_seconds).max().unwrap_or(0);
        let ends = Estimate { min_seconds: 0, max_seconds: pods.map(|pods| pods.max(shutdown)) };
        let work = self.migrations(&moving).beside(ends);
        let at_most = |work: u64| noticed_at_most(work, self.nodes_at_a_time);
        let drain = Estimate { min_seconds: noticed(work.min_seconds), max_seconds: work.max_seconds.map(at_most) };
        let is_open = is_open || of(DrainEffect::BlocksDrain).chain(of(DrainEffect::Unknown)).next().is_some();
        if is_open { drain.endless() } else { drain }
    }

    /// All migrations from one node.
    fn migrations(&self, moving: &[&Instance]) -> Estimate {
        if moving.is_empty() {
            return Estimate::NONE;
        }
        let each: Vec<Estimate> = moving.iter().map(|instance| self.migration(instance)).collect();
        let Some(platform) = self.platform else {
            let longest = each.iter().map(|one| one.min_seconds).max().unwrap_or(0);
            return Estimate { min_seconds: longest, max_seconds: None };
        };
        let count = u64::try_from(moving.len()).unwrap_or(u64::MAX);
        let at_best = platform.per_node.min(platform.per_cluster);
        let longest = each.iter().map(|one| one.min_seconds).max().unwrap_or(0);
        let sum = each.iter().map(|one| one.min_seconds).fold(0, u64::saturating_add);
        // Nodes that drain at the same time share what the cluster allows.
        let share = self.share(platform);
        let turns = self.nodes_at_a_time.div_ceil(platform.per_cluster);
        let longest_at_most =
            each.iter().map(|one| one.max_seconds).try_fold(0, |most, one| one.map(|one| one.max(most)));
        let sum_at_most =
            each.iter().map(|one| one.max_seconds).try_fold(0_u64, |sum, one| one.map(|one| sum.saturating_add(one)));
        let at_most = longest_at_most.zip(sum_at_most).map(|(longest, sum)| {
            // Whatever the order, a place is idle only while the last one runs.
            let packed = sum.saturating_add(longest.saturating_mul(share - 1)).div_ceil(share);
            packed.min(count.div_ceil(share).saturating_mul(longest)).saturating_mul(turns)
        });
        Estimate { min_seconds: longest.max(sum.div_ceil(at_best)), max_seconds: at_most }
    }

    /// How many migrations from one node are sure to run at a time.
    fn share(&self, platform: &Platform) -> u64 {
        (platform.per_cluster / self.nodes_at_a_time).clamp(1, platform.per_node)
    }

    /// What guests of the first nodes may add to the drains of others. No node has its update behind it yet, so these guests go to nodes
    /// that wait for their own, spread over them or not, and have to leave once more.
    pub(super) fn second_moves(&self, guests: &[(&Instance, &GuestOutcome)], waiting: usize) -> Estimate {
        let of = |effect: DrainEffect| guests.iter().filter(move |(_, outcome)| outcome.effect == effect);
        let each = of(DrainEffect::MovesLive).map(|(instance, _)| self.migration(instance).max_seconds);
        let longest = each.clone().try_fold(0, |most, one| one.map(|one| one.max(most)));
        let [count, nodes] = [each.count(), waiting].map(|number| u64::try_from(number).unwrap_or(u64::MAX));
        let share = self.platform.map_or(1, |platform| self.share(platform));
        // On each node the last turn may not be full.
        let turns = count.min(count.saturating_add(nodes.saturating_mul(share - 1)) / share);
        let mut shutdowns: Vec<u64> =
            of(DrainEffect::Restarts).filter_map(|(_, outcome)| outcome.shutdown_seconds).collect();
        shutdowns.sort_unstable_by(|one, other| other.cmp(one));
        let shutdowns = shutdowns.into_iter().take(waiting).fold(0, u64::saturating_add);
        let moves = longest.map(|longest| longest.saturating_mul(turns));
        Estimate { min_seconds: 0, max_seconds: moves.map(|moves| moves.saturating_add(shutdowns)) }
    }

    fn migration(&self, instance: &Instance) -> Estimate {
        if let Some((min, max, _)) = self.migrations {
            return Estimate { min_seconds: min, max_seconds: Some(max) };
        }
        let Some((platform, memory)) = self.platform.zip(instance.memory) else { return Estimate::UNKNOWN };
        let at_least = platform.bandwidth.map_or(0, |bandwidth| memory / bandwidth);
        // Local disks are copied too, and nothing tells how large they are.
        let at_most = memory.div_ceil(GIB).saturating_mul(platform.seconds_per_gib);
        Estimate { min_seconds: at_least, max_seconds: (!instance.copies_disks).then_some(at_most.max(at_least)) }
    }

    /// From the end of the drain until the node is ready again.
    pub(super) fn reboot(&self, node: &Node) -> Estimate {
        let own: Vec<u64> =
            self.reboots.iter().filter(|seen| seen.node == node.name).map(|seen| seen.seconds).collect();
        let all = || self.reboots.iter().map(|seen| seen.seconds).collect();
        let seen = range(own)
            .or_else(|| range(all()))
            .map(|(min, max, _)| Estimate { min_seconds: min, max_seconds: Some(max) });
        APPLY.then(seen.unwrap_or_else(|| documented(node.provider.as_deref())))
    }

    /// What the ranges come from, in words.
    pub(super) fn basis(&self, nodes: &[&Node], some_move: bool) -> Vec<String> {
        let mut basis = Vec::new();
        if some_move {
            basis.push(match (self.migrations, self.platform) {
                (Some((min, max, count)), _) => {
                    format!("{} took {}", counted(count, "past migration"), from_to(min, max))
                }
                (None, Some(platform)) => format!(
                    "no past migration is known: one takes at most the time after which KubeVirt gives up, {} s per GiB",
                    platform.seconds_per_gib
                ),
                (None, None) => "nothing is known about migrations".into(),
            });
            if let Some(platform) = self.platform {
                let Platform { per_node, per_cluster, .. } = platform;
                basis.push(format!("migrations at a time: {per_node} from a node, {per_cluster} in the cluster"));
            }
        }
        if self.nodes_at_a_time > AT_A_TIME {
            basis.push(format!(
                "{} nodes drain at the same time, and the machine config operator works on {AT_A_TIME} of them at a time: the others wait",
                self.nodes_at_a_time
            ));
        }
        basis.push(match range(self.reboots.iter().map(|seen| seen.seconds).collect()) {
            Some((min, max, count)) => {
                format!("{} seen here took {}", counted(count, "reboot"), from_to(min, max))
            }
            None if nodes.iter().all(|node| documented(node.provider.as_deref()).max_seconds.is_some()) => {
                "no reboot was seen here: 1 to 2 minutes, as OpenShift's documentation says of clouds in \"Understanding \
                 update duration\""
                    .into()
            }
            None => "no reboot was seen here, and nothing tells how long one takes on these machines".into(),
        });
        basis.push(format!("{} are assumed between drain and reboot, in which a node writes the change", APPLY.text()));
        basis
    }
}

/// `2m`, `2m to 5m`
fn from_to(min: u64, max: u64) -> String {
    let (min, max) = (at_least(min), at_most(max));
    if min == max { min } else { format!("{min} to {max}") }
}

/// What OpenShift's documentation says about reboots, in "Understanding update duration", "Estimating cluster update time": one or
/// two minutes on clouds, and on bare metal it may be more than 15.
fn documented(provider: Option<&str>) -> Estimate {
    match provider {
        Some("aws" | "azure" | "gce" | "ibm" | "openstack" | "alicloud" | "vsphere" | "nutanix") => {
            Estimate { min_seconds: 60, max_seconds: Some(120) }
        }
        _ => Estimate::UNKNOWN,
    }
}

/// The smallest and the largest value and their number; of many values without the outermost tenths.
fn range(mut values: Vec<u64>) -> Option<(u64, u64, usize)> {
    values.sort_unstable();
    let count = values.len();
    let skipped = if count >= MANY { count / 10 } else { 0 };
    Some((*values.get(skipped)?, *values.get(count.checked_sub(skipped + 1)?)?, count))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::blast_radius::Reading;

    fn instance(gib: u64, copies_disks: bool) -> Instance {
        Instance::of(&json!({
            "metadata": {"namespace": "n", "name": "a"},
            "spec": {"domain": {"memory": {"guest": format!("{gib}Gi")}}},
            "status": {"phase": "Running", "nodeName": "x", "migrationMethod": if copies_disks { "BlockMigration" } else { "LiveMigration" }},
        }))
        .unwrap()
    }

    fn timing<'a>(platform: &'a Platform, past: &[u64], nodes_at_a_time: u64) -> Timing<'a> {
        Timing { platform: Some(platform), migrations: range(past.to_vec()), reboots: &[], nodes_at_a_time }
    }

    fn platform(per_node: u64, per_cluster: u64) -> Platform {
        Platform { per_node, per_cluster, ..Platform::of(&json!({})) }
    }

    #[test]
    fn a_node_drains_at_its_own_rate_and_shares_the_rate_of_the_cluster() {
        let guests: Vec<Instance> = (0..30).map(|_| instance(1, false)).collect();
        let moving: Vec<&Instance> = guests.iter().collect();
        for (case, per_node, per_cluster, nodes, expected) in [
            ("one at a time", 1, 5, 1, (3600, 3600)),
            ("two at a time", 2, 5, 1, (1800, 1800)),
            ("more than the cluster allows", 9, 5, 1, (720, 720)),
            ("two nodes share five", 4, 5, 2, (900, 1800)),
            ("ten nodes share five", 2, 5, 10, (1800, 7200)),
        ] {
            let platform = platform(per_node, per_cluster);
            let found = timing(&platform, &[120], nodes).migrations(&moving);
            assert_eq!((found.min_seconds, found.max_seconds), (expected.0, Some(expected.1)), "{case}");
        }
    }

    #[test]
    fn guests_of_the_first_nodes_may_have_to_leave_a_second_time() {
        let platform = platform(2, 5);
        let timing = timing(&platform, &[100, 140], 1);
        let moving = instance(1, false);
        let outcome = |effect: DrainEffect| GuestOutcome {
            namespace: "n".into(),
            name: "a".into(),
            uid: "u".into(),
            node: "x".into(),
            effect,
            cause: String::new(),
            reason: None,
            message: None,
            hosted_cluster: false,
            shutdown_seconds: (effect != DrainEffect::MovesLive).then_some(60),
        };
        for (case, moves, restarts, stays_down, waiting, expected) in [
            ("nobody is on them", 0, 0, 0, 3, 0),
            ("one after the other on one node", 4, 0, 0, 1, 2 * 140),
            ("each with a turn of its own on another node", 2, 0, 0, 2, 2 * 140),
            ("some of them at a time", 4, 0, 0, 2, 3 * 140),
            ("restarts on as many nodes", 0, 3, 0, 2, 2 * 60),
            ("who stays down goes nowhere", 0, 0, 5, 2, 0),
            ("no node waits", 0, 3, 0, 0, 0),
        ] {
            let effects = [
                (DrainEffect::MovesLive, moves),
                (DrainEffect::Restarts, restarts),
                (DrainEffect::StaysDown, stays_down),
            ];
            let outcomes: Vec<GuestOutcome> =
                effects.into_iter().flat_map(|(effect, count)| std::iter::repeat_n(outcome(effect), count)).collect();
            let guests: Vec<_> = outcomes.iter().map(|outcome| (&moving, outcome)).collect();
            let found = timing.second_moves(&guests, waiting);
            assert_eq!(found, Estimate { min_seconds: 0, max_seconds: Some(expected) }, "{case}");
        }
    }

    #[test]
    fn without_past_migrations_only_kubevirts_own_limits_are_known() {
        let mut platform = platform(2, 5);
        let estimate = |platform: &Platform, instance: &Instance| {
            let found = timing(platform, &[], 1).migration(instance);
            (found.min_seconds, found.max_seconds)
        };
        assert_eq!(estimate(&platform, &instance(4, false)), (0, Some(600)), "given up after 150 s per GiB");
        assert_eq!(estimate(&platform, &instance(4, true)), (0, None), "disks of unknown size");
        platform.bandwidth = Some(64 << 20);
        assert_eq!(estimate(&platform, &instance(4, false)), (64, Some(600)));
        let unknown = Timing { platform: None, ..timing(&platform, &[], 1) };
        assert_eq!(unknown.migration(&instance(4, false)), Estimate::UNKNOWN);
    }

    #[test]
    fn what_the_times_come_from_is_said_and_so_is_what_is_assumed() {
        let platform = platform(2, 5);
        let node = Node::of(&json!({"metadata": {"name": "a"}, "spec": {"providerID": "aws:///x"}})).unwrap();
        let basis = |past: &[u64], reboots: &[Reboot]| {
            let timing = Timing { reboots, ..timing(&platform, past, 1) };
            timing.basis(&[&node], true)
        };
        let reboot = |seconds| Reboot { node: "a".into(), seconds };
        assert_eq!(
            basis(&[120], &[reboot(300)]),
            [
                "1 past migration took 2m",
                "migrations at a time: 2 from a node, 5 in the cluster",
                "1 reboot seen here took 5m",
                "1m–2m are assumed between drain and reboot, in which a node writes the change",
            ]
        );
        let several = basis(&[120, 300], &[reboot(300), reboot(600)]);
        assert_eq!(several[0], "2 past migrations took 2m to 5m");
        assert_eq!(several[2], "2 reboots seen here took 5m to 10m");
        assert!(basis(&[], &[])[2].contains("1 to 2 minutes, as OpenShift's documentation says"));
    }

    #[test]
    fn the_outermost_of_many_values_do_not_count() {
        assert_eq!(range(vec![]), None);
        assert_eq!(range(vec![7]), Some((7, 7, 1)));
        assert_eq!(range(vec![30, 1, 20]), Some((1, 30, 3)));
        assert_eq!(range((1..=20).chain([9999]).collect()), Some((3, 19, 21)));
    }

    #[test]
    fn a_reboot_takes_as_long_as_those_seen_and_else_what_is_documented() {
        let node = |provider: &str| {
            Node::of(&json!({"metadata": {"name": "a"}, "spec": {"providerID": format!("{provider}:///x")}})).unwrap()
        };
        let seen = |node: &str, seconds| Reboot { node: node.into(), seconds };
        let reboots = vec![seen("a", 300), seen("b", 900)];
        let observed = ObservedCluster { reboots: Reading::Read(reboots), ..ObservedCluster::default() };
        let range = |observed: &ObservedCluster, node: &Node| {
            let found = Timing::of(observed, 1).reboot(node);
            (found.min_seconds, found.max_seconds)
        };
        assert_eq!(range(&observed, &node("aws")), (360, Some(420)), "its own reboots, and a minute or two before");
        let mut other = node("aws");
        other.name = "c".into();
        assert_eq!(range(&observed, &other), (360, Some(1020)), "those of others");
        let nothing = ObservedCluster::default();
        assert_eq!(range(&nothing, &node("aws")), (120, Some(240)));
        assert_eq!(range(&nothing, &node("baremetalhost")), (60, None));
    }
}
