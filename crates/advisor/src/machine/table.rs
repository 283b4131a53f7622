//! The transition table. Read it from top to bottom: that is the life of a configuration.
//!
//! What is not in the table does not change the phase. The diagram in `docs/phases.md` is drawn from it.

use api::virt_platform_config::Phase::{self, *};

use Event::*;

/// What was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
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
    /// A target changed after the plan was drawn up.
    PlanStale,
    /// An item failed and the failure policy is Abort.
    ItemFailed,
    /// The approval was withdrawn while the plan was being applied.
    ApprovalWithdrawn,
    /// Every item is applied and in effect.
    AllApplied,
    /// Some items failed, the others are applied and in effect.
    SomeFailed,
    /// What the plan was derived from has changed, and so would the plan.
    InputsChanged,
    /// The owner of a target no longer takes what was applied, or something overrules it.
    EffectLost,
    /// A managed field is no longer as it was applied.
    DriftFound,
    /// Managed fields are again as they were applied.
    DriftGone,
    /// Drift is to be reverted without a person.
    DriftReverted,
    /// This version of the operator would do it differently.
    UpgradeFound,
    /// What this version would do has been done.
    UpgradeSettled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    pub from: &'static [Phase],
    pub on: Event,
    pub to: Phase,
}

const fn row(from: &'static [Phase], on: Event, to: Phase) -> Transition {
    Transition { from, on, to }
}

const MANAGED: &[Phase] = &[
    Pending,
    Drafting,
    PrerequisiteFailed,
    ReviewRequired,
    InProgress,
    Completed,
    CompletedWithErrors,
    CompletedWithUpgrade,
    Failed,
    Drifted,
];

/// Applied, in whole or in part, and watched.
const IN_FORCE: &[Phase] = &[Completed, CompletedWithErrors, CompletedWithUpgrade];

pub static TABLE: &[Transition] = &[
    // Leaving alone, and taking up again.
    row(MANAGED, IgnoreRequested, Ignored),
    row(&[Ignored], ManagementResumed, Pending),
    // Drawing up the plan.
    row(&[Pending], DraftingBegun, Drafting),
    row(&[Drafting], OptionsInvalid, PrerequisiteFailed),
    row(&[Drafting], PrerequisitesMissing, PrerequisiteFailed),
    row(&[Drafting, ReviewRequired], PlanRefused, Failed),
    row(&[Drafting, ReviewRequired], PlanEmpty, Completed),
    row(&[Drafting, ReviewRequired], PlanConverging, InProgress),
    row(&[Drafting], PlanDrafted, ReviewRequired),
    row(&[Drafting], PlanApproved, InProgress),
    // Waiting for what is missing.
    row(&[PrerequisiteFailed, Failed], PrerequisitesAvailable, Pending),
    // Waiting for a person.
    row(&[ReviewRequired], ReviewPassed, InProgress),
    row(&[ReviewRequired, InProgress], PrerequisitesMissing, PrerequisiteFailed),
    // Applying, and waiting for the effect.
    row(&[ReviewRequired, InProgress], PlanStale, Failed),
    row(&[InProgress], ItemFailed, Failed),
    row(&[InProgress], ApprovalWithdrawn, Pending),
    row(&[InProgress], AllApplied, Completed),
    row(&[InProgress, Drifted], SomeFailed, CompletedWithErrors),
    // Watching what is in force.
    row(IN_FORCE, InputsChanged, Drafting),
    row(IN_FORCE, DriftFound, Drifted),
    row(IN_FORCE, PrerequisitesMissing, PrerequisiteFailed),
    row(&[Completed, CompletedWithErrors], EffectLost, InProgress),
    row(&[Completed, CompletedWithErrors], UpgradeFound, CompletedWithUpgrade),
    row(&[CompletedWithUpgrade], UpgradeSettled, Completed),
    // Drift.
    row(&[Drifted], DriftGone, Completed),
    row(&[Drifted], DriftReverted, InProgress),
    row(&[Drifted], InputsChanged, Drafting),
    row(&[Drifted], PrerequisitesMissing, PrerequisiteFailed),
    // Every phase that waits listens to the spec.
    row(
        &[
            PrerequisiteFailed,
            ReviewRequired,
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

/// The phase after an event. Total: what the table does not name changes nothing.
pub fn after(phase: Phase, event: Event) -> Phase {
    TABLE.iter().find(|row| row.on == event && row.from.contains(&phase)).map_or(phase, |row| row.to)
}

/// The table as a Mermaid state diagram. That Ignore leads to Ignored from everywhere is said once.
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

/// The page that explains the phases, with the diagram: path from the root of the repository, and content.
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
    fn no_phase_has_two_answers_to_one_event() {
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
    fn what_the_table_does_not_name_changes_nothing() {
        assert_eq!(after(Ignored, DriftFound), Ignored, "an ignored configuration takes part in nothing");
        assert_eq!(after(Failed, DriftFound), Failed);
        assert_eq!(after(Ignored, SpecChanged), Ignored);
    }

    #[test]
    fn the_life_that_the_workflow_guide_walks_through() {
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
        for (from, event, to) in walk {
            assert_eq!(after(from, event), to, "{from} on {event:?}");
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
