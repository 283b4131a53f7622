//! What other thresholds and limits would do, beside the plan, and whether one of them is better.

use balance::{Classifier, Mode};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Figure, PlannedSettings,
    outcome::{self, Outcome},
};
use crate::{scenario::Limits, settings::RunSettings};

/// A difference below these is not worth a recommendation.
const SMALLEST_SPREAD: f64 = 0.01;
const FEWEST_MIGRATIONS: f64 = 1.0;

/// Thresholds and limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    pub mode: Mode,
    pub limits: Limits,
}

impl Setting {
    /// All thresholds with the limits of a plan, then half and twice its limits, if it has any, with its own thresholds.
    pub fn usual(plan: &PlannedSettings) -> Vec<Self> {
        let Limits { total, per_node } = plan.limits;
        let half = Limits { total: (total / 2).max(1), per_node: (per_node / 2).max(1) };
        let twice = Limits { total: total.saturating_mul(2), per_node: per_node.saturating_mul(2) };
        let modes = Mode::ALL.into_iter().map(|mode| Self { mode, limits: plan.limits });
        let others = [half, twice].into_iter().filter(|_| total < u32::MAX);
        modes.chain(others.map(|limits| Self { mode: plan.mode, limits })).collect()
    }

    pub(super) fn in_settings(&self, settings: &RunSettings) -> RunSettings {
        let classifier = Classifier::new(self.mode, settings.classifier.semantics);
        RunSettings { classifier, limits: self.limits, ..*settings }
    }
}

/// What a setting would do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alternative {
    /// As in a KubeDescheduler.
    pub thresholds: String,
    pub limit_total: u32,
    pub limit_node: u32,
    /// Whether it is the plan itself.
    pub is_planned: bool,
    pub spread_at_rest: Figure,
    pub migrations_first_hour: Figure,
    pub migrations_first_day: Figure,
    /// The share of runs without a migration at rest.
    pub settles: f64,
}

/// A setting that is better than the plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recommendation {
    pub thresholds: String,
    pub limit_total: u32,
    pub limit_node: u32,
    /// In what it is better.
    pub because: String,
}

/// The plan first, then what it is compared with. A plan that evicts nothing is compared with nothing.
pub(super) fn settings(plan: &PlannedSettings, others: &[Setting]) -> Vec<Setting> {
    if !plan.evicts {
        return vec![Setting { mode: plan.mode, limits: Limits { total: 0, per_node: 0 } }];
    }
    let mut settings = vec![Setting { mode: plan.mode, limits: plan.limits }];
    for other in others {
        if !settings.contains(other) {
            settings.push(*other);
        }
    }
    settings
}

pub(super) fn table(settings: &[Setting], outcomes: &[&[Outcome]]) -> Vec<Alternative> {
    let row = |(position, (setting, outcomes)): (usize, (&Setting, &&[Outcome]))| Alternative {
        thresholds: setting.mode.name().to_owned(),
        limit_total: setting.limits.total,
        limit_node: setting.limits.per_node,
        is_planned: position == 0,
        spread_at_rest: Figure::over(outcomes, |outcome| outcome.spread_at_rest),
        migrations_first_hour: Figure::over(outcomes, |outcome| outcome.first_hour),
        migrations_first_day: Figure::over(outcomes, |outcome| outcome.first_day),
        settles: outcome::settles(outcomes),
    };
    settings.iter().zip(outcomes).enumerate().map(row).collect()
}

/// The best setting that is better than the plan in spread or migrations, with intervals that are apart, and in the
/// other one not worse.
pub(super) fn recommendation(table: &[Alternative]) -> Option<Recommendation> {
    let (plan, others) = table.split_first()?;
    let is_less = |one: &Alternative, other: &Alternative| {
        [
            one.spread_at_rest.is_below(&other.spread_at_rest, SMALLEST_SPREAD),
            one.migrations_first_day.is_below(&other.migrations_first_day, FEWEST_MIGRATIONS),
        ]
    };
    let better = others.iter().filter_map(|other| {
        let gains = is_less(other, plan);
        let is_better = gains.contains(&true) && !is_less(plan, other).contains(&true);
        is_better.then_some((other, gains))
    });
    let rank = |(other, gains): &(&Alternative, [bool; 2])| {
        let lacking = gains.iter().filter(|gain| !**gain).count();
        (lacking, other.spread_at_rest.expected, other.migrations_first_day.expected)
    };
    let (best, gains) = better.min_by(|one, other| {
        let (one, other) = (rank(one), rank(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.total_cmp(&other.2))
    })?;
    let because = match gains {
        [true, true] => "less spread and fewer migrations",
        [true, false] => "less spread, with no more migrations that the intervals would tell",
        [false, _] => "fewer migrations, with no more spread that the intervals would tell",
    };
    Some(Recommendation {
        thresholds: best.thresholds.clone(),
        limit_total: best.limit_total,
        limit_node: best.limit_node,
        because: because.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(spread: [f64; 2], migrations: [f64; 2]) -> Alternative {
        let figure = |[low, high]: [f64; 2]| Figure { expected: (low + high) / 2.0, low, high };
        Alternative {
            thresholds: format!("{spread:?} {migrations:?}"),
            limit_total: 5,
            limit_node: 2,
            is_planned: false,
            spread_at_rest: figure(spread),
            migrations_first_hour: figure([0.0, 0.0]),
            migrations_first_day: figure(migrations),
            settles: 1.0,
        }
    }

    #[test]
    fn only_a_setting_whose_intervals_are_apart_is_recommended() {
        let plan = row([0.10, 0.14], [40.0, 60.0]);
        let chosen = |others: &[Alternative]| {
            let table: Vec<Alternative> = [plan.clone()].into_iter().chain(others.to_vec()).collect();
            recommendation(&table).map(|chosen| chosen.thresholds)
        };
        let overlaps = row([0.05, 0.11], [30.0, 45.0]);
        assert_eq!(chosen(std::slice::from_ref(&overlaps)), None, "the intervals overlap");
        let costs = row([0.02, 0.04], [90.0, 99.0]);
        assert_eq!(chosen(std::slice::from_ref(&costs)), None, "less spread for more migrations is a matter of taste");
        let slight = row([0.099, 0.0999], [40.0, 60.0]);
        assert_eq!(
            chosen(&[row([0.115, 0.12], [40.0, 60.0]), slight]).as_deref(),
            Some("[0.099, 0.0999] [40.0, 60.0]")
        );
        let (even, both) = (row([0.02, 0.04], [40.0, 60.0]), row([0.05, 0.06], [10.0, 20.0]));
        assert_eq!(chosen(&[overlaps, even, costs, both.clone()]), Some(both.thresholds), "better in both comes first");
        assert_eq!(recommendation(&[plan]), None);
        assert_eq!(recommendation(&[]), None);
    }
}
