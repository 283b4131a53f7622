//! What is explored.

use std::{sync::atomic::Ordering, time::Instant};

use api::virt_platform_config::{Action, FailurePolicy};
use stateright::{Checker, Model};

use crate::{
    cluster::Meddling,
    profile,
    world::{Bounds, Edit, Scenario, Start, World},
};

const ALL_EDITS: &[Edit] = &[
    Edit::DryRun,
    Edit::Apply,
    Edit::ApplyNamed,
    Edit::ApplyOther,
    Edit::Ignore,
    Edit::Options,
    Edit::Bypass,
    Edit::Policy,
];

fn start(action: Action, is_settled: bool) -> Start {
    Start { action, bypass: false, policy: FailurePolicy::Abort, is_settled }
}

fn explore(scenario: Scenario) {
    let name = scenario.name;
    let world = World::new(scenario, None);
    let memory = world.memory.clone();
    let begun = Instant::now();
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!(
        "{name}: {} states, depth {}, {} different steps, rest within {} steps, {:.1?}",
        checker.unique_state_count(),
        checker.max_depth(),
        memory.len(),
        memory.longest.load(Ordering::Relaxed),
        begun.elapsed()
    );
    checker.assert_properties();
}

#[test]
fn one_item() {
    explore(Scenario {
        name: "one item",
        toy: &profile::ONE,
        starts: vec![start(Action::DryRun, false), start(Action::Apply, false)],
        bounds: Bounds { edits: 1, meddlings: 1, inputs: 1, unheard: 1, crashes: 1, refusals: 0 },
        edits: ALL_EDITS,
        meddlings: &[Meddling::Change, Meddling::Touch, Meddling::Delete],
    });
}
