//! What stands in the way: each restriction of the descheduler and its environment is lifted alone, and then all together.
//! The engine stays as it is. What a lifted descheduler would know is put where the real one looks: priorities, requests, parameters.

use serde::Serialize;

use super::{
    candidate::Candidate,
    case::Case,
    judge::{Done, Judgement, judge},
};
use crate::{
    scenario::{Load, MigrationAware, Requests, Scenario, ScenarioError, Semantics},
    units::{Bytes, Span},
    variant::Variant,
};

/// A restriction that is lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Lift {
    Nothing,
    /// Scores are not cut to whole percent.
    ExactScores,
    /// The VM with the highest load leaves a node first, and not any.
    HeaviestVmFirst,
    /// The scheduler places by CPU use, and not by requests.
    PlacementByUse,
    /// The score knows the size of the heaviest VM, and stops where no move can help.
    KnownVmSizes,
    /// The load is that of the end all the time.
    SteadyLoad,
    /// VMs request so little memory that they fit everywhere.
    FreeMemory,
    /// Signals are averaged over five minutes, and the descheduler runs every five minutes. This is another setting.
    FiveMinutes,
    /// `KubevirtMigrationAware` defers evictions, as in OpenShift. This is a restriction more.
    MigrationAware,
    /// The heaviest VM first, placement by use, and known sizes.
    AllKnown,
    /// All that is known, and a steady load.
    Everything,
}

impl Lift {
    pub const ALL: [Lift; 11] = [
        Lift::Nothing,
        Lift::ExactScores,
        Lift::HeaviestVmFirst,
        Lift::PlacementByUse,
        Lift::KnownVmSizes,
        Lift::SteadyLoad,
        Lift::FreeMemory,
        Lift::FiveMinutes,
        Lift::MigrationAware,
        Lift::AllKnown,
        Lift::Everything,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Lift::Nothing => "as it is",
            Lift::ExactScores => "scores are exact, not whole percents",
            Lift::HeaviestVmFirst => "the heaviest VM of a node goes first, not any",
            Lift::PlacementByUse => "the scheduler places by use, not by requests",
            Lift::KnownVmSizes => "the score knows the size of VMs",
            Lift::SteadyLoad => "the load does not change",
            Lift::FreeMemory => "memory suffices everywhere",
            Lift::FiveMinutes => "five minutes instead of one (another setting)",
            Lift::MigrationAware => "with KubevirtMigrationAware (a restriction more)",
            Lift::AllKnown => "heaviest first, placed by use, sizes known",
            Lift::Everything => "the same, and the load does not change",
        }
    }

    fn includes(self, other: Lift) -> bool {
        let known = [Lift::HeaviestVmFirst, Lift::PlacementByUse, Lift::KnownVmSizes];
        match self {
            Lift::AllKnown => known.contains(&other),
            Lift::Everything => known.contains(&other) || other == Lift::SteadyLoad,
            _ => self == other,
        }
    }

    /// What a candidate makes of a case without the restriction.
    pub fn judge(self, case: &Case, candidate: &Candidate) -> Result<(Done, Judgement), ScenarioError> {
        let lifted = case.with(self.scenario(case))?;
        let done = lifted.run(&self.candidate(case, candidate).in_settings(&lifted.settings), false);
        Ok((done, judge(&done, &case.yardstick)))
    }

    fn candidate(self, case: &Case, candidate: &Candidate) -> Candidate {
        let Variant { algorithm, .. } = candidate.variant;
        let gap = algorithm.parameters().into_iter().find(|(name, _)| *name == "gap").map_or(0.0, |(_, gap)| gap);
        if !self.includes(Lift::KnownVmSizes) || case.heaviest <= gap {
            return *candidate;
        }
        let algorithm = algorithm.with("gap", case.heaviest).unwrap_or(algorithm);
        Candidate { variant: Variant { algorithm, ..candidate.variant } }
    }

    fn scenario(self, case: &Case) -> Scenario {
        let mut lifted = case.scenario.clone();
        // Every VM is a group of its own.
        for (vm, used) in lifted.vms.iter_mut().zip(case.used.iter().copied()) {
            if self.includes(Lift::SteadyLoad) {
                vm.cpu = Load::Constant(used / vm.cores);
            }
            if self.includes(Lift::HeaviestVmFirst) {
                vm.priority = -((used * 1000.0) as i32);
            }
            if self.includes(Lift::PlacementByUse) {
                // All nodes have 4 GiB for each core.
                vm.requests = Requests { cpu: Some(used), memory: Some(Bytes((used * 4.0 * GIB) as u64)) };
            } else if self.includes(Lift::FreeMemory) {
                vm.requests.memory = Some(Bytes(vm.memory.0 / 8));
            }
        }
        if self.includes(Lift::SteadyLoad) {
            lifted.tasks.clear();
        }
        if self.includes(Lift::ExactScores) {
            lifted.rebalancing.semantics = Semantics::Reference;
        }
        if self.includes(Lift::FiveMinutes) {
            (lifted.rebalancing.interval, lifted.rebalancing.window) = (Some(Span(300)), Some(Span(300)));
        }
        if self.includes(Lift::MigrationAware) {
            lifted.rebalancing.guards.migration_aware = Some(MigrationAware::default());
        }
        lifted
    }
}

const GIB: f64 = 1_073_741_824.0;
