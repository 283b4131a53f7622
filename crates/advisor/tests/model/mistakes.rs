//! Every deliberate mistake is found, by a rule that it concerns. Without the mistake, the same scenarios keep all rules.

use crate::{
    explorations::{NONE, TIMED, explore, restoring, scenario, set_back},
    mutation::Mutation::{self, *},
    profile,
    scenario::{Bounds, Scenario},
};

/// A mistake, what has to happen for it to matter, and words of the rules that may find it.
const MISTAKES: &[(Mutation, Bounds, &[&str])] = &[
    (LockSkipped, Bounds { edits: 1, foreign_edits: 1, ..NONE }, &["3."]),
    (GenerationForgotten, Bounds { edits: 1, ..NONE }, &["5."]),
    (GenerationAlwaysNew, Bounds { inputs: 1, ..NONE }, &["2.", "5."]),
    (PlansOnce, Bounds { edits: 1, inputs: 1, ..NONE }, &["itself has seen", "5."]),
    (WritesBeforeRecording, Bounds { edits: 1, ..NONE }, &["1. what"]),
    (ForcedReviewIgnored, Bounds { inputs: 1, ..NONE }, &["2."]),
    (ConflictIsSuccess, Bounds { foreign_edits: 1, ..NONE }, &["recorded as applied"]),
    (RecordConflictIsSuccess, Bounds { edits: 1, ..NONE }, &["1."]),
    (RecordsOverAnything, Bounds { edits: 1, crashes: 1, ..NONE }, &["recorded as applied"]),
    (NotConfirmed, Bounds { edits: 1, crashes: 1, ..NONE }, &["1. nothing"]),
    (AbortIgnored, Bounds { refusals: 1, ..NONE }, &["Abort"]),
    (ApprovalIgnored, Bounds { edits: 1, ..NONE }, &["another plan"]),
    (RejectionIgnored, Bounds { edits: 1, days: 1, ..NONE }, &["rejected plan"]),
    (StartIgnored, Bounds { edits: 1, days: 1, ..NONE }, &["before its time"]),
    (EndIgnored, Bounds { edits: 1, days: 1, ..NONE }, &["outside of its window"]),
    (WithdrawalIgnored, Bounds { edits: 1, ..NONE }, &["1. nothing"]),
    (DryRunIsApply, NONE, &["1. nothing"]),
    (IgnoreIgnored, Bounds { edits: 1, ..NONE }, &["5."]),
    (AppliedForgotten, Bounds { foreign_edits: 1, ..NONE }, &["5."]),
    (PreconditionsDropped, Bounds { foreign_edits: 1, ..NONE }, &["3."]),
    (SilenceIsFailure, Bounds { lost_answers: 1, ..NONE }, &["A4."]),
    (WritesSomethingElse, NONE, &["1. what"]),
    (InputNotWatched, Bounds { inputs: 1, ..NONE }, &["5."]),
    (RecordSkipped, NONE, &["on record"]),
    (RecordMisread, Bounds { edits: 2, ..NONE }, &["originally"]),
    (RestoreNotReviewed, Bounds { edits: 2, ..NONE }, &["begins or ends a restore"]),
    (OwnershipKept, Bounds { edits: 2, ..NONE }, &["5."]),
    (ProgressForgotten, Bounds { days: 1, ..NONE }, &["5."]),
    (RunningNotRead, Bounds { foreign_edits: 2, ..NONE }, &["5."]),
    (SourcesNotRead, Bounds { foreign_edits: 1, ..NONE }, &["5."]),
    (StopIgnored, Bounds { stops: 1, ..NONE }, &["after a stop"]),
];

/// The scenario in which a mistake matters.
fn scenario_of(mistake: Mutation, name: &'static str, bounds: Bounds) -> Scenario {
    match mistake {
        RejectionIgnored | StartIgnored | EndIgnored | ProgressForgotten => {
            Scenario { edits: TIMED, ..scenario(name, &profile::NODES, bounds) }
        }
        RunningNotRead => set_back(name, &profile::SHARED_NODES, bounds),
        SourcesNotRead => scenario(name, &profile::LATE_SHARED_NODES, bounds),
        RecordMisread | RestoreNotReviewed | OwnershipKept => restoring(name, &profile::TWO, bounds),
        _ => scenario(name, &profile::TWO, bounds),
    }
}

/// W49 (tests that cannot fail): a check that cannot fail shows nothing.
#[test]
fn every_mistake_is_noticed_and_without_it_nothing_is() {
    let (mut missed, mut sound) = (Vec::new(), Vec::new());
    for (mistake, bounds, words) in MISTAKES {
        let without = scenario_of(*mistake, "no mistake", *bounds);
        let explored = (without.edits, without.profile.parts, *bounds);
        if !sound.contains(&explored) {
            sound.push(explored);
            let found = explore(without, None);
            assert!(found.violations.is_empty(), "{bounds:?}: {:?}", found.violations);
        }
        let found = explore(scenario_of(*mistake, "mistake", *bounds), Some((*mistake, words)));
        let broken: Vec<&str> = found.violations.iter().map(|(rule, _)| *rule).collect();
        println!("{mistake:?}: {broken:?} ({})", found.numbers);
        if broken.is_empty() {
            missed.push(mistake);
        }
    }
    assert!(missed.is_empty(), "not noticed by the rule to expect: {missed:?}");
}
