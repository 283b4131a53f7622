//! How long a drain and a reboot take, as a range. Nothing is made up: where nothing is known, a range has no end.

use serde::Serialize;

use super::{Fate, Instance, Migration, Node, Observed, Outcome, Platform, Reboot};

/// One attempt of the machine config controller to drain a node, in seconds.
const ATTEMPT: u64 = 90;
/// The pause after an attempt that failed early, and after one that failed later than `PATIENCE`.
const PAUSE: u64 = 60;
const LONG_PAUSE: u64 = 300;
const PATIENCE: u64 = 600;
/// After this time a node that is not drained becomes Degraded, although the drain goes on.
pub(super) const DEGRADED_AFTER: u64 = 3600;

/// Between drain and reboot the machine config daemon writes files and deploys the operating system.
const APPLY: Estimate = Estimate { min_seconds: 60, max_seconds: Some(120) };

/// From so many values on, the outermost tenths are left out.
const MANY: usize = 10;

const GIB: u64 = 1 << 30;

/// A range of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub min_seconds: u64,
    /// None if nothing tells when it ends.
    pub max_seconds: Option<u64>,
}

impl Estimate {
    pub(super) const NONE: Estimate = Estimate { min_seconds: 0, max_seconds: Some(0) };
    pub(super) const UNKNOWN: Estimate = Estimate { min_seconds: 0, max_seconds: None };

    /// One after the other.
    pub(super) fn then(self, next: Estimate) -> Self {
        let sum = |(one, other): (u64, u64)| one.saturating_add(other);
        Estimate {
            min_seconds: sum((self.min_seconds, next.min_seconds)),
            max_seconds: self.max_seconds.zip(next.max_seconds).map(sum),
        }
    }

    /// At the same time.
    pub(super) fn beside(self, other: Estimate) -> Self {
        Estimate {
            min_seconds: self.min_seconds.max(other.min_seconds),
            max_seconds: self.max_seconds.zip(other.max_seconds).map(|(one, other)| one.max(other)),
        }
    }

    fn endless(self) -> Self {
        Estimate { max_seconds: None, ..self }
    }

    /// `20m–1h30m`, `up to 5m`, `at least 2h`, `?`
    pub fn text(&self) -> String {
        match (self.min_seconds, self.max_seconds) {
            (0, None) => "?".into(),
            (min, None) => format!("at least {}", text(min)),
            (0, Some(max)) => format!("up to {}", text(max)),
            (min, Some(max)) if text(min) == text(max) => text(min),
            (min, Some(max)) => format!("{}–{}", text(min), text(max)),
        }
    }
}

/// `45s`, `12m`, `3h05m`. From a minute on, seconds are rounded up to minutes: more would pretend to be exact.
pub(super) fn text(seconds: u64) -> String {
    let minutes = seconds.div_ceil(60);
    match seconds {
        0..60 => format!("{seconds}s"),
        _ if minutes < 60 => format!("{minutes}m"),
        _ => format!("{}h{:02}m", minutes / 60, minutes % 60),
    }
}

