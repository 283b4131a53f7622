//! Random schedules of edits, faults and crashes, each from one seed: the whole operator runs against a model of the API
//! server, with a paused clock. Nothing is written without approval, and in the end nothing is written any more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod administrators;
mod api;
mod client;
mod cluster;
mod fault_plan;
mod fidelity;
mod final_checks;
mod invariants;
mod machine_config_operator;
mod random;
mod recorder;
mod run;
mod samples;
mod schedule;
mod slow_way;
mod sweep;
mod unreadable;
mod watches;

use std::time::Instant;

use schedule::Schedule;
use sweep::{check, report, sweep};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many schedules `make test` runs.
const USUAL: u64 = 200;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// `SEED=7` runs one schedule and prints its log; `SCHEDULES=50000` runs so many, from `FIRST` on.
#[test]
fn whatever_happens_only_what_was_approved_is_written_and_there_is_rest() {
    if let Some(seed) = number("SEED") {
        let schedule = Schedule::of(seed);
        let (violations, outcome) = check(&schedule);
        println!("{schedule:#?}");
        outcome.log.iter().for_each(|line| println!("{line}"));
        println!("{} requests, {} with a fault", outcome.requests, outcome.injected_faults);
        assert!(violations.is_empty(), "{}", report(&schedule));
        return;
    }
    let (first, count) = (number("FIRST").unwrap_or(1), number("SCHEDULES").unwrap_or(USUAL));
    let threads = number("THREADS").unwrap_or(2) as usize;
    let start = Instant::now();
    let swept = sweep(first..first + count, threads);
    println!(
        "{count} schedules in {:.0?}, {} of them spaced and {} with a lease: {} requests, {} with a fault",
        start.elapsed(),
        swept.spaced,
        swept.elected,
        swept.requests,
        swept.injected_faults
    );
    if let Some(seed) = swept.failed.first() {
        panic!("{} of {count} fail: {:?}\n{}", swept.failed.len(), swept.failed, report(&Schedule::of(*seed)));
    }
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in (0..number("REPEATED").unwrap_or(10)).map(|number| 1_000_000 + number) {
        let schedule = Schedule::of(seed);
        let (first, second) = (run::run(&schedule), run::run(&schedule));
        let differs = first.log.iter().zip(&second.log).position(|(a, b)| a != b);
        if let Some(line) = differs {
            let shown = |log: &[String]| log[line.saturating_sub(3)..=line].join("\n");
            panic!("SEED={seed}:\n{}\nand\n{}", shown(&first.log), shown(&second.log));
        }
        assert_eq!(first, second, "SEED={seed}");
    }
}
