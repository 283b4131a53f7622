//! The nodes that stay hot, and why.

use std::{collections::BTreeMap, fmt};

use balance::Bucket;
use schemars::JsonSchema;
use serde::Serialize;

use super::{MOST_NAMES, outcome::Outcome};
use crate::{
    engine::{Destination, Run},
    history::Cause,
    measure::UNDER_PRESSURE,
    model::ClusterModel,
    settings::RunSettings,
};

/// A node that is over-utilized, or under pressure, at the end of at least half of the runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HotNode {
    pub node: String,
    /// The share of runs.
    pub share: f64,
    /// The most frequent reason.
    pub reason: HotReason,
    pub because: String,
}

/// Why a node stays hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum HotReason {
    NothingEvicted,
    NoVms,
    NotMigratable,
    AsBusyAsOthers,
    OneVm,
    NoDestination,
    CoolingDown,
    NoneUnderUtilized,
    StillMoving,
    Unknown,
}

impl fmt::Display for HotReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingEvicted => "the plan evicts nothing",
            Self::NoVms => "it is busy without VMs",
            Self::NotMigratable => "none of its VMs can be migrated",
            Self::AsBusyAsOthers => "it is busy, but no more than other nodes",
            Self::NoDestination => "no other node takes any of its VMs",
            Self::OneVm => "one VM makes most of its load, and would make any other node hot",
            Self::CoolingDown => "its VMs were migrated lately and stay for a while",
            Self::NoneUnderUtilized => "no node is under-utilized, so the descheduler does nothing",
            Self::StillMoving => "VMs still leave it when the forecast ends",
            Self::Unknown => "the descheduler has not got to it when the forecast ends",
        })
    }
}

/// The hot nodes at the end of a run. `rest` is the second at which rest begins.
pub(super) fn of_run(model: &ClusterModel, run: &Run<'_>, settings: &RunSettings, rest: u64) -> Vec<(u32, HotReason)> {
    let signals = run.signals();
    let hot = run.nodes().iter().enumerate().filter_map(|(slot, node)| {
        let is_over = run.buckets().of()[slot] == Bucket::Over;
        let is_pressed =
            signals.cpu_pressure[slot] >= UNDER_PRESSURE || signals.memory_pressure[slot] >= UNDER_PRESSURE;
        (run.is_open(*node) && (is_over || is_pressed))
            .then(|| (*node, reason(model, run, settings, *node, is_over, rest)))
    });
    hot.collect()
}

fn reason(
    model: &ClusterModel,
    run: &Run<'_>,
    settings: &RunSettings,
    node: u32,
    is_over: bool,
    rest: u64,
) -> HotReason {
    let vms = run.vms(node);
    let migratable: Vec<u32> = vms.iter().copied().filter(|vm| model.group(*vm).migratable).collect();
    let cores = |vm: &u32| run.usage(*vm)[0];
    let heaviest = vms.iter().map(cores).fold(0.0, |most, cores| if cores > most { cores } else { most });
    let leaves = |moved: &&crate::history::Move| {
        moved.cause == Cause::Eviction && moved.from == node && u64::from(moved.step) * model.step >= rest
    };
    match () {
        () if settings.limits.total == 0 => HotReason::NothingEvicted,
        () if vms.is_empty() => HotReason::NoVms,
        () if migratable.is_empty() => HotReason::NotMigratable,
        () if !is_over => HotReason::AsBusyAsOthers,
        () if heaviest > run.used(node)[0] / 2.0 => HotReason::OneVm,
        () if migratable.iter().all(|vm| run.destination_of(*vm) != Destination::Possible) => HotReason::NoDestination,
        () if migratable.iter().all(|vm| run.is_cooling_down(*vm)) => HotReason::CoolingDown,
        () if run.buckets().count(Bucket::Under) == 0 => HotReason::NoneUnderUtilized,
        () if run.history().moves().iter().rev().any(|moved| leaves(&moved)) => HotReason::StillMoving,
        () => HotReason::Unknown,
    }
}

/// The nodes that are hot in at least half of the runs, the most frequent first.
pub(super) fn nodes(model: &ClusterModel, outcomes: &[Outcome]) -> Vec<HotNode> {
    let mut by_node: Vec<Vec<HotReason>> = vec![Vec::new(); model.node_count()];
    for (node, reason) in outcomes.iter().flat_map(|outcome| &outcome.hot) {
        by_node[*node as usize].push(*reason);
    }
    let frequent = |reasons: &[HotReason]| {
        let mut counts = BTreeMap::<HotReason, usize>::new();
        for reason in reasons {
            *counts.entry(*reason).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(reason, count)| (*count, std::cmp::Reverse(*reason))).map(|(reason, _)| reason)
    };
    let mut hot: Vec<HotNode> = (0..)
        .zip(&by_node)
        .filter(|(_, reasons)| 2 * reasons.len() >= outcomes.len())
        .filter_map(|(node, reasons)| {
            let reason = frequent(reasons)?;
            let share = reasons.len() as f64 / outcomes.len() as f64;
            Some(HotNode { node: model.node_name(node).to_owned(), share, reason, because: reason.to_string() })
        })
        .collect();
    hot.sort_by(|one, other| other.share.total_cmp(&one.share));
    hot.truncate(MOST_NAMES);
    hot
}
