//! The search itself: many candidates on few cases, the better ones on more, and the best on all; then steps to better neighbors.
//! It draws nothing at random, so it finds the same again.

use super::{candidate::Candidate, case::Case, found::Bar};
use crate::compare::{Progress, in_parallel};

/// The rounds: each has one of so many cases, and keeps one of so many candidates.
const ROUNDS: [(usize, usize); 3] = [(8, 16), (3, 6), (1, 1)];
/// No fewer candidates are kept until the last round.
const FEWEST: usize = 3;
/// The most rounds of steps to better neighbors.
const STEPS: usize = 4;

/// The best of these candidates, and in how many of the cases it comes near the optimum.
pub(super) fn best(
    cases: &[Case],
    mut candidates: Vec<Candidate>,
    threads: usize,
    bar: &Bar<'_>,
) -> Option<(Candidate, usize)> {
    let mut counted = Vec::new();
    for (every, keep) in ROUNDS {
        // A case of each family comes after the other, so that every part of them has all families.
        let some = &cases[..cases.len().div_ceil(every)];
        counted = count(some, &candidates, threads, &bar("candidates"));
        let kept = (candidates.len() / keep).max(FEWEST).min(counted.len());
        candidates = counted[..kept].iter().map(|(candidate, _)| *candidate).collect();
    }
    counted.first().copied()
}

/// Goes to the best neighbor, as long as one is better.
pub(super) fn refine(
    cases: &[Case],
    mut best: (Candidate, usize),
    threads: usize,
    bar: &Bar<'_>,
) -> (Candidate, usize) {
    for _ in 0..STEPS {
        match count(cases, &best.0.neighbors(), threads, &bar("neighbors")).first() {
            Some(found) if found.1 > best.1 => best = *found,
            _ => break,
        }
    }
    best
}

/// The candidates with the numbers of cases in which they come near, the best first. Of equals the first comes first.
fn count(cases: &[Case], candidates: &[Candidate], threads: usize, progress: &Progress<'_>) -> Vec<(Candidate, usize)> {
    let near = |at: usize| cases.iter().filter(|case| case.is_near(&candidates[at])).count();
    let near = in_parallel(candidates.len(), threads, progress, near);
    let mut counted: Vec<(Candidate, usize)> = candidates.iter().copied().zip(near).collect();
    counted.sort_by_key(|(_, near)| std::cmp::Reverse(*near));
    counted
}
