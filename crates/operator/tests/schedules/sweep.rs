//! Runs many schedules, and shrinks one that fails.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use crate::{
    final_checks::comparable,
    run::{Outcome, run},
    schedule::{Order, Schedule},
};

/// Runs a schedule and returns its violations and its outcome.
pub(crate) fn check(schedule: &Schedule) -> (Vec<String>, Outcome) {
    let mut outcome = match catch_unwind(AssertUnwindSafe(|| run(schedule))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panic".into());
            let violations = vec![format!("panic: {text}")];
            Outcome { log: Vec::new(), violations, requests: 0, injected_faults: 0, end: serde_json::Value::Null }
        }
    };
    let mut violations = std::mem::take(&mut outcome.violations);
    if schedule.order == Order::Spaced && violations.is_empty() && schedule.without_faults() != *schedule {
        let (without, with) = comparable(run(&schedule.without_faults()).end, outcome.end.clone());
        if without != with {
            let lines = differences(&without, &with, "");
            violations.push(format!("another end than without faults:\n{}", lines.join("\n")));
        }
    }
    (violations, outcome)
}

fn differences(expected: &serde_json::Value, seen: &serde_json::Value, path: &str) -> Vec<String> {
    match (expected.as_object(), seen.as_object()) {
        (Some(a), Some(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let null = serde_json::Value::Null;
            let below = |name: &String| {
                let (a, b) = (a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null));
                differences(a, b, &format!("{path}.{name}"))
            };
            names.into_iter().flat_map(below).collect()
        }
        _ if expected == seen => Vec::new(),
        _ => vec![format!("     {path}: {expected} without, {seen} with")],
    }
}

/// Leaves out what the failure does not need, as long as the violation begins with the same words.
fn shrink(schedule: &Schedule, violations: &[String]) -> Schedule {
    let kind = |violations: &[String]| violations.first().map(|first| first.chars().take(24).collect::<String>());
    let wanted = kind(violations);
    let mut smallest = schedule.clone();
    let mut left = 200;
    'again: loop {
        for smaller in smallest.smaller() {
            if left == 0 {
                return smallest;
            }
            left -= 1;
            if kind(&check(&smaller).0) == wanted {
                smallest = smaller;
                continue 'again;
            }
        }
        return smallest;
    }
}

/// The violations and the log of a schedule that failed.
pub(crate) fn report(schedule: &Schedule) -> String {
    let (violations, _) = check(schedule);
    let shrunk = shrink(schedule, &violations);
    let (violations, outcome) = check(&shrunk);
    let mut text = format!("\nSEED={} fails; what is needed for it:\n{shrunk:#?}\n", schedule.seed);
    text += &outcome.log.join("\n");
    violations.iter().for_each(|violation| text += &format!("\n  => {violation}"));
    text + &format!("\nAgain: SEED={} make test-schedules\n", schedule.seed)
}

pub(crate) struct Swept {
    pub(crate) failed: Vec<u64>,
    pub(crate) requests: u64,
    pub(crate) injected_faults: u64,
    pub(crate) spaced: u64,
    pub(crate) elected: u64,
}

/// Runs the schedules of these seeds on so many threads.
pub(crate) fn sweep(seeds: std::ops::Range<u64>, threads: usize) -> Swept {
    let start = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let worker = || {
        let mut swept = Swept { failed: Vec::new(), requests: 0, injected_faults: 0, spaced: 0, elected: 0 };
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return swept;
            }
            let schedule = Schedule::of(seed);
            let (violations, outcome) = check(&schedule);
            swept.requests += outcome.requests;
            swept.injected_faults += outcome.injected_faults;
            swept.spaced += u64::from(schedule.order == Order::Spaced);
            swept.elected += u64::from(schedule.elects);
            if let Some(first) = violations.first() {
                println!("SEED={seed}: {}", first.lines().next().unwrap_or_default());
                swept.failed.push(seed);
            }
            let tried = seed + 1 - seeds.start;
            if tried.is_multiple_of(500) {
                println!("{tried} of {} schedules in {:.0?}", seeds.end - seeds.start, start.elapsed());
            }
        }
    };
    let swept: Vec<Swept> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let sum = |count: fn(&Swept) -> u64| swept.iter().map(count).sum();
    let mut failed: Vec<u64> = swept.iter().flat_map(|swept| swept.failed.clone()).collect();
    failed.sort_unstable();
    Swept {
        failed,
        requests: sum(|swept| swept.requests),
        injected_faults: sum(|swept| swept.injected_faults),
        spaced: sum(|swept| swept.spaced),
        elected: sum(|swept| swept.elected),
    }
}
