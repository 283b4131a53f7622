//! The spec of a KubeDescheduler: the fields that the real operator reads.

use serde::Deserialize;
use serde_json::Value;

use super::PolicyError;

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    pub log_level: String,
    pub profiles: Vec<String>,
    pub descheduling_interval_seconds: Option<i64>,
    pub eviction_limits: EvictionLimits,
    pub mode: Mode,
    pub profile_customizations: Customizations,
}

/// Whether anything is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Mode {
    Automatic,
    /// Nothing is evicted: the descheduler logs what it would do.
    #[default]
    Predictive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct EvictionLimits {
    pub total: Option<i64>,
    pub node: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Customizations {
    pub threshold_priority: Option<i64>,
    pub threshold_priority_class_name: String,
    pub namespaces: Namespaces,
    pub dev_low_node_utilization_thresholds: Option<String>,
    pub dev_deviation_thresholds: Option<String>,
    pub dev_actual_utilization_profile: String,
    pub dev_enable_evictions_in_background: bool,
    pub dev_enable_soft_tainter: bool,
    pub dev_migration_cooldown: Option<String>,
    pub dev_max_migration_cooldown: Option<String>,
    pub dev_migration_history_window: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Namespaces {
    pub included: Vec<String>,
    pub excluded: Vec<String>,
}

impl Spec {
    /// Reads the spec of an object, which no schema may have checked.
    pub fn read(spec: &Value) -> Result<Spec, PolicyError> {
        Spec::deserialize(spec).map_err(|problem| PolicyError::Unreadable(problem.to_string()))
    }
}
