//! How a VirtPlatformPlanRecord is named, read and written.

use serde_json::json;

use super::*;
use crate::virt_platform_config::Profile;

#[test]
fn a_name_is_the_profile_and_a_number() {
    for profile in Profile::ALL {
        assert_eq!(number(*profile, &name(*profile, 7)), Some(7));
    }
    for (text, expected) in [
        ("load-aware-rebalancing-7", Some(7)),
        ("load-aware-rebalancing-120", Some(120)),
        ("load-aware-rebalancing-07", None),
        ("load-aware-rebalancing-+7", None),
        ("load-aware-rebalancing-", None),
        ("load-aware-rebalancing", None),
        ("load-aware-rebalancing-seven", None),
        ("virt-higher-density-7", None),
    ] {
        assert_eq!(number(Profile::LoadAwareRebalancing, text), expected, "{text}");
    }
}

#[test]
fn a_full_spec_is_written_back_unchanged() {
    let full = json!({
        "profile": "load-aware-rebalancing",
        "configUid": "4a1c6a0e-8f5e-4f57-9b0e-5d2a4a6d7f10",
        "generation": 3,
        "planDigest": "ab".repeat(32),
        "options": {"loadAware": {
            "deschedulingIntervalSeconds": 120, "mode": "Automatic", "enablePSIMetrics": true,
            "devDeviationThresholds": "Low",
        }},
        "approval": {
            "planDigest": "ab".repeat(32), "mode": "Reviewed", "generation": 3, "time": "2026-03-02T21:55:00Z",
            "approvedBy": "alice", "reason": "CHG-17", "notBefore": "2026-03-02T22:00:00Z",
            "window": {"days": ["Monday"], "start": "22:00", "duration": "6h"},
            "forecast": {
                "planDigest": "ab".repeat(32), "madeAt": "2026-03-02T21:00:00Z", "scenario": "a", "scenarioDigest": "cd".repeat(32),
                "seeds": 40, "horizonSeconds": 7200, "settlesPercent": 100,
                "figures": [{"name": "Migrations", "expected": "12", "low": "9", "high": "15"}],
                "hotNodes": [], "stuckVms": 0,
            },
        },
        "operatorVersion": "v0.1.0",
        "startedAt": "2026-03-02T22:00:01Z",
        "impactSeverity": "High",
        "notes": ["a"],
        "risks": [{"name": "A", "message": "b"}],
        "first": true,
        "original": true,
        "items": [{
            "name": "a",
            "targetRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "b"},
            "operation": "Apply",
            "fieldManager": "virt-advisor-operator/load-aware-rebalancing",
            "impactSeverity": "High",
            "diff": "-a\n+b\n",
            "existed": true,
            "uid": "1",
            "leaves": [
                {"path": ["f:data", "f:a.b"], "before": "1", "after": "\"x\"", "formerOwners": ["kubectl"]},
                {"path": ["f:data", "f:c"], "masked": true},
            ],
            "createdMaps": [["f:data"]],
        }],
    });
    let spec: VirtPlatformPlanRecordSpec = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), full);
}
