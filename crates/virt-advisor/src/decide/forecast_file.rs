//! The summary in a file that `forecast --save` wrote. This needs no simulator, so every build of the program can approve with it.

use std::path::Path;

use anyhow::Context;
use api::virt_platform_config::ForecastSummary;
use serde::Deserialize;

use crate::{
    failure::{Failure, failed},
    program,
};

/// The parts of the file that an approval needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedForecast {
    kind: String,
    pub(crate) profile: String,
    pub(crate) plan_digest: String,
    pub(crate) summary: ForecastSummary,
}

impl SavedForecast {
    /// Whether it is about this plan.
    pub(crate) fn is_about(&self, profile: &str, digest: &str) -> bool {
        self.profile == profile && self.plan_digest == digest && self.summary.plan_digest == digest
    }
}

/// The summary of the forecast in a file. It must be about this plan.
pub(crate) fn read(path: &Path, profile: &str, digest: &str) -> anyhow::Result<ForecastSummary> {
    about(load(path)?, &path.display().to_string(), profile, digest)
}

/// The forecast in a file.
pub(crate) fn load(path: &Path) -> anyhow::Result<SavedForecast> {
    let doing = || format!("reading the forecast {}", path.display());
    let text = std::fs::read_to_string(path).with_context(doing)?;
    parse(&text, &path.display().to_string())
}

fn parse(text: &str, file: &str) -> anyhow::Result<SavedForecast> {
    let hint = || format!("{file} is no forecast that `{} forecast --save` has written", program::name());
    let saved: SavedForecast = serde_saphyr::from_str(text).with_context(hint)?;
    anyhow::ensure!(saved.kind == "Forecast", hint());
    Ok(saved)
}

fn about(saved: SavedForecast, file: &str, profile: &str, digest: &str) -> anyhow::Result<ForecastSummary> {
    if !saved.is_about(profile, digest) {
        let named = [&saved.plan_digest, &saved.summary.plan_digest].into_iter().find(|named| *named != digest);
        let about = named.unwrap_or(&saved.plan_digest);
        let text = format!(
            "{file} is about plan {about} of {}, and the plan of {profile} is {digest}: nothing was done. Make a new one: {} forecast \
             {profile} --scenario FILE --save {file}",
            saved.profile,
            program::name()
        );
        return Err(failed(Failure::StalePlan, text));
    }
    Ok(saved.summary)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::failure::classify;

    fn file(digest: &str) -> Value {
        json!({
            "apiVersion": "cli.advisor.kubevirt.io/v1alpha1", "kind": "Forecast", "client": "v0.1.0",
            "profile": "load-aware-rebalancing", "planDigest": digest,
            "summary": {
                "planDigest": digest, "madeAt": "2026-03-02T22:00:00Z", "scenario": "s", "scenarioDigest": "d", "seeds": 40,
                "horizonSeconds": 7200, "settlesPercent": 100, "figures": [], "hotNodes": [], "stuckVms": 0,
            },
            "forecast": {"whatever": 1},
        })
    }

    fn read(file: &Value, profile: &str) -> anyhow::Result<ForecastSummary> {
        about(parse(&file.to_string(), "forecast.json")?, "forecast.json", profile, "current")
    }

    #[test]
    fn only_a_forecast_of_the_current_plan_is_taken() {
        assert_eq!(read(&file("current"), "load-aware-rebalancing").unwrap().seeds, 40);
        let stale = read(&file("old"), "load-aware-rebalancing").unwrap_err();
        assert_eq!(classify(&stale).0, Failure::StalePlan);
        assert!(stale.to_string().contains("is about plan old"), "{stale}");
        assert_eq!(classify(&read(&file("current"), "virt-higher-density").unwrap_err()).0, Failure::StalePlan);
        let mut forged = file("current");
        forged["summary"]["planDigest"] = "old".into();
        assert_eq!(classify(&read(&forged, "load-aware-rebalancing").unwrap_err()).0, Failure::StalePlan);
    }

    #[test]
    fn another_file_is_told_apart() {
        let mut other = file("current");
        other["kind"] = "PlanReport".into();
        for other in [other, json!({"kind": "Forecast"}), json!([])] {
            let error = read(&other, "load-aware-rebalancing").unwrap_err();
            assert_eq!(classify(&error).0, Failure::Other);
            assert!(error.to_string().contains("forecast.json is no forecast"), "{error}");
        }
    }
}
