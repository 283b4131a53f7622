//! A forecast as it is printed and saved, and its summary for an approval.

use api::virt_platform_config::{ForecastFigure, ForecastSummary};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::Serialize;
use sim::forecast::{Figure, FigureName, Forecast};

/// Characters of the name of a scenario in a summary.
const NAME: usize = 253;

/// What a plan would do to a cluster.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForecastReport {
    pub(crate) profile: String,
    /// The digest of the plan that it is about.
    pub(crate) plan_digest: String,
    /// What `approve --forecast` puts into spec.approval.forecast.
    pub(crate) summary: ForecastSummary,
    /// What the plan does not tell.
    pub(crate) assumed: Vec<String>,
    pub(crate) forecast: Forecast,
}

impl ForecastReport {
    pub(super) fn new(
        profile: &str,
        plan_digest: String,
        now: Timestamp,
        scenario_digest: String,
        assumed: Vec<String>,
        forecast: Forecast,
    ) -> Self {
        let summary = summary(&plan_digest, now, scenario_digest, &forecast);
        ForecastReport { profile: profile.to_owned(), plan_digest, summary, assumed, forecast }
    }
}

/// The figures that can be compared with what happens.
pub(super) fn figures(forecast: &Forecast) -> [(FigureName, Figure); 7] {
    FigureName::ALL.map(|name| {
        let figure = match name {
            FigureName::SpreadNow => forecast.spread_now,
            FigureName::SpreadAtRest => forecast.spread_at_rest,
            FigureName::MigrationsFirstHour => forecast.migrations_first_hour,
            FigureName::MigrationsFirstDay => forecast.migrations_first_day,
            FigureName::MigrationsPerHourAtRest => forecast.migrations_per_hour_at_rest,
            FigureName::Migrations => forecast.migrations,
            FigureName::BytesMoved => forecast.bytes_moved,
        };
        (name, figure)
    })
}

/// The figures of a summary. What this version does not know is left out.
pub(super) fn of_summary(summary: &ForecastSummary) -> Vec<(FigureName, Figure)> {
    let figure = |figure: &ForecastFigure| {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let (expected, low, high) = (number(&figure.expected)?, number(&figure.low)?, number(&figure.high)?);
        Some((FigureName::parse(&figure.name)?, Figure { expected, low, high }))
    };
    summary.figures.iter().filter_map(figure).collect()
}

fn summary(digest: &str, now: Timestamp, scenario_digest: String, forecast: &Forecast) -> ForecastSummary {
    let figure = |(name, figure): (FigureName, Figure)| ForecastFigure {
        name: name.to_string(),
        expected: decimal(figure.expected),
        low: decimal(figure.low),
        high: decimal(figure.high),
    };
    let stuck: usize = forecast.stuck_vms.iter().map(|stuck| stuck.count).sum();
    let whole = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
    ForecastSummary {
        plan_digest: digest.to_owned(),
        // Objects have whole seconds.
        made_at: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
        scenario: forecast.scenario.chars().take(NAME).collect(),
        scenario_digest,
        seeds: whole(forecast.seeds),
        horizon_seconds: i64::try_from(forecast.horizon_seconds).unwrap_or(i64::MAX),
        settles_percent: (forecast.settles * 100.0).round() as i32,
        figures: figures(forecast).map(figure).to_vec(),
        hot_nodes: forecast.hot_nodes.iter().map(|hot| hot.node.chars().take(NAME).collect()).collect(),
        stuck_vms: whole(stuck as u64),
    }
}

/// Four digits behind the point, none of which is a useless 0.
fn decimal(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_useless_digits() {
        for (number, text) in [(0.0, "0"), (12.0, "12"), (0.03456, "0.0346"), (0.5, "0.5"), (100.0, "100")] {
            assert_eq!(decimal(number), text);
        }
    }
}
