//! How a VirtPlatformConfig is read and written.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::*;

fn spec(value: Value) -> VirtPlatformConfigSpec {
    serde_json::from_value(value).unwrap()
}

fn density(value: Value) -> VirtHigherDensityOptions {
    serde_json::from_value(value).unwrap()
}

#[test]
fn an_object_that_names_only_its_profile_reads_as_the_server_would_default_it() {
    for profile in Profile::ALL {
        assert_eq!(spec(json!({ "profile": profile })), VirtPlatformConfigSpec::new(*profile));
    }
    let written = serde_json::to_value(VirtPlatformConfigSpec::new(Profile::VirtHigherDensity)).unwrap();
    let expected = json!({
        "profile": "virt-higher-density",
        "action": "DryRun",
        "failurePolicy": "Abort",
        "bypassOptimisticLock": false,
    });
    assert_eq!(written, expected);
}

#[test]
fn a_full_spec_is_written_back_unchanged() {
    let full = [
        json!({
            "profile": "load-aware-rebalancing",
            "action": "Apply",
            "failurePolicy": "Continue",
            "bypassOptimisticLock": true,
            "waitTimeout": "1h30m",
            "approval": { "planDigest": "ab".repeat(32), "reason": "CHG-17" },
            "options": { "loadAware": {
                "deschedulingIntervalSeconds": 120,
                "mode": "Predictive",
                "enablePSIMetrics": false,
                "devDeviationThresholds": "AsymmetricHigh",
                "evictionLimitTotal": 10,
                "evictionLimitNode": 4,
            }},
        }),
        json!({
            "profile": "virt-higher-density",
            "action": "Ignore",
            "failurePolicy": "Abort",
            "bypassOptimisticLock": false,
            "options": { "virtHigherDensity": {
                "enableSwap": true,
                "memoryToRequestRatio": 200,
                "ksmConfiguration": {
                    "enabled": true,
                    "nodeLabelSelector": {
                        "matchLabels": { "ksm-enabled": "true" },
                        "matchExpressions": [
                            { "key": "zone", "operator": "In", "values": ["a", "b"] },
                            { "key": "spot", "operator": "DoesNotExist" },
                        ],
                    },
                },
            }},
        }),
    ];
    for value in full {
        assert_eq!(serde_json::to_value(spec(value.clone())).unwrap(), value);
    }
}

#[test]
fn empty_options_stay_distinct_from_their_defaults() {
    let options = |value: Value| spec(json!({ "profile": "virt-higher-density", "options": value })).options;
    assert_eq!(options(Value::Null), None);
    assert_eq!(options(json!({})), Some(Options::default()));
    let density = options(json!({ "virtHigherDensity": {} })).unwrap().virt_higher_density.unwrap();
    assert_eq!(density, VirtHigherDensityOptions::default());
    assert_eq!(density.ksm_configuration, None);
    assert_eq!(serde_json::from_value::<LoadAwareOptions>(json!({})).unwrap(), LoadAwareOptions::default());
    assert_eq!(serde_json::from_value::<KsmConfiguration>(json!({})).unwrap(), KsmConfiguration::default());
}

/// W13 (enableSwap: false refused), D3 (swap removal), D26 (density default): so that turning swap off is enough.
#[test]
fn the_default_ratio_depends_on_swap() {
    let cases = [
        (json!({}), 150),
        (json!({ "enableSwap": true }), 150),
        (json!({ "enableSwap": false }), 120),
        (json!({ "enableSwap": false, "memoryToRequestRatio": 100 }), 100),
        (json!({ "memoryToRequestRatio": 300 }), 300),
    ];
    for (options, ratio) in cases {
        assert_eq!(density(options.clone()).effective_memory_to_request_ratio(), ratio, "{options}");
    }
}

#[test]
fn a_selector_converts_to_the_kubernetes_type_with_the_same_json() {
    let cases = [
        json!({}),
        json!({ "matchLabels": { "a": "b", "example.com/c": "" } }),
        json!({ "matchExpressions": [
            { "key": "a", "operator": "NotIn", "values": ["b"] },
            { "key": "c", "operator": "Exists" },
        ]}),
    ];
    for value in cases {
        let selector: NodeLabelSelector = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(LabelSelector::from(selector)).unwrap(), value);
    }
}

