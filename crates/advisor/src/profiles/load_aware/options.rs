//! The options of the profile, checked and complete.

use api::virt_platform_config::{DeschedulerMode, DeviationThresholds, LoadAwareOptions};

use crate::InvalidOptions;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub interval_seconds: i32,
    pub mode: DeschedulerMode,
    pub psi: bool,
    pub thresholds: DeviationThresholds,
    /// Fixed by the user; otherwise derived from HyperConverged.
    pub limit_total: Option<i32>,
    pub limit_node: Option<i32>,
}

impl Options {
    pub(super) fn resolve(options: Option<&LoadAwareOptions>) -> Result<Self, InvalidOptions> {
        let options = options.cloned().unwrap_or_default();
        let within = InvalidOptions::unless_within;
        let limit = |field, value: Option<i32>, most| value.map(|value| within(field, value, 1..=most)).transpose();
        let interval = options.descheduling_interval_seconds;
        Ok(Options {
            interval_seconds: within("loadAware.deschedulingIntervalSeconds", interval, 60..=86400)?,
            mode: options.mode,
            psi: options.enable_psi_metrics,
            thresholds: options.dev_deviation_thresholds,
            limit_total: limit("loadAware.evictionLimitTotal", options.eviction_limit_total, 1000)?,
            limit_node: limit("loadAware.evictionLimitNode", options.eviction_limit_node, 100)?,
        })
    }
}
