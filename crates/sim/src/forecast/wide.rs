//! Why an interval is wide: a forecast that only says "24 to 802" leaves its reader alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    DAY, Figure, FigureName,
    outcome::{Outcome, REST},
};
use crate::units::Span;

/// An interval is wide if it is wider than this share of what is expected.
const WIDE: f64 = 0.5;
/// Up to so many migrations, one more or less makes an interval wide.
const FEW: f64 = 5.0;

/// A figure with a wide interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WideFigure {
    pub figure: FigureName,
    /// Why it is wide.
    pub because: String,
}

/// The figures with wide intervals over the runs, and why.
pub(super) fn figures(outcomes: &[Outcome], horizon: u64) -> Vec<WideFigure> {
    let wide = |name: FigureName| {
        let figure = Figure::over(outcomes, |outcome| outcome.value(name));
        is_wide(name, &figure).then(|| WideFigure { figure: name, because: because(name, &figure, outcomes, horizon) })
    };
    FigureName::ALL.into_iter().filter_map(wide).collect()
}

/// What is less than can be measured, or than one migration, is not wide.
fn is_wide(name: FigureName, figure: &Figure) -> bool {
    let width = figure.high - figure.low;
    let least = if name.is_number() { 1.0 } else { name.resolution() };
    width > least && width > WIDE * figure.expected
}

fn because(name: FigureName, figure: &Figure, outcomes: &[Outcome], horizon: u64) -> String {
    let settled = outcomes.iter().filter(|outcome| outcome.settled_after.is_some());
    let settled = Figure::of(settled.map(|outcome| outcome.value(name)).collect());
    let restless = outcomes.iter().filter(|outcome| outcome.settled_after.is_none()).count();
    let width = |figure: &Figure| figure.high - figure.low;
    // Runs that do not settle are the reason only if the others agree with each other.
    let apart = settled.filter(|settled| restless > 0 && width(settled) <= width(figure) / 2.0);
    let first = match apart {
        Some(settled) => {
            let [low, high] = [settled.low, settled.high].map(|value| name.text(value));
            let others = if low == high { low } else { format!("{low} to {high}") };
            format!("{restless} of {} runs do not settle; the others have {others}", outcomes.len())
        }
        None if restless == outcomes.len() && name != FigureName::SpreadNow => {
            "no run settles, and how many VMs move until the end is a matter of chance".to_owned()
        }
        None if name.is_number() && figure.high <= FEW => {
            "there are few migrations, and one more or less is much".to_owned()
        }
        None => "runs differ in the load of VMs, and in which of equal VMs the descheduler takes".to_owned(),
    };
    let mut texts = vec![first];
    if name == FigureName::MigrationsFirstDay && horizon < DAY && restless > 0 {
        let times = 1 + (DAY - horizon) / (horizon / REST).max(1);
        texts.push(format!(
            "what moves at rest is taken to go on after {}, so a migration there counts {times} times",
            Span(horizon)
        ));
    }
    if Figure::holds_all(outcomes.len()) {
        texts.push(format!("an interval of {} runs holds all of them", outcomes.len()));
    }
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    fn outcome(migrations: f64, settles: bool) -> Outcome {
        Outcome {
            spread_now: 0.1,
            spread_at_rest: 0.05,
            first_hour: migrations,
            first_day: migrations,
            per_hour_at_rest: if settles { 0.0 } else { migrations },
            migrations,
            bytes: 0.0,
            settled_after: settles.then_some(60.0),
            moves: Vec::new(),
            hot: Vec::new(),
        }
    }

    /// Why the migrations of the first day have a wide interval; each number of runs, migrations and whether they settle.
    fn why(runs: &[(usize, f64, bool)], horizon: u64) -> Option<String> {
        let runs = runs.iter().flat_map(|(count, migrations, settles)| vec![outcome(*migrations, *settles); *count]);
        let wide = figures(&runs.collect::<Vec<_>>(), horizon);
        assert!(wide.iter().all(|wide| wide.figure.is_number() || wide.figure == FigureName::MigrationsPerHourAtRest));
        wide.into_iter().find(|wide| wide.figure == FigureName::MigrationsFirstDay).map(|wide| wide.because)
    }

    #[test]
    fn a_wide_interval_has_a_reason() {
        let goes_on = "what moves at rest is taken to go on after 1h, so a migration there counts 93 times";
        let table = [
            (vec![(20, 40.0, true), (20, 59.0, true)], HOUR, None),
            (
                vec![(15, 40.0, true), (15, 44.0, true), (10, 800.0, false)],
                HOUR,
                Some(format!("10 of 40 runs do not settle; the others have 40 to 44; {goes_on}")),
            ),
            (
                vec![(30, 40.0, true), (10, 800.0, false)],
                DAY,
                Some("10 of 40 runs do not settle; the others have 40".to_owned()),
            ),
            (
                vec![(20, 10.0, false), (20, 80.0, false)],
                DAY,
                Some("no run settles, and how many VMs move until the end is a matter of chance".to_owned()),
            ),
            (
                vec![(20, 1.0, true), (20, 3.0, true)],
                HOUR,
                Some("there are few migrations, and one more or less is much".to_owned()),
            ),
            (
                vec![(4, 10.0, true), (4, 80.0, true)],
                HOUR,
                Some(
                    "runs differ in the load of VMs, and in which of equal VMs the descheduler takes; an interval of 8 runs holds all \
                     of them"
                        .to_owned(),
                ),
            ),
        ];
        for (runs, horizon, expected) in table {
            assert_eq!(why(&runs, horizon), expected, "{runs:?}");
        }
    }
}
