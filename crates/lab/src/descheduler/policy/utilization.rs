//! The plugin `LowNodeUtilization`: its thresholds, and the query that they are compared with.

use serde_json::{Value, json};

use super::Surroundings;
use crate::descheduler::{Refusal, spec::Customizations};

const DEFAULT_QUERY: &str = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
const WINDOW: std::time::Duration = std::time::Duration::from_secs(60);

/// Below which percentage a node is under-utilized and above which it is over-utilized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    pub under: u8,
    pub over: u8,
    /// Whether they are distances from the average of all nodes.
    pub is_deviation: bool,
}

impl Thresholds {
    fn deviation(under: u8, over: u8) -> Self {
        Thresholds { under, over, is_deviation: true }
    }

    fn fixed(under: u8, over: u8) -> Self {
        Thresholds { under, over, is_deviation: false }
    }

    /// What the customizations mean for virtual machines.
    pub(super) fn of(customizations: &Customizations) -> Result<Thresholds, Refusal> {
        if let Some(name) = customizations.dev_deviation_thresholds.as_deref() {
            let mode = balance::Mode::ALL.into_iter().find(|mode| mode.name() == name);
            let (under, over) = mode.map(balance::Mode::percent).ok_or_else(|| Refusal::UnknownThreshold {
                kind: "DeviationThresholds",
                value: name.to_owned(),
                known: "Low, Medium, High, AsymmetricLow, AsymmetricMedium and AsymmetricHigh",
            })?;
            return Ok(Thresholds::deviation(under, over));
        }
        match customizations.dev_low_node_utilization_thresholds.as_deref() {
            None => Ok(Thresholds::deviation(0, 10)),
            // The operator takes the empty name for Medium, but only a name that is not empty turns deviations off.
            Some("") => Ok(Thresholds::deviation(20, 50)),
            Some(name) => Thresholds::by_name(name),
        }
    }

    /// The thresholds without an average, which profiles other than that of virtual machines use, too.
    pub(super) fn by_name(name: &str) -> Result<Thresholds, Refusal> {
        match name {
            "Low" => Ok(Thresholds::fixed(10, 30)),
            "Medium" | "" => Ok(Thresholds::fixed(20, 50)),
            "High" => Ok(Thresholds::fixed(40, 70)),
            _ => Err(Refusal::UnknownThreshold {
                kind: "LowNodeUtilization",
                value: name.to_owned(),
                known: "Low, Medium and High",
            }),
        }
    }

    /// As arguments of the plugin, for each of the resources.
    pub(super) fn arguments(self, resources: &[&str]) -> Value {
        let each = |percent: u8| resources.iter().map(|name| ((*name).to_owned(), json!(percent))).collect::<Value>();
        let mut arguments = json!({"thresholds": each(self.under), "targetThresholds": each(self.over)});
        if self.is_deviation {
            arguments["useDeviationThresholds"] = true.into();
        }
        arguments
    }
}

/// The PromQL behind the name of a utilization profile.
pub(super) fn query(name: &str, surroundings: &Surroundings) -> Result<String, Refusal> {
    if let Some(query) = name.strip_prefix("query:") {
        return Ok(query.to_owned());
    }
    // A rate is taken over the window that the rules average over.
    let window = format!("[{}ms]", surroundings.scaled(WINDOW).as_millis());
    let window = if surroundings.time_scale == 1.0 { "[1m]" } else { &window };
    let pressure = |of: &str| format!("rate(node_pressure_{of}_waiting_seconds_total{window})");
    Ok(match name {
        "" | "PrometheusCPUMemoryCombinedProfile" => DEFAULT_QUERY.to_owned(),
        "PrometheusCPUUsage" => "instance:node_cpu:rate:sum".to_owned(),
        "PrometheusCPUPSIPressure" => pressure("cpu"),
        "PrometheusCPUPSIPressureByUtilization" => {
            let pressure = format!("avg by (instance) ({})", pressure("cpu"));
            let usage = format!("1 - avg by (instance) (rate(node_cpu_seconds_total{{mode=\"idle\"}}{window}))");
            format!("({pressure} and ({usage}) > 0.7) or {pressure} * 0")
        }
        "PrometheusMemoryPSIPressure" => pressure("memory"),
        "PrometheusIOPSIPressure" => pressure("io"),
        "PrometheusCPUCombined" => "descheduler:combined_utilization_and_pressure:avg1m".to_owned(),
        unknown => return Err(Refusal::UnknownMetric(unknown.to_owned())),
    })
}