/// W23 (one bad object stops all): the object can be read all the same.
#[test]
fn an_unreadable_timeout_is_an_error_only_when_it_is_used() {
    let timeout = spec(json!({ "profile": "example-profile", "waitTimeout": "abc" })).wait_timeout.unwrap();
    assert_eq!(timeout.to_string(), "abc");
    let error = timeout.duration().unwrap_err();
    assert_eq!(error.to_string(), "\"abc\" must be a positive duration such as 30m, 2h or 1h30m, of at most 99999h");
    assert_eq!(WaitTimeout::from("2h").duration(), Ok(Duration::from_secs(7200)));
}

#[test]
fn severities_are_ordered_by_disruption() {
    assert_eq!(Severity::ALL.iter().max(), Some(&Severity::High));
    assert!(Severity::Low < Severity::Medium && Severity::Medium < Severity::High);
}

#[test]
fn there_are_twelve_phases() {
    assert_eq!(Phase::ALL.len(), 12);
}

#[test]
fn an_empty_status_writes_nothing() {
    assert_eq!(serde_json::to_value(VirtPlatformConfigStatus::default()).unwrap(), json!({}));
}

#[test]
fn a_plain_item_shows_no_operation_and_a_removal_does() {
    let item = Item { name: "a".to_owned(), ..Item::default() };
    let written = serde_json::to_value(&item).unwrap();
    let target = json!({ "apiVersion": "", "kind": "", "name": "" });
    assert_eq!(written, json!({ "name": "a", "targetRef": target, "state": "Pending" }));
    let removal = Item { operation: Operation::Delete, ..item };
    assert_eq!(serde_json::to_value(&removal).unwrap()["operation"], "Delete");
}

#[test]
fn a_full_status_is_written_back_unchanged() {
    let value = json!({
        "phase": "InProgress",
        "impactSeverity": "High",
        "observedGeneration": 3,
        "sourceSnapshotHash": "80".repeat(32),
        "operatorVersion": "v0.1.0",
        "planDigest": "2c".repeat(32),
        "appliedOptions": { "virtHigherDensity": { "enableSwap": false } },
        "inputs": [{
            "source": "HyperConverged/kubevirt-hyperconverged",
            "path": "spec.liveMigrationConfig.parallelMigrationsPerCluster",
            "value": "5",
        }],
        "notes": ["PSI is already on"],
        "items": [{
            "name": "enable-psi-metrics",
            "targetRef": {
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "MachineConfig",
                "name": "99-worker-psi-karg",
                "namespace": "somewhere",
            },
            "operation": "Delete",
            "impactSeverity": "High",
            "impactDetail": { "reboot": true, "pools": [{ "name": "worker", "nodes": 3, "paused": false }] },
            "diff": "--- a\n+++ b\n",
            "desiredState": { "apiVersion": "v1", "spec": { "kernelArguments": ["psi=1"] } },
            "fieldManager": "virt-advisor-operator/load-aware-rebalancing",
            "managedFields": ["spec.kernelArguments"],
            "removes": ["spec.extensions"],
            "takesOver": [{ "manager": "kubectl", "fields": ["spec.kernelArguments"] }],
            "state": "InProgress",
            "message": "waiting",
            "lastTransitionTime": "2025-12-18T21:23:24Z",
            "waitingSince": "2025-12-18T21:23:24Z",
            "appliedFingerprint": "aa".repeat(32),
            "driftedBy": { "manager": "kubectl-edit", "time": "2025-12-18T21:23:24Z" },
        }],
        "conditions": [{
            "type": "Drifted",
            "status": "False",
            "reason": "NoDrift",
            "message": "Configuration is in sync with desired state",
            "lastTransitionTime": "2025-12-18T21:23:34Z",
            "observedGeneration": 3,
        }],
    });
    let status: VirtPlatformConfigStatus = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&status).unwrap(), value);
}
