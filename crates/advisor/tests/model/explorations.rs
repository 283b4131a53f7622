//! The scenarios that are explored, each completely. Together they cover the bounds.

use std::{
    sync::{Mutex, PoisonError, atomic::Ordering},
    time::Instant,
};

use api::virt_platform_config::{Action, ApprovalMode, FailurePolicy};
use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    cluster::ForeignEdit,
    mutation::Mutation,
    operator_model::OperatorModel,
    profile::{self, ToyProfile},
    rules::REACHABLE,
    scenario::{Bounds, Edit, Scenario, Start},
};

pub(crate) const EDITS: &[Edit] = &[
    Edit::DryRun,
    Edit::Apply,
    Edit::ApplyNamed,
    Edit::ApplyOther,
    Edit::Ignore,
    Edit::Options,
    Edit::Bypass,
    Edit::Policy,
];
/// The edits that lead from phase to phase. The others are explored in smaller scenarios only.
pub(crate) const STEERING: &[Edit] = &[Edit::DryRun, Edit::Apply, Edit::Ignore, Edit::Options];
/// The edits that say when a plan may be applied, or that it may not.
pub(crate) const TIMED: &[Edit] = &[Edit::From, Edit::Until, Edit::Window, Edit::Reject, Edit::Apply, Edit::DryRun];
/// The edits that ask for the way back, and approve it.
pub(crate) const RESTORING: &[Edit] = &[Edit::Restore, Edit::ApplyNamed, Edit::Apply, Edit::DryRun];
pub(crate) const FOREIGN_EDITS: &[ForeignEdit] = &[ForeignEdit::Change, ForeignEdit::Touch, ForeignEdit::Delete];
pub(crate) const NONE: Bounds = Bounds {
    edits: 0,
    foreign_edits: 0,
    inputs: 0,
    lost_answers: 0,
    crashes: 0,
    refusals: 0,
    stale_reads: 0,
    days: 0,
    stops: 0,
};

/// All starts: new or settled, in review or applied, with the lock or without.
pub(crate) fn starts() -> Vec<Start> {
    let start = |action, is_settled, bypass| Start { action, bypass, policy: FailurePolicy::Abort, is_settled };
    vec![
        start(Action::DryRun, false, false),
        start(Action::Apply, false, false),
        start(Action::DryRun, true, false),
        start(Action::Apply, true, false),
        start(Action::Apply, true, true),
    ]
}

pub(crate) fn scenario(name: &'static str, profile: &'static ToyProfile, bounds: Bounds) -> Scenario {
    let (starts, approval_mode) = (starts(), ApprovalMode::Immediate);
    Scenario { name, profile, approval_mode, starts, bounds, edits: EDITS, foreign_edits: FOREIGN_EDITS }
}

fn steered(name: &'static str, profile: &'static ToyProfile, bounds: Bounds) -> Scenario {
    Scenario { edits: STEERING, ..scenario(name, profile, bounds) }
}

/// With targets that somebody changes and sets back. Nobody edits the spec.
pub(crate) fn set_back(name: &'static str, profile: &'static ToyProfile, bounds: Bounds) -> Scenario {
    let foreign_edits = &[ForeignEdit::Change, ForeignEdit::Delete, ForeignEdit::SetBack];
    Scenario { foreign_edits, ..steered(name, profile, bounds) }
}

/// From an applied plan on, with the lock and without.
pub(crate) fn restoring(name: &'static str, profile: &'static ToyProfile, bounds: Bounds) -> Scenario {
    Scenario { edits: RESTORING, starts: starts()[3..].to_vec(), ..scenario(name, profile, bounds) }
}

/// The numbers of an exploration, and the shortest path to each violation.
pub(crate) struct Findings {
    pub(crate) numbers: String,
    pub(crate) violations: Vec<(&'static str, String)>,
    /// What was reached of [`REACHABLE`].
    pub(crate) reached: Vec<&'static str>,
}

/// Each exploration takes all cores and a gigabyte.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Explores a scenario. With a mistake, only rules that contain one of these words count.
pub(crate) fn explore(scenario: Scenario, mistake: Option<(Mutation, &'static [&'static str])>) -> Findings {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let name = scenario.name;
    let mut model = OperatorModel::new(scenario, mistake.map(|(mutation, _)| mutation));
    model.words = mistake.map(|(_, words)| words);
    let memo = model.memo.clone();
    let begun = Instant::now();
    let checker = model.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let numbers = format!(
        "{name}: {} states, depth {}, at rest after at most {} steps, {} computed, {:.1?}",
        checker.unique_state_count(),
        checker.max_depth(),
        memo.longest.load(Ordering::Relaxed),
        memo.computed.load(Ordering::Relaxed),
        begun.elapsed()
    );
    let (mut violations, mut reached) = (Vec::new(), Vec::new());
    for (rule, path) in checker.discoveries() {
        if REACHABLE.contains(&rule) {
            reached.push(rule);
            continue;
        }
        let mut text = String::new();
        for (state, action) in path.into_vec() {
            let end: String = format!("{:?}", memo.ending(&state.system).result).chars().take(60).collect();
            let action = action.map_or_else(|| format!("would end: {end}"), |action| format!("{action:?}"));
            text += &format!("    {state:?}\n  {action}\n");
        }
        violations.push((rule, text));
    }
    Findings { numbers, violations, reached }
}

