//! The whole search, from the scenarios to the figures of those that it did not use.

use balance::Algorithm;
use serde::Serialize;

use super::{
    candidate::{Candidate, shipped, space},
    case::{Case, cases},
    halving::{best, refine},
    lift::Lift,
    tally::{Tally, tally, tally_lifted},
};
use crate::{compare::Progress, scenario::ScenarioError};

/// What the search found, and how the algorithms of the project compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    pub seed: u64,
    /// How many scenarios the search used, and how many the figures are of.
    pub searched: usize,
    pub held_out: usize,
    /// Every algorithm with its best mode and limits, the best first.
    pub shipped: Vec<Tally>,
    /// The best score, with nothing lifted and without each restriction; nothing, if it was not searched.
    pub found: Vec<Tally>,
}

/// Makes a progress bar for a part of the work.
pub type Bar<'a> = dyn Fn(&'static str) -> Box<Progress<'static>> + 'a;

/// Generates scenarios, uses the first half to choose, and the second half to judge. It finds the same with any number of threads.
pub fn search(
    seed: u64,
    scenarios: u64,
    searches: bool,
    threads: usize,
    bar: &Bar<'_>,
) -> Result<Found, ScenarioError> {
    let half = scenarios / 2;
    let searched = cases(seed, 0..half, threads, &bar("scenarios to search"))?;
    let held_out = cases(seed, half..scenarios, threads, &bar("scenarios to judge by"))?;
    let all = shipped();
    let judged = |algorithm: &Algorithm| {
        let own: Vec<Candidate> = all.iter().filter(|of| of.variant.algorithm == *algorithm).copied().collect();
        let (candidate, _) = best(&searched, own, threads, bar)?;
        Some(tally(&held_out, &candidate, threads, &bar("runs")))
    };
    let mut shipped: Vec<Tally> = Algorithm::all().iter().filter_map(judged).collect();
    shipped.sort_by_key(|tally| std::cmp::Reverse(tally.all.near));
    let found = if searches { lifted(&searched, &held_out, threads, bar)? } else { Vec::new() };
    Ok(Found { seed, searched: searched.len(), held_out: held_out.len(), shipped, found })
}

/// The best score, without each restriction.
fn lifted(searched: &[Case], held_out: &[Case], threads: usize, bar: &Bar<'_>) -> Result<Vec<Tally>, ScenarioError> {
    let Some(first) = best(searched, space(), threads, bar) else { return Ok(Vec::new()) };
    let (candidate, _) = refine(searched, first, threads, bar);
    Lift::ALL.into_iter().map(|lift| tally_lifted(held_out, &candidate, lift, threads, &bar("runs"))).collect()
}