/// When the drain of a node is seen to be over, if nothing is left on it after this time: during an attempt at once, during a pause
/// with the next attempt.
pub(super) fn noticed(seconds: u64) -> u64 {
    let mut start = 0;
    loop {
        let end = start + ATTEMPT;
        if seconds <= end {
            return seconds.max(start);
        }
        let next = end + if end < PATIENCE { PAUSE } else { LONG_PAUSE };
        // From here on it repeats: an attempt and a long pause.
        let skipped = if end >= PATIENCE { seconds.saturating_sub(next) / (ATTEMPT + LONG_PAUSE) } else { 0 };
        start = next + skipped * (ATTEMPT + LONG_PAUSE);
    }
}

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
    pub(super) fn of(observed: &'a Observed, nodes_at_a_time: usize) -> Self {
        let seconds = observed.migrations.items().iter().filter_map(|migration: &Migration| migration.seconds);
        Timing {
            platform: observed.platform.value(),
            migrations: range(seconds.collect()),
            reboots: observed.reboots.items(),
            nodes_at_a_time: u64::try_from(nodes_at_a_time.max(1)).unwrap_or(u64::MAX),
        }
    }

    /// The drain of a node with these virtual machines. `pods` is the longest time that its other pods may take to end, if known.
    /// `is_open` says that something else may keep the drain from ending.
    pub(super) fn drain(&self, machines: &[(&Instance, &Outcome)], pods: Option<u64>, is_open: bool) -> Estimate {
        let of = |fate: Fate| machines.iter().filter(move |(_, outcome)| outcome.fate == fate);
        let moving: Vec<&Instance> = of(Fate::MovesLive).map(|(instance, _)| *instance).collect();
        let shutdown = machines.iter().filter_map(|(_, outcome)| outcome.shutdown_seconds).max().unwrap_or(0);
        let ends = Estimate { min_seconds: 0, max_seconds: pods.map(|pods| pods.max(shutdown)) };
        let work = self.migrations(&moving).beside(ends);
        let drain = Estimate { min_seconds: noticed(work.min_seconds), max_seconds: work.max_seconds.map(noticed) };
        let is_open = is_open || of(Fate::BlocksDrain).chain(of(Fate::Unknown)).next().is_some();
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
        let sum = each.iter().map(|one| one.min_seconds).sum::<u64>();
        // Nodes that drain at the same time share what the cluster allows.
        let share = (platform.per_cluster / self.nodes_at_a_time).clamp(1, platform.per_node);
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
                    format!("{count} past migrations took {} to {}", text(min), text(max))
                }
                (None, Some(platform)) => format!(
                    "no past migration is known: one takes at most the time after which KubeVirt gives up, {} s per GiB",
                    platform.seconds_per_gib
                ),
                (None, None) => "nothing is known about migrations".into(),
            });
            if let Some(platform) = self.platform {
                let Platform { per_node, per_cluster, .. } = platform;
                basis.push(format!("{per_node} migrations at a time from a node, {per_cluster} in the cluster"));
            }
        }
        basis.push(match range(self.reboots.iter().map(|seen| seen.seconds).collect()) {
            Some((min, max, count)) => format!("{count} reboots seen here took {} to {}", text(min), text(max)),
            None if nodes.iter().all(|node| documented(node.provider.as_deref()).max_seconds.is_some()) => {
                "no reboot was seen here: 1 to 2 minutes, as OpenShift's documentation says of clouds".into()
            }
            None => "no reboot was seen here, and nothing tells how long one takes on these machines".into(),
        });
        basis
    }
}

/// What OpenShift's documentation says about reboots: minutes on clouds, and on bare metal it may be more than 15.
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

    #[test]
    fn a_drain_ends_with_an_attempt() {
        for (work, expected, why) in [
            (0, 0, "nothing to do"),
            (30, 30, "within the first attempt"),
            (90, 90, "at its end"),
            (91, 150, "in the pause: with the second attempt"),
            (200, 200, "within the second attempt"),
            (600, 600, "within the fifth attempt"),
            (691, 990, "after ten minutes pauses are long"),
            (3400, 3400, "within a late attempt"),
            (3600, 3720, "after an hour: in a pause"),
            (1081, 1380, "and stay long"),
        ] {
            assert_eq!(noticed(work), expected, "{work}: {why}");
        }
        let lags = (0..20_000).map(|work| (work, noticed(work) - work));
        for (work, lag) in lags {
            assert!(lag < if work < 600 { 61 } else { 301 }, "{work}: {lag}");
        }
        assert!(noticed(1 << 40) >= 1 << 40, "and it is computed quickly");
    }

    #[test]
    fn ranges_are_told_as_far_as_they_are_known() {
        for (min_seconds, max_seconds, expected) in [
            (0, None, "?"),
            (120, None, "at least 2m"),
            (0, Some(90), "up to 2m"),
            (45, Some(45), "45s"),
            (61, Some(110), "2m"),
            (1200, Some(5400), "20m–1h30m"),
            (3600, Some(7260), "1h00m–2h01m"),
        ] {
            assert_eq!(Estimate { min_seconds, max_seconds }.text(), expected);
        }
    }

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
        let machines: Vec<Instance> = (0..30).map(|_| instance(1, false)).collect();
        let moving: Vec<&Instance> = machines.iter().collect();
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
        let observed = Observed { reboots: Reading::Read(reboots), ..Observed::default() };
        let range = |observed: &Observed, node: &Node| {
            let found = Timing::of(observed, 1).reboot(node);
            (found.min_seconds, found.max_seconds)
        };
        assert_eq!(range(&observed, &node("aws")), (360, Some(420)), "its own reboots, and a minute or two before");
        let mut other = node("aws");
        other.name = "c".into();
        assert_eq!(range(&observed, &other), (360, Some(1020)), "those of others");
        let nothing = Observed::default();
        assert_eq!(range(&nothing, &node("aws")), (120, Some(240)));
        assert_eq!(range(&nothing, &node("baremetalhost")), (60, None));
    }
}