fn check(scenario: Scenario) -> Vec<&'static str> {
    let found = explore(scenario, None);
    println!("{}", found.numbers);
    for (rule, path) in &found.violations {
        println!("broken: {rule}\n{path}");
    }
    assert!(found.violations.is_empty(), "a rule is broken");
    found.reached
}

#[test]
fn one_item() {
    let bounds = Bounds { edits: 1, foreign_edits: 1, inputs: 1, lost_answers: 1, crashes: 1, ..NONE };
    let reached = [
        check(scenario(
            "one item, edits and faults",
            &profile::ONE,
            Bounds { foreign_edits: 0, inputs: 0, edits: 2, ..bounds },
        )),
        check(scenario("one item, edits and drift", &profile::ONE, Bounds { edits: 2, foreign_edits: 1, ..NONE })),
        check(scenario("one item, input there and back", &profile::ONE, Bounds { edits: 1, inputs: 2, ..NONE })),
        check(scenario("one item, refusals", &profile::ONE, Bounds { edits: 2, refusals: 1, ..NONE })),
        check(steered(
            "one item, edits, drift, input",
            &profile::ONE,
            Bounds { edits: 2, lost_answers: 0, crashes: 0, ..bounds },
        )),
        check(steered("one item, one of each", &profile::ONE, bounds)),
    ]
    .concat();
    assert_reached(&reached, &REACHABLE[..4]);
}

fn assert_reached(reached: &[&str], expected: &[&str]) {
    let lacking: Vec<_> = expected.iter().filter(|expected| !reached.contains(expected)).collect();
    assert!(lacking.is_empty(), "never seen: {lacking:?}");
}

/// Edits of the approval, and days that pass between any two requests.
#[test]
fn times_and_rejections() {
    let timed = |name, profile, bounds| Scenario { edits: TIMED, ..scenario(name, profile, bounds) };
    let bounds = Bounds { edits: 2, days: 2, ..NONE };
    let reached = [
        check(timed("one item, times", &profile::ONE, bounds)),
        check(timed("nodes, times", &profile::NODES, Bounds { edits: 1, ..bounds })),
        check(timed("nodes, times and drift", &profile::NODES, Bounds { foreign_edits: 1, days: 1, edits: 1, ..NONE })),
        check(timed("nodes, times and faults", &profile::NODES, Bounds { edits: 1, days: 1, crashes: 1, ..NONE })),
    ]
    .concat();
    assert_reached(&reached, &REACHABLE[4..7]);
}

/// The way back, and the profile again after it.
#[test]
fn restores() {
    let reached = [
        check(restoring("restores, there and back", &profile::TWO, Bounds { edits: 4, ..NONE })),
        check(restoring("restores, drift", &profile::TWO, Bounds { edits: 2, foreign_edits: 1, ..NONE })),
        check(restoring("restores, faults", &profile::TWO, Bounds { edits: 2, lost_answers: 1, crashes: 1, ..NONE })),
        check(restoring("restores, nodes", &profile::NODES, Bounds { edits: 2, ..NONE })),
        check(restoring("restores, removals", &profile::CLEARED, Bounds { edits: 2, crashes: 1, ..NONE })),
    ]
    .concat();
    assert_reached(&reached, &REACHABLE[7..]);
}

