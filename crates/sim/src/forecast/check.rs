//! The comparison of a forecast with what happened.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::{DAY, Figure, HOUR, outcome::REST};
use crate::stats;

const GIB: f64 = 1_073_741_824.0;

/// The figures that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum FigureName {
    SpreadNow,
    SpreadAtRest,
    MigrationsFirstHour,
    MigrationsFirstDay,
    MigrationsPerHourAtRest,
    Migrations,
    BytesMoved,
}

impl FigureName {
    pub const ALL: [Self; 7] = [
        Self::SpreadNow,
        Self::SpreadAtRest,
        Self::MigrationsFirstHour,
        Self::MigrationsFirstDay,
        Self::MigrationsPerHourAtRest,
        Self::Migrations,
        Self::BytesMoved,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SpreadNow => "SpreadNow",
            Self::SpreadAtRest => "SpreadAtRest",
            Self::MigrationsFirstHour => "MigrationsFirstHour",
            Self::MigrationsFirstDay => "MigrationsFirstDay",
            Self::MigrationsPerHourAtRest => "MigrationsPerHourAtRest",
            Self::Migrations => "Migrations",
            Self::BytesMoved => "BytesMoved",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    pub const fn describe(self) -> &'static str {
        match self {
            Self::SpreadNow => "spread of CPU use at the beginning",
            Self::SpreadAtRest => "spread of CPU use at rest",
            Self::MigrationsFirstHour => "migrations in the first hour",
            Self::MigrationsFirstDay => "migrations in the first day",
            Self::MigrationsPerHourAtRest => "migrations per hour at rest",
            Self::Migrations => "migrations in all",
            Self::BytesMoved => "memory moved",
        }
    }

    /// A value of it, for people.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::SpreadNow | Self::SpreadAtRest => format!("{:.1} %", value * 100.0),
            Self::BytesMoved => format!("{:.0} GiB", value / GIB),
            _ => format!("{value:.1}").trim_end_matches(".0").to_owned(),
        }
    }

    /// Whether it is a number of migrations.
    pub(super) const fn is_number(self) -> bool {
        matches!(self, Self::MigrationsFirstHour | Self::MigrationsFirstDay | Self::Migrations)
    }

    /// How exact it can be measured. Averages of Prometheus are never exactly those of a simulation.
    pub(super) const fn resolution(self) -> f64 {
        match self {
            Self::SpreadNow | Self::SpreadAtRest => 0.01,
            _ => 0.0,
        }
    }
}

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What was seen of a cluster since the plan was in effect. What could not be read is None.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observation {
    /// Seconds since then.
    pub elapsed: u64,
    /// When migrations ended, in seconds since then.
    pub migrations: Option<Vec<u64>>,
    /// The spread of CPU use at seconds since then.
    pub spread: Option<Vec<(u64, f64)>>,
    /// When migrations that were counted or failed ended, in seconds since then, and the bytes that each of them sent.
    pub bytes: Option<Vec<(u64, f64)>>,
}

/// How a figure compares with what happened.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    pub figure: FigureName,
    pub forecast: Figure,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened: Option<f64>,
    pub result: CheckResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum CheckResult {
    /// In the interval.
    In,
    /// Out of the interval.
    Out,
    /// The time of the figure is not over.
    Early,
    /// It could not be read.
    Unknown,
}

/// Compares each figure of a forecast that looks `horizon` seconds ahead with what was seen.
pub fn check(figures: &[(FigureName, Figure)], horizon: u64, seen: &Observation) -> Vec<Checked> {
    let checked = |(figure, forecast): &(FigureName, Figure)| {
        let happened = match seen.elapsed >= due(*figure, horizon) {
            true => happened(*figure, horizon, seen),
            false => None,
        };
        let result = match happened {
            _ if seen.elapsed < due(*figure, horizon) => CheckResult::Early,
            None => CheckResult::Unknown,
            Some(value) if forecast.holds(value, figure.resolution()) => CheckResult::In,
            Some(_) => CheckResult::Out,
        };
        Checked { figure: *figure, forecast: *forecast, happened, result }
    };
    figures.iter().map(checked).collect()
}

/// The second from which on a figure is known.
fn due(figure: FigureName, horizon: u64) -> u64 {
    match figure {
        FigureName::SpreadNow => 0,
        FigureName::MigrationsFirstHour => HOUR,
        FigureName::MigrationsFirstDay => DAY,
        FigureName::SpreadAtRest
        | FigureName::MigrationsPerHourAtRest
        | FigureName::Migrations
        | FigureName::BytesMoved => horizon,
    }
}

