//! A KubeDescheduler object for tests.

use serde_json::{Value, json};
use standins::descheduler::names;

/// As the profile writes it, except for the metric: CPU usage, so that nodes fall in all three classes.
pub fn balancing_by_cpu() -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": names::NAMESPACE},
        "spec": {
            "managementState": "Managed", "mode": "Automatic", "deschedulingIntervalSeconds": 60,
            "profiles": ["KubeVirtRelieveAndMigrate"],
            "evictionLimits": {"total": 5, "node": 2},
            "profileCustomizations": {
                "devDeviationThresholds": "Low",
                "devActualUtilizationProfile": "query:descheduler:node:cpu_usage:avg1m",
                "devEnableEvictionsInBackground": true,
            },
        },
    })
}
