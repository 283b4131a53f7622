//! The whole loop with real parts: only the descheduler rebalances uneven loads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advised;
mod course;
mod ending;
mod observer;
mod prediction;
mod reason;
mod skews;
mod table;

use balance::{Algorithm, Mode};

use course::{Course, Parts, run, run_with};
use lab::play::Placement;
use lab_parts::webhook::Switch;
use prediction::predict;
use skews::{big_guests, four_hot_nodes, placement_skew, use_skew};

/// A quarter of a cycle, in seconds of the lab. If migrations take longer, a cycle sees migrations that the last one has begun
/// and that have not ended; the simulator does not model that.
const PACE: f64 = 15.0;

/// If the simulator is right, one run in ten is outside of its interval, but hardly ever three in a row.
const DRAWS: usize = 3;

/// Returns None if this machine is too busy for a comparison.
fn is_as_simulated(skew: &Placement, mode: Mode, course: &Course) -> Option<bool> {
    if course.took > PACE {
        println!(
            "not compared with the simulator: a migration took {:.0} s of the lab, this machine is too busy",
            course.took
        );
        return None;
    }
    let prediction = predict(skew, &Algorithm::default(), mode, course.took);
    let holds = prediction.holds(course);
    println!("{} {prediction:?}", if holds { "within" } else { "outside" });
    Some(holds)
}

async fn settles_as_simulated(skew: &Placement, mode: Mode, share: f64) {
    for _ in 0..DRAWS {
        let course = run(skew, mode).await;
        course.settles(share);
        if is_as_simulated(skew, mode, &course) != Some(false) {
            return;
        }
    }
    panic!("{DRAWS} runs in a row came out otherwise than the simulator says");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skew_in_placement_is_evened_out_and_then_the_loop_stops_as_the_simulator_says() {
    settles_as_simulated(&placement_skew(1), Mode::Low, 0.75).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skew_in_use_is_evened_out_and_then_the_loop_stops_as_the_simulator_says() {
    settles_as_simulated(&use_skew(1), Mode::AsymmetricLow, 0.60).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "twelve more runs of the real loop: `make test-closed-loop` makes them"]
async fn every_skew_is_evened_out_with_either_thresholds_and_three_seeds() {
    let mut compared = Vec::new();
    for seed in 1..=3 {
        for mode in [Mode::Low, Mode::AsymmetricLow] {
            for (skew, share) in [(placement_skew(seed), 0.75), (use_skew(seed), 0.60)] {
                let course = run(&skew, mode).await;
                course.settles(share);
                compared.extend(is_as_simulated(&skew, mode, &course));
            }
        }
    }
    let within = compared.iter().filter(|within| **within).count();
    assert!(within * 3 >= compared.len() * 2, "only {within} of {} runs are as simulated", compared.len());
}

/// A limit of the reference's algorithm: each of four equally busy nodes is too near the average of five.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "another run of the real loop: `make test-closed-loop` makes it"]
async fn four_hot_nodes_and_an_empty_one_are_left_as_they_are() {
    run(&four_hot_nodes(), Mode::Low).await.does_nothing();
}

/// A limit of every scheduler that compares requests: it places VMs on the nodes that they came from.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "another run of the real loop: `make test-closed-loop` makes it"]
async fn without_the_soft_tainter_a_skew_in_use_never_settles() {
    let parts = Parts { soft_tainter: false, ..Parts::WITHOUT_PLUGIN };
    run_with(&use_skew(1), &Algorithm::default(), Mode::Low, parts).await.course.goes_on();
}

/// A limit of moving whole VMs: the node that gets a big one is over-utilized then.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "another run of the real loop: `make test-closed-loop` makes it"]
async fn without_the_plugin_big_guests_are_moved_to_and_fro() {
    run_with(&big_guests(1), &Algorithm::default(), Mode::Low, Parts::WITHOUT_PLUGIN).await.course.goes_on();
}

/// A VM that has moved cools down for 15 of the 31 cycles that are watched, and then twice as long.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "another run of the real loop: `make test-closed-loop` makes it"]
async fn with_the_plugin_no_vm_is_moved_again_before_its_cool_down_is_over() {
    let parts = Parts { migration_aware: Switch::On, ..Parts::default() };
    let course = run_with(&big_guests(1), &Algorithm::default(), Mode::Low, parts).await.course;
    assert!(course.most_of_one <= 2, "{course:?}");
}
