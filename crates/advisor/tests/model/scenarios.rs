//! What is explored: small worlds that together cover the bounds, each to the end.

use std::{
    sync::{Mutex, PoisonError, atomic::Ordering},
    time::Instant,
};

use api::virt_platform_config::{Action, FailurePolicy};
use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    cluster::Meddling,
    mutation::Mutation,
    profile::{self, Toy},
    rules::{OCCASIONS, REST},
    world::{Bounds, Edit, Scenario, Start, World},
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
/// The edits by which a life is steered. What the others do does not depend on how much else happens.
pub(crate) const STEERING: &[Edit] = &[Edit::DryRun, Edit::Apply, Edit::Ignore, Edit::Options];
pub(crate) const MEDDLINGS: &[Meddling] = &[Meddling::Change, Meddling::Touch, Meddling::Delete];
pub(crate) const NONE: Bounds =
    Bounds { edits: 0, meddlings: 0, inputs: 0, unheard: 0, crashes: 0, refusals: 0, stale: 0 };

/// All ways to begin: new or at rest, planned or applied, careful or not.
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

pub(crate) fn scenario(name: &'static str, toy: &'static Toy, bounds: Bounds) -> Scenario {
    Scenario { name, toy, starts: starts(), bounds, edits: EDITS, meddlings: MEDDLINGS }
}

fn steered(name: &'static str, toy: &'static Toy, bounds: Bounds) -> Scenario {
    Scenario { edits: STEERING, ..scenario(name, toy, bounds) }
}

/// What was found: how many states there are, and the first way to each broken rule.
pub(crate) struct Found {
    pub(crate) numbers: String,
    pub(crate) broken: Vec<(&'static str, String)>,
    /// Which of the occasions there were.
    pub(crate) occasions: Vec<&'static str>,
}

/// One at a time: each takes all cores there are, and a gigabyte.
static TURN: Mutex<()> = Mutex::new(());

/// Explores a scenario. With a mistake, only rules that contain one of these words count.
pub(crate) fn explore(scenario: Scenario, mistake: Option<(Mutation, &'static [&'static str])>) -> Found {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let name = scenario.name;
    let mut world = World::new(scenario, mistake.map(|(mutation, _)| mutation));
    world.words = mistake.map(|(_, words)| words);
    let memory = world.memory.clone();
    let begun = Instant::now();
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let numbers = format!(
        "{name}: {} states, depth {}, at rest after at most {} steps, {} turns, {:.1?}",
        checker.unique_state_count(),
        checker.max_depth(),
        memory.longest.load(Ordering::Relaxed),
        memory.turned.load(Ordering::Relaxed),
        begun.elapsed()
    );
    let (mut broken, mut occasions) = (Vec::new(), Vec::new());
    for (rule, path) in checker.discoveries() {
        if OCCASIONS.contains(&rule) {
            occasions.push(rule);
            continue;
        }
        let mut way = String::new();
        for (state, event) in path.into_vec() {
            let end: String = format!("{:?}", memory.ending(&state.core).result).chars().take(60).collect();
            let event = event.map_or_else(|| format!("would end: {end}"), |event| format!("{event:?}"));
            way += &format!("    {state:?}\n  {event}\n");
        }
        broken.push((rule, way));
    }
    Found { numbers, broken, occasions }
}

fn check(scenario: Scenario) -> Vec<&'static str> {
    let found = explore(scenario, None);
    println!("{}", found.numbers);
    for (rule, way) in &found.broken {
        println!("broken: {rule}\n{way}");
    }
    assert!(found.broken.is_empty(), "a rule is broken");
    found.occasions
}

#[test]
fn one_item() {
    let bounds = Bounds { edits: 1, meddlings: 1, inputs: 1, unheard: 1, crashes: 1, ..NONE };
    let occasions = [
        check(scenario(
            "one item, edits and faults",
            &profile::ONE,
            Bounds { meddlings: 0, inputs: 0, edits: 2, ..bounds },
        )),
        check(scenario("one item, edits and drift", &profile::ONE, Bounds { edits: 2, meddlings: 1, ..NONE })),
        check(scenario("one item, input there and back", &profile::ONE, Bounds { edits: 1, inputs: 2, ..NONE })),
        check(scenario("one item, refusals", &profile::ONE, Bounds { edits: 2, refusals: 1, ..NONE })),
        check(steered(
            "one item, edits, drift, input",
            &profile::ONE,
            Bounds { edits: 2, unheard: 0, crashes: 0, ..bounds },
        )),
        check(steered("one item, one of each", &profile::ONE, bounds)),
    ]
    .concat();
    let lacking: Vec<_> = OCCASIONS.iter().filter(|occasion| !occasions.contains(occasion)).collect();
    assert!(lacking.is_empty(), "never seen: {lacking:?}");
}

