//! How often a candidate comes near the optimum, over all cases and by family.

use serde::Serialize;

use super::{
    candidate::{Candidate, Described},
    case::Case,
    family::Family,
    judge::Judgement,
    lift::Lift,
};
use crate::{
    compare::{Progress, in_parallel},
    scenario::ScenarioError,
};

/// How many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Count {
    pub of: usize,
    /// All four demands.
    pub near: usize,
    pub even: usize,
    #[serde(rename = "fewMigrations")]
    pub few_migrations: usize,
    #[serde(rename = "noneBack")]
    pub none_back: usize,
    pub stops: usize,
}

impl Count {
    fn add(&mut self, judgement: Judgement) {
        self.of += 1;
        self.near += usize::from(judgement.is_near());
        self.even += usize::from(judgement.even);
        self.few_migrations += usize::from(judgement.few_migrations);
        self.none_back += usize::from(judgement.none_back);
        self.stops += usize::from(judgement.stops);
    }

    /// The share, and the 95 % interval of it (Wilson).
    pub fn share(&self) -> (f64, f64, f64) {
        let (n, z) = (self.of.max(1) as f64, 1.96);
        let share = self.near as f64 / n;
        let center = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let low = center - half;
        (share, if low > 0.0 { low } else { 0.0 }, center + half)
    }
}

/// The judgements of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    pub candidate: Described,
    pub lift: Lift,
    pub all: Count,
    pub by_family: Vec<(Family, Count)>,
    /// In all cases together: those of the runs, and those of the optimum.
    pub migrations: u64,
    pub needed: u64,
}

impl Tally {
    fn of(candidate: &Candidate, lift: Lift, judged: &[(Family, u64, u64, Judgement)]) -> Self {
        let mut all = Count::default();
        let mut by_family: Vec<(Family, Count)> = Family::ALL.map(|family| (family, Count::default())).to_vec();
        for (family, _, _, judgement) in judged {
            all.add(*judgement);
            by_family.iter_mut().filter(|(of, _)| of == family).for_each(|(_, count)| count.add(*judgement));
        }
        let migrations = judged.iter().map(|(_, migrations, ..)| migrations).sum();
        let needed = judged.iter().map(|(_, _, needed, _)| needed).sum();
        Self { candidate: candidate.describe(), lift, all, by_family, migrations, needed }
    }
}

/// Judges a candidate by all cases.
pub fn tally(cases: &[Case], candidate: &Candidate, threads: usize, progress: &Progress<'_>) -> Tally {
    let judged = in_parallel(cases.len(), threads, progress, |at| {
        let (done, judgement) = cases[at].judge(candidate);
        (cases[at].family, done.migrations, cases[at].yardstick.migrations, judgement)
    });
    Tally::of(candidate, Lift::Nothing, &judged)
}

/// Judges a candidate by all cases without a restriction.
pub fn tally_lifted(
    cases: &[Case],
    candidate: &Candidate,
    lift: Lift,
    threads: usize,
    progress: &Progress<'_>,
) -> Result<Tally, ScenarioError> {
    let judged = in_parallel(cases.len(), threads, progress, |at| {
        let (done, judgement) = lift.judge(&cases[at], candidate)?;
        Ok((cases[at].family, done.migrations, cases[at].yardstick.migrations, judgement))
    });
    let judged: Vec<_> = judged.into_iter().collect::<Result<_, ScenarioError>>()?;
    Ok(Tally::of(candidate, lift, &judged))
}
