//! The life of a configuration, from creation to drift and back.

mod actions;
mod approval;
mod basic;
mod failure;
mod malformed;
mod options;
mod steady;
mod versions;

use serde_json::{Value, json};

use crate::platform::descheduler;

/// The items of the plans.
const PSI_ITEM: &str = "enable-psi-metrics";
const DESCHEDULER: &str = "enable-load-aware-descheduling";
const SWAP_ITEM: &str = "enable-kubelet-swap";
const DENSITY_ITEM: &str = "configure-higher-density";

/// Options for load-aware rebalancing that leave the nodes alone.
fn no_psi() -> Value {
    json!({"loadAware": {"enablePSIMetrics": false}})
}

/// Options for higher density that leave the nodes alone.
fn no_swap() -> Value {
    json!({"virtHigherDensity": {"enableSwap": false}})
}

/// The descheduler with another interval, to patch it with.
fn interval(seconds: i32) -> Value {
    descheduler(json!({"deschedulingIntervalSeconds": seconds}))
}
