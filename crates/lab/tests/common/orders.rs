//! What the tests ask of a descheduler.

use lab::descheduler::names;
use serde_json::{Value, json};

/// As the profile writes it, but for the metric: the use of CPU, so that all three buckets occur.
pub(crate) fn orders_to_balance() -> Value {
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