#[test]
fn two_items() {
    check(scenario("two items, edits", &profile::TWO, Bounds { edits: 2, ..NONE }));
    check(scenario("two items, drift", &profile::TWO, Bounds { edits: 1, meddlings: 1, ..NONE }));
    check(scenario("two items, input there and back", &profile::TWO, Bounds { edits: 1, inputs: 2, ..NONE }));
    check(scenario("two items, faults", &profile::TWO, Bounds { edits: 1, unheard: 1, crashes: 1, ..NONE }));
    check(scenario("two items, refusals", &profile::TWO, Bounds { edits: 1, refusals: 1, ..NONE }));
}

#[test]
fn three_items() {
    check(scenario("three items, edits", &profile::THREE, Bounds { edits: 2, ..NONE }));
    check(steered("three items, drift", &profile::THREE, Bounds { edits: 1, meddlings: 1, ..NONE }));
    check(steered("three items, input", &profile::THREE, Bounds { edits: 1, inputs: 1, ..NONE }));
    check(scenario("three items, faults", &profile::THREE, Bounds { edits: 1, unheard: 1, crashes: 1, ..NONE }));
}

#[test]
fn nodes() {
    check(steered("nodes, drift", &profile::NODES, Bounds { edits: 1, meddlings: 1, ..NONE }));
    check(steered("nodes, input", &profile::NODES, Bounds { edits: 1, inputs: 2, ..NONE }));
    check(steered("nodes, faults", &profile::NODES, Bounds { edits: 1, unheard: 1, crashes: 1, ..NONE }));
}

#[test]
fn removals() {
    check(scenario("removals, drift", &profile::REMOVALS, Bounds { edits: 1, meddlings: 1, ..NONE }));
    check(scenario("removals, faults", &profile::REMOVALS, Bounds { edits: 1, unheard: 1, crashes: 1, ..NONE }));
}

#[test]
fn an_input_that_is_managed_too() {
    check(scenario("managed input, drift", &profile::DEFAULT, Bounds { edits: 1, meddlings: 1, ..NONE }));
    check(scenario("managed input, faults", &profile::DEFAULT, Bounds { meddlings: 1, crashes: 1, ..NONE }));
}

/// What is read may be older than what is there: one answer about one object, at any time.
#[test]
fn old_answers() {
    let bounds = Bounds { edits: 1, stale: 1, ..NONE };
    check(steered("old answers, edits", &profile::PASSING, Bounds { edits: 2, ..bounds }));
    check(steered("old answers, drift", &profile::PASSING, Bounds { meddlings: 1, ..bounds }));
    check(steered("old answers, removals", &profile::REMOVALS, bounds));
    check(steered("old answers, input", &profile::TWO, Bounds { inputs: 1, ..bounds }));
}

/// A pool that takes in a changed machine config only when its nodes do.
#[test]
fn late_nodes() {
    check(scenario("late nodes, drift", &profile::LATE_NODES, Bounds { meddlings: 1, ..NONE }));
    check(steered("late nodes, faults", &profile::LATE_NODES, Bounds { edits: 1, unheard: 1, crashes: 1, ..NONE }));
}

/// A weakness that is known and not beaten yet: when a new plan sets a machine config back before its pool has noticed that
/// somebody changed it, the pool keeps the rendering that it has, and that is waited for as if it were the old one. When this
/// fails, it is beaten: then a pool may be late in all scenarios.
#[test]
fn a_plan_that_is_faster_than_the_pool_is_waited_for_in_vain() {
    let found = explore(steered("late plan", &profile::LATE_NODES, Bounds { edits: 1, meddlings: 1, ..NONE }), None);
    println!("{}", found.numbers);
    assert_eq!(found.broken.iter().map(|(rule, _)| *rule).collect::<Vec<_>>(), [REST]);
}

/// Two edits, one target edit, one change of the input, one lost answer and one crash together, and as much of it as is
/// feasible with more items.
#[test]
#[ignore = "slow: `make test-model` runs it"]
fn all_bounds_together() {
    let all = Bounds { edits: 2, meddlings: 1, inputs: 1, unheard: 1, crashes: 1, ..NONE };
    // What was approved beforehand, and what is in review. Edits lead from there to everything else.
    let check = |name, toy, bounds| {
        let scenario = steered(name, toy, bounds);
        let starts = scenario.starts[1..3].to_vec();
        check(Scenario { starts, ..scenario });
    };
    check("one item, all bounds", &profile::ONE, all);
    check("two items, all but faults", &profile::TWO, Bounds { unheard: 0, crashes: 0, ..all });
    check("three items, all but faults", &profile::THREE, Bounds { edits: 1, unheard: 0, crashes: 0, ..all });
    check("three items, edits and faults", &profile::THREE, Bounds { meddlings: 0, inputs: 0, ..all });
    check("three items, all but edits", &profile::THREE, Bounds { edits: 0, ..all });
}
