//! The forecast that `forecast --save` wrote, beside the plan that it is about. This needs no simulator.

use std::path::Path;

use api::virt_platform_config::{ForecastFigure, ForecastSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::view::PlanView;
use crate::{
    decide::forecast_file::{self, SavedForecast},
    program,
    prose::{BOLD, INDENT, counted, hanging, section},
};

const GIB: f64 = 1_073_741_824.0;
/// The column of values.
const VALUES: usize = 38;

/// A saved forecast, and whether it is about the plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanForecast {
    pub(crate) file: String,
    /// The profile and the digest of the plan that it is about.
    pub(crate) profile: String,
    pub(crate) plan_digest: String,
    pub(crate) is_of_this_plan: bool,
    /// What it expects. Only if it is about this plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<ForecastSummary>,
}

impl PlanForecast {
    pub(super) fn read(path: &Path, plan: &PlanView) -> anyhow::Result<Self> {
        Ok(Self::new(path.display().to_string(), forecast_file::load(path)?, plan))
    }

    fn new(file: String, saved: SavedForecast, plan: &PlanView) -> Self {
        let is_of_this_plan = plan.plan_digest.as_deref().is_some_and(|digest| saved.is_about(&plan.profile, digest));
        let SavedForecast { profile, plan_digest, summary, .. } = saved;
        PlanForecast { file, profile, plan_digest, is_of_this_plan, summary: is_of_this_plan.then_some(summary) }
    }
}

/// The forecast below the plan.
pub(super) fn render(forecast: &PlanForecast, plan: &PlanView, width: usize) -> String {
    let Some(summary) = &forecast.summary else {
        let text = format!(
            "{} is about plan {} of {}, and not about this one. Make a new one: {} forecast {} --scenario FILE --save {}",
            forecast.file,
            forecast.plan_digest,
            forecast.profile,
            program::name(),
            plan.profile,
            forecast.file
        );
        return section("Forecast", [text], width);
    };
    let runs = counted(usize::try_from(summary.seeds).unwrap_or_default(), "run");
    let hours = summary.horizon_seconds as f64 / 3600.0;
    let title = format!(
        "{runs} of {} for {} h, made at {:.0}; {} % of runs settle",
        summary.scenario,
        plain(hours),
        summary.made_at.0,
        summary.settles_percent
    );
    let mut text = format!("\n{BOLD}Forecast{BOLD:#}\n{}", hanging(&" ".repeat(INDENT), &title, INDENT, width));
    for figure in &summary.figures {
        text += &hanging(&format!("   {}", describe(&figure.name)), &value(figure), VALUES, width);
    }
    if !summary.hot_nodes.is_empty() {
        text += &hanging("   nodes that stay hot", &summary.hot_nodes.join(", "), VALUES, width);
    }
    if summary.stuck_vms > 0 {
        text += &hanging("   VMs that cannot move", &summary.stuck_vms.to_string(), VALUES, width);
    }
    text
}

/// A figure that this version does not know has its own name.
fn describe(name: &str) -> &str {
    match name {
        "SpreadNow" => "spread of CPU use at the beginning",
        "SpreadAtRest" => "spread of CPU use at rest",
        "MigrationsFirstHour" => "migrations in the first hour",
        "MigrationsFirstDay" => "migrations in the first day",
        "MigrationsPerHourAtRest" => "migrations per hour at rest",
        "Migrations" => "migrations in all",
        "BytesMoved" => "memory moved",
        other => other,
    }
}

/// `12 (9 to 15)`
fn value(figure: &ForecastFigure) -> String {
    let [expected, low, high] = [&figure.expected, &figure.low, &figure.high].map(|text| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.map_or_else(|| text.clone(), |number| in_words(&figure.name, number))
    });
    if low == high { expected } else { format!("{expected} ({low} to {high})") }
}

fn in_words(name: &str, number: f64) -> String {
    match name {
        "SpreadNow" | "SpreadAtRest" => format!("{:.1} %", number * 100.0),
        "BytesMoved" => format!("{:.0} GiB", number / GIB),
        _ => plain(number),
    }
}

fn plain(number: f64) -> String {
    format!("{number:.1}").trim_end_matches(".0").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        golden,
        plan::{PlanReport, render},
    };

    fn saved(profile: &str, digest: &str) -> SavedForecast {
        let figure = |name: &str, [expected, low, high]: [&str; 3]| json!({"name": name, "expected": expected, "low": low, "high": high});
        serde_json::from_value(json!({
            "kind": "Forecast", "profile": profile, "planDigest": digest,
            "summary": {
                "planDigest": digest, "madeAt": "2026-03-02T22:00:00Z", "scenario": "imported", "scenarioDigest": "d", "seeds": 40,
                "horizonSeconds": 5400, "settlesPercent": 75, "hotNodes": ["worker-3", "worker-7"], "stuckVms": 3,
                "figures": [
                    figure("SpreadNow", ["0.0462", "0.0462", "0.0462"]),
                    figure("SpreadAtRest", ["0.0689", "0.049", "0.0837"]),
                    figure("MigrationsFirstDay", ["42", "24", "802"]),
                    figure("BytesMoved", ["361851576320", "173946175488", "530428461056"]),
                    figure("FutureFigure", ["1.5", "1", "many"]),
                ],
            },
        }))
        .unwrap()
    }

    fn with(saved: SavedForecast) -> PlanReport {
        let mut plan = PlanView::stored(&golden::configs().remove(2), golden::now()).unwrap();
        plan.forecast = Some(PlanForecast::new("forecast.json".to_owned(), saved, &plan));
        PlanReport { plans: vec![plan] }
    }

    #[test]
    fn a_forecast_of_the_plan_is_shown_with_it() {
        let digest = golden::plan().digest;
        let report = with(saved("load-aware-rebalancing", &digest));
        golden::assert("plan_forecast", |width| render(&report, width));
        let document = serde_json::to_value(&report).unwrap();
        assert_eq!(document["plans"][0]["forecast"]["summary"]["seeds"], 40);
    }

    #[test]
    fn a_forecast_of_another_plan_is_told_and_not_shown() {
        let digest = golden::plan().digest;
        let mut forged = saved("load-aware-rebalancing", &digest);
        forged.summary.plan_digest = "old".to_owned();
        for other in [saved("load-aware-rebalancing", "old"), saved("virt-higher-density", &digest), forged] {
            let report = with(other);
            let text = render(&report, 400);
            assert!(text.contains("and not about this one. Make a new one: "), "{text}");
            assert!(!text.contains("spread of CPU use") && text.contains("Forecast it with"), "{text}");
            let shown = serde_json::to_value(&report).unwrap()["plans"][0]["forecast"].clone();
            assert_eq!((&shown["isOfThisPlan"], shown.get("summary")), (&json!(false), None));
        }
    }

    #[cfg(feature = "forecast")]
    #[test]
    fn figures_have_the_words_of_the_forecast() {
        for name in sim::forecast::FigureName::ALL {
            assert_eq!(describe(name.as_str()), name.describe());
            for number in [0.0, 0.25, 42.0, 5e10] {
                assert_eq!(in_words(name.as_str(), number), name.text(number));
            }
        }
    }
}
