//! The transition table of the phases. A trigger that it does not list for a phase does not change that phase.
//!
//! `docs/phases.md` is generated from it.

use api::virt_platform_config::Phase::{self, *};

use Trigger::*;

/// What causes a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The action is Ignore.
    IgnoreRequested,
    /// The action is no longer Ignore.
    ManagementResumed,
    /// The spec has a new generation that calls for a new plan.
    SpecChanged,
    DraftingBegun,
    OptionsInvalid,
    PrerequisitesMissing,
    PrerequisitesAvailable,
    /// The API server, a webhook or a lack of rights makes the plan impossible as things stand.
    PlanRefused,
    /// Nothing would change, and everything is in effect.
    PlanEmpty,
    /// Nothing would change, and what was applied earlier is still taking effect.
    PlanConverging,
    /// There are changes, and a person has to read them first.
    PlanDrafted,
    /// There are changes, and they were approved beforehand.
    PlanApproved,
    /// A person approved the plan that they read.
    ReviewPassed,
    /// The plan is approved and waits for its time.
    PlanScheduled,
    /// The time of an approved plan has come.
    StartTimeReached,
    /// The approval of a plan that waits for its time does not hold any more.
    ApprovalLapsed,
    /// A target changed after the plan was made.
    PlanStale,
    /// An item failed and the failure policy is Abort.
    ItemFailed,
    /// The approval was withdrawn while the plan was being applied.
    ApprovalWithdrawn,
    /// Every item is applied and in effect.
    AllApplied,
    /// Some items failed, the others are applied and in effect.
    SomeFailed,
    /// An input of the plan has changed, and a new plan would be different.
    InputsChanged,
    /// The operator of a target refuses what was applied, something overrides it, or a pool rolls it out only now.
    EffectLost,
    /// A managed field is no longer as it was applied.
    DriftFound,
    /// Managed fields are again as they were applied.
    DriftGone,
    /// Managed fields are as they were applied or as this version would apply them, and nodes or operators still have to take them
    /// over.
    RolloutResumed,
    /// Drift is to be reverted without a person.
    DriftReverted,
    /// This version of the operator would plan something else.
    UpgradeFound,
    /// The cluster is as this version of the operator would plan it.
    UpgradeSettled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    pub from: &'static [Phase],
    pub on: Trigger,
    pub to: Phase,
}

const fn row(from: &'static [Phase], on: Trigger, to: Phase) -> Transition {
    Transition { from, on, to }
}

const MANAGED: &[Phase] = &[
    Pending,
    Drafting,
    PrerequisiteFailed,
    ReviewRequired,
    Scheduled,
    InProgress,
    Completed,
    CompletedWithErrors,
    CompletedWithUpgrade,
    Failed,
    Drifted,
];

/// Applied, in whole or in part.
const APPLIED: &[Phase] = &[Completed, CompletedWithErrors, CompletedWithUpgrade];

pub static TABLE: &[Transition] = &[
    // Ignoring a configuration, and managing it again.
    row(MANAGED, IgnoreRequested, Ignored),
    row(&[Ignored], ManagementResumed, Pending),
    // Making the plan.
    row(&[Pending], DraftingBegun, Drafting),
    row(&[Drafting], OptionsInvalid, PrerequisiteFailed),
    row(&[Drafting], PrerequisitesMissing, PrerequisiteFailed),
    row(&[Drafting, ReviewRequired, Scheduled], PlanRefused, Failed),
    row(&[Drafting, ReviewRequired, Scheduled], PlanEmpty, Completed),
    row(&[Drafting, ReviewRequired, Scheduled], PlanConverging, InProgress),
    row(&[Drafting, Scheduled], PlanDrafted, ReviewRequired),
    row(&[Drafting], PlanApproved, InProgress),
    // Waiting for prerequisites.
    row(&[PrerequisiteFailed, Failed], PrerequisitesAvailable, Pending),
    // Waiting for a review.
    row(&[ReviewRequired], ReviewPassed, InProgress),
    row(&[ReviewRequired, Scheduled, InProgress], PrerequisitesMissing, PrerequisiteFailed),
    // Waiting for the time of an approved plan.
    row(&[Drafting, ReviewRequired], PlanScheduled, Scheduled),
    row(&[Scheduled], StartTimeReached, InProgress),
    row(&[Scheduled], ApprovalLapsed, ReviewRequired),
    // Applying, and waiting for the effect.
    row(&[ReviewRequired, Scheduled, InProgress], PlanStale, Failed),
    row(&[InProgress], ItemFailed, Failed),
    row(&[InProgress], ApprovalWithdrawn, Pending),
    row(&[InProgress], AllApplied, Completed),
    row(&[InProgress, Drifted], SomeFailed, CompletedWithErrors),
    // Watching an applied plan.
    row(APPLIED, InputsChanged, Drafting),
    row(APPLIED, DriftFound, Drifted),
    // What was changed on its way never gets to where it was going.
    row(&[InProgress], DriftFound, Drifted),
    row(APPLIED, PrerequisitesMissing, PrerequisiteFailed),
    row(APPLIED, EffectLost, InProgress),
    row(&[Completed, CompletedWithErrors], UpgradeFound, CompletedWithUpgrade),
    row(&[CompletedWithUpgrade], UpgradeSettled, Completed),
    // Drift.
    row(&[Drifted], DriftGone, Completed),
    row(&[Completed, CompletedWithErrors, CompletedWithUpgrade, Drifted], RolloutResumed, InProgress),
    row(&[Drifted], DriftReverted, InProgress),
    row(&[Drifted], InputsChanged, Drafting),
    row(&[Drifted], PrerequisitesMissing, PrerequisiteFailed),
    // An edit of the spec.
    row(
        &[
            PrerequisiteFailed,
            ReviewRequired,
            Scheduled,
            InProgress,
            Completed,
            CompletedWithErrors,
            CompletedWithUpgrade,
            Failed,
            Drifted,
        ],
        SpecChanged,
        Pending,
    ),
];

