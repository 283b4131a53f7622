//! The plugin `LowNodeUtilization`: its thresholds, and the query whose results are compared with them.

use advisor::kube_descheduler::Release;
use serde_json::{Value, json};

use super::PolicyContext;
use crate::descheduler::{PolicyError, Spec, spec::Customizations};

const PROCESSOR: &str = "descheduler:combined_utilization_and_pressure:avg1m";
const PROCESSOR_AND_MEMORY: &str = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
const WINDOW: std::time::Duration = std::time::Duration::from_secs(60);

/// The percentages below which a node is under-utilized and above which it is over-utilized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    pub under: u8,
    pub over: u8,
    /// Whether they are relative to the average of all nodes.
    pub is_deviation: bool,
}

impl Thresholds {
    fn deviation(under: u8, over: u8) -> Self {
        Thresholds { under, over, is_deviation: true }
    }

    fn fixed(under: u8, over: u8) -> Self {
        Thresholds { under, over, is_deviation: false }
    }

    /// The thresholds of the profile for virtual machines.
    pub(super) fn of(customizations: &Customizations, release: Release) -> Result<Thresholds, PolicyError> {
        if let Some(name) = customizations.dev_deviation_thresholds.as_deref() {
            let mode = balance::Mode::ALL.into_iter().find(|mode| mode.name() == name);
            let (under, over) = mode
                .map(balance::Mode::percent)
                .ok_or_else(|| PolicyError::UnknownThreshold { kind: "DeviationThresholds", value: name.to_owned() })?;
            return Ok(Thresholds::deviation(under, over));
        }
        match customizations.dev_low_node_utilization_thresholds.as_deref() {
            None if release < Release::V4_19 => Thresholds::by_name(""),
            None => Ok(Thresholds::deviation(0, 10)),
            Some("") if release < Release::V4_19 => Thresholds::by_name(""),
            // The operator treats the empty name as Medium, but only a non-empty name turns deviations off.
            Some("") => Ok(Thresholds::deviation(20, 50)),
            Some(name) => Thresholds::by_name(name),
        }
    }

    /// Absolute thresholds, which the other profiles use, too.
    pub(super) fn by_name(name: &str) -> Result<Thresholds, PolicyError> {
        match name {
            "Low" => Ok(Thresholds::fixed(10, 30)),
            "Medium" | "" => Ok(Thresholds::fixed(20, 50)),
            "High" => Ok(Thresholds::fixed(40, 70)),
            _ => Err(PolicyError::UnknownThreshold { kind: "LowNodeUtilization", value: name.to_owned() }),
        }
    }

    /// The arguments of the plugin for these resources.
    pub(super) fn arguments(self, resources: &[&str]) -> Value {
        let each = |percent: u8| resources.iter().map(|name| ((*name).to_owned(), json!(percent))).collect::<Value>();
        let mut arguments = json!({"thresholds": each(self.under), "targetThresholds": each(self.over)});
        if self.is_deviation {
            arguments["useDeviationThresholds"] = true.into();
        }
        arguments
    }
}

/// The PromQL that nodes are compared by. None if they are compared by the requests of pods.
pub(super) fn query(spec: &Spec, is_kubevirt: bool, context: &PolicyContext) -> Result<Option<String>, PolicyError> {
    let name = &*spec.profile_customizations.dev_actual_utilization_profile;
    match context.release {
        _ if !name.is_empty() => by_name(name, context).map(Some),
        Release::V4_17 | Release::V4_18 => Ok(None),
        _ if !is_kubevirt => Ok(None),
        Release::V4_19 | Release::V4_20 => Ok(Some(PROCESSOR.to_owned())),
        Release::V4_21 | Release::V5_1 => Ok(Some(PROCESSOR_AND_MEMORY.to_owned())),
    }
}

/// The PromQL of a utilization profile.
fn by_name(name: &str, context: &PolicyContext) -> Result<String, PolicyError> {
    if let Some(query) = name.strip_prefix("query:") {
        return Ok(query.to_owned());
    }
    // Rates have the window of the recording rules.
    let window = format!("[{}ms]", context.scaled(WINDOW).as_millis());
    let window = if context.time_scale == 1.0 { "[1m]" } else { &window };
    let pressure = |of: &str| format!("rate(node_pressure_{of}_waiting_seconds_total{window})");
    Ok(match name {
        "PrometheusCPUMemoryCombinedProfile" if context.release >= Release::V4_21 => PROCESSOR_AND_MEMORY.to_owned(),
        "PrometheusCPUUsage" => "instance:node_cpu:rate:sum".to_owned(),
        "PrometheusCPUPSIPressure" => pressure("cpu"),
        "PrometheusCPUPSIPressureByUtilization" => {
            let pressure = format!("avg by (instance) ({})", pressure("cpu"));
            let usage = format!("1 - avg by (instance) (rate(node_cpu_seconds_total{{mode=\"idle\"}}{window}))");
            format!("({pressure} and ({usage}) > 0.7) or {pressure} * 0")
        }
        "PrometheusMemoryPSIPressure" => pressure("memory"),
        "PrometheusIOPSIPressure" => pressure("io"),
        "PrometheusCPUCombined" => PROCESSOR.to_owned(),
        unknown => return Err(PolicyError::UnknownMetric(unknown.to_owned())),
    })
}