/// Only the digest of a plan approves it.
#[test]
fn reviewed() {
    let reviewed =
        |name, profile, bounds| Scenario { approval_mode: ApprovalMode::Reviewed, ..scenario(name, profile, bounds) };
    check(reviewed("reviewed, edits", &profile::TWO, Bounds { edits: 2, ..NONE }));
    check(reviewed("reviewed, drift", &profile::TWO, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
    check(reviewed("reviewed, input", &profile::TWO, Bounds { edits: 1, inputs: 1, ..NONE }));
    check(reviewed("reviewed, faults", &profile::ONE, Bounds { edits: 2, lost_answers: 1, crashes: 1, ..NONE }));
}

#[test]
fn two_items() {
    check(scenario("two items, edits", &profile::TWO, Bounds { edits: 2, ..NONE }));
    check(scenario("two items, drift", &profile::TWO, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
    check(scenario("two items, input there and back", &profile::TWO, Bounds { edits: 1, inputs: 2, ..NONE }));
    check(scenario("two items, faults", &profile::TWO, Bounds { edits: 1, lost_answers: 1, crashes: 1, ..NONE }));
    check(scenario("two items, refusals", &profile::TWO, Bounds { edits: 1, refusals: 1, ..NONE }));
}

#[test]
fn three_items() {
    check(scenario("three items, edits", &profile::THREE, Bounds { edits: 2, ..NONE }));
    check(steered("three items, drift", &profile::THREE, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
    check(steered("three items, input", &profile::THREE, Bounds { edits: 1, inputs: 1, ..NONE }));
    check(scenario("three items, faults", &profile::THREE, Bounds { edits: 1, lost_answers: 1, crashes: 1, ..NONE }));
}

#[test]
fn nodes() {
    check(steered("nodes, drift", &profile::NODES, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
    check(steered("nodes, input", &profile::NODES, Bounds { edits: 1, inputs: 2, ..NONE }));
    check(steered("nodes, faults", &profile::NODES, Bounds { edits: 1, lost_answers: 1, crashes: 1, ..NONE }));
}

#[test]
fn removals() {
    check(scenario("removals, drift", &profile::REMOVALS, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
    check(scenario("removals, faults", &profile::REMOVALS, Bounds { edits: 1, lost_answers: 1, crashes: 1, ..NONE }));
}

#[test]
fn an_input_that_is_managed_too() {
    check(scenario("managed input, drift", &profile::DEFAULT, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
    check(scenario("managed input, faults", &profile::DEFAULT, Bounds { foreign_edits: 1, crashes: 1, ..NONE }));
}

/// The process is stopped before any requests, one after the other too, and people edit the spec and the targets meanwhile.
#[test]
fn stops() {
    check(scenario("stops, edits", &profile::TWO, Bounds { edits: 1, stops: 2, ..NONE }));
    check(steered("stops, drift", &profile::ONE, Bounds { foreign_edits: 1, stops: 2, ..NONE }));
    check(steered("stops, faults", &profile::ONE, Bounds { edits: 1, lost_answers: 1, stops: 3, ..NONE }));
}

/// One read of one object may return an old state, at any time.
#[test]
fn old_answers() {
    let bounds = Bounds { edits: 1, stale_reads: 1, ..NONE };
    check(steered("old answers, edits", &profile::PASSING, Bounds { edits: 2, ..bounds }));
    check(steered("old answers, drift", &profile::PASSING, Bounds { foreign_edits: 1, ..bounds }));
    check(steered("old answers, removals", &profile::REMOVALS, bounds));
    check(steered("old answers, input", &profile::TWO, Bounds { inputs: 1, ..bounds }));
}

/// A pool that renders a changed MachineConfig only when its nodes run it.
#[test]
fn late_nodes() {
    check(scenario("late nodes, drift", &profile::LATE_NODES, Bounds { foreign_edits: 1, ..NONE }));
    check(steered(
        "late nodes, faults",
        &profile::LATE_NODES,
        Bounds { edits: 1, lost_answers: 1, crashes: 1, ..NONE },
    ));
}

/// Nodes lose a MachineConfig that was applied, and get it back, with a session in between or without.
#[test]
fn set_back_by_somebody() {
    let bounds = Bounds { foreign_edits: 2, ..NONE };
    check(set_back("set back", &profile::NODES, bounds));
    check(set_back("set back, faults", &profile::SHARED_NODES, Bounds { lost_answers: 1, crashes: 1, ..bounds }));
    check(set_back("set back, late nodes", &profile::LATE_SHARED_NODES, bounds));
}

/// Another MachineConfig of the pool has the argument that somebody sets in ours, so the rendered config has it in any case.
#[test]
fn nodes_shared_with_others() {
    check(steered("shared nodes", &profile::SHARED_NODES, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
    check(steered("late shared nodes", &profile::LATE_SHARED_NODES, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
}

/// A new plan may revert a MachineConfig before its pool has rendered somebody's change. Then the pool keeps its rendering, and there
/// is nothing to wait for.
#[test]
fn a_plan_that_is_faster_than_the_pool_is_not_waited_for_in_vain() {
    check(steered("late plan", &profile::LATE_NODES, Bounds { edits: 1, foreign_edits: 1, ..NONE }));
}

/// Two edits, one target edit, one change of the input, one lost answer and one crash together for one item, and for more items as
/// much as is feasible.
#[test]
#[ignore = "hundreds of thousands of states: `make test-model` explores them"]
fn all_bounds_together() {
    let all = Bounds { edits: 2, foreign_edits: 1, inputs: 1, lost_answers: 1, crashes: 1, ..NONE };
    // Approved in advance, and in review. Edits lead from these two to all others.
    let check = |name, profile, bounds| {
        let scenario = steered(name, profile, bounds);
        let starts = scenario.starts[1..3].to_vec();
        check(Scenario { starts, ..scenario });
    };
    check("one item, all bounds", &profile::ONE, all);
    check("two items, all but faults", &profile::TWO, Bounds { lost_answers: 0, crashes: 0, ..all });
    check("three items, all but faults", &profile::THREE, Bounds { edits: 1, lost_answers: 0, crashes: 0, ..all });
    check("three items, edits and faults", &profile::THREE, Bounds { foreign_edits: 0, inputs: 0, ..all });
    check("three items, all but edits", &profile::THREE, Bounds { edits: 0, ..all });
}
