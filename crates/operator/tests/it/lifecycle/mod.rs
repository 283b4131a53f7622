//! The life cycle of a configuration, from creation to drift and back.

mod actions;
mod approval;
mod basic;
mod definitions;
mod density;
mod drift;
mod events;
mod failure;
mod inputs;
mod malformed;
mod offers;
mod options;
mod remediation;
mod restart;
mod rollouts;
mod steady;
mod upgrade;
mod user_agent;
mod versions;

use std::sync::atomic::{AtomicU32, Ordering};

use devcluster::AuditedRequest;
use serde_json::{Value, json};
use testkit::{
    eventually,
    platform::{Platform, descheduler, hyper_converged},
};

/// The items of the plans.
const PSI_ITEM: &str = "enable-psi-metrics";
const DESCHEDULER: &str = "enable-load-aware-descheduling";
const SWAP_ITEM: &str = "enable-kubelet-swap";
const DENSITY_ITEM: &str = "configure-higher-density";

/// Options for load-aware rebalancing without machine configs.
pub(crate) fn no_psi() -> Value {
    json!({"loadAware": {"enablePSIMetrics": false}})
}

/// Options for higher density without machine configs.
pub(crate) fn no_swap() -> Value {
    json!({"virtHigherDensity": {"enableSwap": false}})
}

/// A patch of the interval of the descheduler.
fn interval(seconds: i32) -> Value {
    descheduler(json!({"deschedulingIntervalSeconds": seconds}))
}

/// A patch of the migration limits of HyperConverged.
fn limits(cluster: i32, node: i32) -> Value {
    hyper_converged(json!({"liveMigrationConfig": {
        "parallelMigrationsPerCluster": cluster,
        "parallelOutboundMigrationsPerNode": node,
    }}))
}

/// Labels the descheduler and waits until the operator has read it: it has got all earlier events then, too.
/// Returns the requests of that.
async fn catch_up(platform: &Platform) -> Vec<AuditedRequest> {
    static LABEL: AtomicU32 = AtomicU32::new(0);
    let mark = platform.mark().await;
    let mut labeled = descheduler(json!({}));
    labeled["metadata"]["labels"] = json!({"change": LABEL.fetch_add(1, Ordering::Relaxed).to_string()});
    platform.patch("labeler", &labeled).await;
    eventually("the label is looked at", async || {
        let requests = platform.requests_since(mark).await;
        requests.iter().any(|request| request.resource == "kubedeschedulers").then_some(requests)
    })
    .await
}
