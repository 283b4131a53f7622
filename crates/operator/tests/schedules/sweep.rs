//! Many schedules, one after the other; and one that fails, told as short as it can be.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use crate::{
    life::{Outcome, live},
    schedule::{Order, Schedule},
    verdict::comparable,
};

/// What went wrong in a schedule, if anything; and its story.
pub(crate) fn judge(schedule: &Schedule) -> (Vec<String>, Outcome) {
    let mut outcome = match catch_unwind(AssertUnwindSafe(|| live(schedule))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panic".into());
            let violations = vec![format!("panic: {text}")];
            Outcome { story: Vec::new(), violations, requests: 0, disturbances: 0, end: serde_json::Value::Null }
        }
    };
    let mut violations = std::mem::take(&mut outcome.violations);
    if schedule.order == Order::Spaced && violations.is_empty() && schedule.undisturbed() != *schedule {
        let (without, with) = comparable(live(&schedule.undisturbed()).end, outcome.end.clone());
        if without != with {
            let lines = differences(&without, &with, "");
            violations.push(format!("another end than without trouble:\n{}", lines.join("\n")));
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

/// Takes away what is not needed for it to fail, as long as the first words of the complaint stay.
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
            if kind(&judge(&smaller).0) == wanted {
                smallest = smaller;
                continue 'again;
            }
        }
        return smallest;
    }
}

/// The story of a schedule that failed.
pub(crate) fn report(schedule: &Schedule) -> String {
    let (violations, _) = judge(schedule);
    let shrunk = shrink(schedule, &violations);
    let (violations, outcome) = judge(&shrunk);
    let mut text = format!("\nSEED={} fails; what is needed for it:\n{shrunk:#?}\n", schedule.seed);
    text += &outcome.story.join("\n");
    violations.iter().for_each(|violation| text += &format!("\n  => {violation}"));
    text + &format!("\nAgain: SEED={} make test-schedules\n", schedule.seed)
}

pub(crate) struct Swept {
    pub(crate) failed: Vec<u64>,
    pub(crate) requests: u64,
    pub(crate) disturbances: u64,
    pub(crate) spaced: u64,
    pub(crate) elected: u64,
}

/// Tries all of these seeds, on so many threads.
pub(crate) fn sweep(seeds: std::ops::Range<u64>, threads: usize) -> Swept {
    let start = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let worker = || {
        let mut swept = Swept { failed: Vec::new(), requests: 0, disturbances: 0, spaced: 0, elected: 0 };
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return swept;
            }
            let schedule = Schedule::of(seed);
            let (violations, outcome) = judge(&schedule);
            swept.requests += outcome.requests;
            swept.disturbances += outcome.disturbances;
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
        disturbances: sum(|swept| swept.disturbances),
        spaced: sum(|swept| swept.spaced),
        elected: sum(|swept| swept.elected),
    }
}