/// The phase after a trigger.
pub fn after(phase: Phase, trigger: Trigger) -> Phase {
    TABLE.iter().find(|row| row.on == trigger && row.from.contains(&phase)).map_or(phase, |row| row.to)
}

/// The table as a Mermaid state diagram. The transition to Ignored is shown once for all phases.
pub fn diagram() -> String {
    let mut text = "stateDiagram-v2\n    [*] --> Pending\n".to_owned();
    for row in TABLE {
        if row.on == IgnoreRequested {
            text += "    state \"every phase\" as managed\n    managed --> Ignored: IgnoreRequested\n";
            continue;
        }
        for from in row.from {
            text += &format!("    {from} --> {}: {:?}\n", row.to, row.on);
        }
    }
    text
}

/// The page about the phases: its path from the root of the repository, and its content.
pub fn page() -> (&'static str, String) {
    let rows: String = TABLE
        .iter()
        .map(|row| {
            let from: Vec<_> = row.from.iter().map(|phase| phase.as_str()).collect();
            let from = if row.from == MANAGED { "every phase".to_owned() } else { from.join(", ") };
            format!("| {from} | {:?} | {} |\n", row.on, row.to)
        })
        .collect();
    let text = format!(
        "<!-- Generated by `make generate`. Do not edit. -->\n\n# Phases\n\n\
         How a VirtPlatformConfig gets from one phase to another. What each phase means is told in\n\
         [the API reference](api.md#statusphase). What is not listed does not change the phase.\n\n\
         ```mermaid\n{}```\n\n| from | when | to |\n|---|---|---|\n{rows}",
        diagram()
    );
    ("docs/phases.md", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_phase_has_two_rows_for_one_trigger() {
        for (position, row) in TABLE.iter().enumerate() {
            for later in &TABLE[position + 1..] {
                let clash = row.from.iter().find(|phase| row.on == later.on && later.from.contains(phase));
                assert_eq!(clash, None, "{:?} has two rows for {:?}", clash, row.on);
            }
        }
    }

    #[test]
    fn every_phase_can_be_reached_and_left_and_ignored() {
        for phase in Phase::ALL.iter().copied().filter(|phase| *phase != Pending) {
            assert!(TABLE.iter().any(|row| row.to == phase && row.from != [phase]), "nothing leads to {phase}");
        }
        for phase in Phase::ALL.iter().copied() {
            assert!(TABLE.iter().any(|row| row.from.contains(&phase) && row.to != phase), "{phase} is a dead end");
            assert_eq!(after(phase, IgnoreRequested), Ignored, "{phase}");
        }
    }

    #[test]
    fn a_trigger_without_a_row_changes_nothing() {
        assert_eq!(after(Ignored, DriftFound), Ignored, "an ignored configuration takes part in nothing");
        assert_eq!(after(Failed, DriftFound), Failed);
        assert_eq!(after(Ignored, SpecChanged), Ignored);
    }

    #[test]
    fn the_transitions_of_the_workflow_guide() {
        let walk = [
            (Ignored, ManagementResumed, Pending),
            (Pending, DraftingBegun, Drafting),
            (Drafting, PrerequisitesMissing, PrerequisiteFailed),
            (PrerequisiteFailed, PrerequisitesAvailable, Pending),
            (Pending, DraftingBegun, Drafting),
            (Drafting, PlanDrafted, ReviewRequired),
            (ReviewRequired, ReviewPassed, InProgress),
            (InProgress, AllApplied, Completed),
            (Completed, InputsChanged, Drafting),
            (Drafting, PlanDrafted, ReviewRequired),
            (ReviewRequired, ReviewPassed, InProgress),
            (InProgress, AllApplied, Completed),
        ];
        for (from, trigger, to) in walk {
            assert_eq!(after(from, trigger), to, "{from} on {trigger:?}");
        }
    }

    #[test]
    fn the_page_is_up_to_date() {
        let (path, expected) = page();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let committed = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(committed == expected, "{path} is out of date: run `make generate` and commit the result");
    }
}
