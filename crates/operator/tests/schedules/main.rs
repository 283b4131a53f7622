//! Random schedules from a seed: the whole operator on an API server made of values, on a clock that jumps. Whatever breaks
//! at whatever moment, nothing is written that nobody approved, and in the end there is rest.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod conversation;
mod dice;
mod door;
mod fate;
mod law;
mod life;
mod mco;
mod people;
mod recorder;
mod samples;
mod schedule;
mod sweep;
mod verdict;
mod watching;
mod world;

use std::time::Instant;

use schedule::Schedule;
use sweep::{judge, report, sweep};

/// How many are tried with all other tests.
const USUAL: u64 = 200;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// `SEED=7` lives one of them and tells its story; `SCHEDULES=50000` tries so many, from `FIRST` on.
#[test]
fn whatever_happens_only_what_was_approved_is_written_and_there_is_rest() {
    if let Some(seed) = number("SEED") {
        let schedule = Schedule::of(seed);
        let (violations, outcome) = judge(&schedule);
        println!("{schedule:#?}");
        outcome.story.iter().for_each(|line| println!("{line}"));
        println!("{} requests, {} in trouble", outcome.requests, outcome.disturbances);
        assert!(violations.is_empty(), "{}", report(&schedule));
        return;
    }
    let (first, count) = (number("FIRST").unwrap_or(1), number("SCHEDULES").unwrap_or(USUAL));
    let threads = number("THREADS").unwrap_or(2) as usize;
    let start = Instant::now();
    let swept = sweep(first..first + count, threads);
    println!(
        "{count} schedules in {:.0?}, {} of them spaced and {} with a lease: {} requests, {} in trouble",
        start.elapsed(),
        swept.spaced,
        swept.elected,
        swept.requests,
        swept.disturbances
    );
    if let Some(seed) = swept.failed.first() {
        panic!("{} of {count} fail: {:?}\n{}", swept.failed.len(), swept.failed, report(&Schedule::of(*seed)));
    }
}

/// What cannot be repeated cannot be understood.
#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in (0..number("REPEATED").unwrap_or(10)).map(|number| 1_000_000 + number) {
        let schedule = Schedule::of(seed);
        let (first, second) = (life::live(&schedule), life::live(&schedule));
        let differs = first.story.iter().zip(&second.story).position(|(a, b)| a != b);
        if let Some(line) = differs {
            let shown = |story: &[String]| story[line.saturating_sub(3)..=line].join("\n");
            panic!("SEED={seed}:\n{}\nand\n{}", shown(&first.story), shown(&second.story));
        }
        assert_eq!(first, second, "SEED={seed}");
    }
}