fn happened(figure: FigureName, horizon: u64, seen: &Observation) -> Option<f64> {
    let rest = horizon - horizon / REST;
    let between = |from: u64, to: u64| {
        let migrations = seen.migrations.as_ref()?;
        Some(migrations.iter().filter(|time| (from..to).contains(time)).count() as f64)
    };
    match figure {
        FigureName::SpreadNow => seen.spread.as_ref()?.iter().min_by_key(|(time, _)| *time).map(|(_, spread)| *spread),
        FigureName::SpreadAtRest => {
            let samples = seen.spread.as_ref()?.iter().filter(|(time, _)| (rest..=horizon).contains(time));
            let samples: Vec<f64> = samples.map(|(_, spread)| *spread).collect();
            (!samples.is_empty()).then(|| stats::mean(&samples))
        }
        FigureName::MigrationsFirstHour => between(0, HOUR),
        FigureName::MigrationsFirstDay => between(0, DAY),
        FigureName::MigrationsPerHourAtRest => {
            let hours = (horizon - rest).max(1) as f64 / HOUR as f64;
            between(rest, horizon).map(|count| count / hours)
        }
        FigureName::Migrations => between(0, horizon),
        FigureName::BytesMoved => {
            let sent = seen.bytes.as_ref()?.iter().filter(|(time, _)| *time < horizon);
            Some(sent.map(|(_, bytes)| bytes).sum())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: u64 = 2 * HOUR;

    fn figures() -> Vec<(FigureName, Figure)> {
        let figure = |expected: f64, low: f64, high: f64| Figure { expected, low, high };
        vec![
            (FigureName::SpreadNow, figure(0.2, 0.2, 0.2)),
            (FigureName::SpreadAtRest, figure(0.03, 0.02, 0.04)),
            (FigureName::MigrationsFirstHour, figure(3.0, 2.0, 4.0)),
            (FigureName::MigrationsFirstDay, figure(30.0, 20.0, 40.0)),
            (FigureName::MigrationsPerHourAtRest, figure(0.0, 0.0, 0.0)),
            (FigureName::Migrations, figure(3.0, 2.0, 4.0)),
            (FigureName::BytesMoved, figure(9.0, 8.0, 10.0)),
        ]
    }

    fn results(seen: &Observation) -> Vec<CheckResult> {
        check(&figures(), HORIZON, seen).into_iter().map(|checked| checked.result).collect()
    }

    #[test]
    fn each_figure_is_in_or_out_of_its_interval() {
        use CheckResult::{Early, In, Out, Unknown};
        let mut seen = Observation {
            elapsed: HORIZON,
            migrations: Some(vec![60, 120, 180]),
            spread: Some(vec![(0, 0.205), (5400, 0.03), (7200, 0.044)]),
            bytes: None,
        };
        assert_eq!(results(&seen), [In, In, In, Early, In, In, Unknown]);
        seen.migrations = Some(vec![60, 120, 180, 240, 300, 6000]);
        seen.spread = Some(vec![(0, 0.22), (100, 0.03), (6000, 0.06)]);
        seen.bytes = Some(vec![(60, 4.0), (6000, 7.0)]);
        assert_eq!(results(&seen), [Out, Out, Out, Early, Out, Out, Out]);
        seen.bytes = Some(vec![(60, 9.0), (HORIZON, 7.0)]);
        assert_eq!(results(&seen)[6], In, "what is sent later does not count");
        let rest = &check(&figures(), HORIZON, &seen)[4];
        assert_eq!(rest.happened, Some(2.0), "one in half an hour");
    }

    #[test]
    fn what_is_not_over_is_early_and_what_could_not_be_read_is_unknown() {
        use CheckResult::{Early, Unknown};
        let early = Observation { elapsed: 60, ..Observation::default() };
        assert_eq!(results(&early), [Unknown, Early, Early, Early, Early, Early, Early]);
        let late = Observation { elapsed: 2 * DAY, ..Observation::default() };
        assert!(results(&late).iter().all(|result| *result == Unknown));
    }

    #[test]
    fn a_figure_is_known_by_its_name() {
        for name in FigureName::ALL {
            assert_eq!(FigureName::parse(name.as_str()), Some(name));
        }
        assert_eq!(FigureName::parse("Guess"), None);
    }
}
