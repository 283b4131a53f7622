//! What the tests of screens share: a cluster with plans in all states, and the comparison with golden files, narrow and wide, with and
//! without colors.

pub(crate) mod guests;

use advisor::{
    Plan, drift,
    kind::KUBE_DESCHEDULER,
    test_cluster::{TestCluster, records, sample},
};
use api::{
    VirtPlatformConfig, VirtPlatformPlanRecord,
    virt_platform_config::{Item, Profile},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

pub(crate) fn now() -> Timestamp {
    "2026-03-02T22:00:00Z".parse().unwrap()
}

/// Compares a screen with its golden files. No line may be wider than the terminal.
pub(crate) fn assert(name: &str, screen: impl Fn(usize) -> String) {
    for width in [80, 160] {
        let colored = screen(width);
        let plain = anstream::adapter::strip_str(&colored).to_string();
        let wide = too_wide(&plain, width);
        assert!(wide.is_empty(), "{name} at {width} columns: {wide:#?}");
        insta::assert_snapshot!(format!("{name}_{width}"), plain);
        insta::assert_snapshot!(format!("{name}_{width}_color"), colored.replace('\u{1b}', "␛"));
    }
}

/// Lines of a diff are shown as they are, and so is a word that takes more than half of a line: they may have to be copied.
fn too_wide(text: &str, width: usize) -> Vec<&str> {
    let mut is_in_diff = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_in_diff = !line.is_empty() && (is_in_diff || line.starts_with("   --- "));
        let has_long_word = line.split_whitespace().any(|word| word.width() > width / 2);
        if line.width() > width && !is_in_diff && !has_long_word {
            found.push(line);
        }
    }
    found
}

fn cluster() -> TestCluster {
    TestCluster::with_descheduler("5.1").with(sample("hyperconverged"))
}

/// The plan of load-aware-rebalancing for the cluster.
pub(crate) fn plan() -> Plan {
    cluster().plan("load-aware-rebalancing", Value::Null)
}

/// A plan that writes files to nodes.
pub(crate) fn plan_with_files() -> Plan {
    cluster().plan("virt-higher-density", json!({"virtHigherDensity": {"memoryToRequestRatio": 140}}))
}

/// A configuration with this plan in its status.
pub(crate) fn config(
    profile: Profile,
    phase: &str,
    plan: Option<&Plan>,
    change: impl Fn(&mut Item),
) -> VirtPlatformConfig {
    let mut items: Vec<Item> = plan.iter().flat_map(|plan| &plan.items).map(|planned| planned.item.clone()).collect();
    items.iter_mut().for_each(change);
    let condition = json!({
        "type": phase, "status": "True", "reason": phase, "message": "", "lastTransitionTime": "2026-03-02T18:30:00Z",
    });
    serde_json::from_value(json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": profile, "generation": 3},
        "spec": {"profile": profile, "action": if phase == "Ignored" { "Ignore" } else { "Apply" }},
        "status": {
            "phase": phase, "observedGeneration": 3, "conditions": [condition], "items": items, "operatorVersion": "v0.1.0",
            "planDigest": plan.map(|plan| &plan.digest), "inputs": plan.map(|plan| &plan.inputs).unwrap_or(&Vec::new()),
            "notes": plan.map(|plan| &plan.notes).unwrap_or(&Vec::new()), "impactSeverity": plan.map(|plan| plan.severity),
            "risks": [{"name": "SwapSupportUnknown", "message": "whether nodes of pool größer accept swap is not known"}],
        },
    }))
    .unwrap()
}

/// One that nobody has to look at, one that rolls, and one that waits for a review; in the order of a list.
pub(crate) fn configs() -> Vec<VirtPlatformConfig> {
    let rollout = json!([{"pool": "worker", "state": "Updating", "updated": 2, "total": 6}]);
    let rolling = |item: &mut Item| {
        item.state = serde_json::from_value(json!("InProgress")).unwrap();
        item.rollout = serde_json::from_value(rollout.clone()).unwrap();
    };
    vec![
        config(Profile::Example, "Ignored", None, |_| {}),
        config(Profile::VirtHigherDensity, "InProgress", Some(&plan_with_files()), rolling),
        config(Profile::LoadAwareRebalancing, "ReviewRequired", Some(&plan()), |_| {}),
    ]
}

/// An applied plan, and each of its targets: one was deleted, of the other one fields were changed.
pub(crate) fn drifted() -> (VirtPlatformConfig, Vec<Result<Option<Value>, String>>) {
    let mut cluster = cluster();
    let plan = plan();
    cluster.apply_recorded(&plan, 1);
    let live = |cluster: &TestCluster, at: usize| cluster.found(&plan.items[at].target).cloned();
    let before: Vec<_> = plan.items.iter().enumerate().map(|(at, _)| live(&cluster, at)).collect();
    let config = config(Profile::LoadAwareRebalancing, "Drifted", Some(&plan), |item| {
        let at = plan.items.iter().position(|planned| planned.item.name == item.name).unwrap();
        item.applied_fingerprint = Some(drift::fingerprint(item, before[at].as_ref()));
    });
    let edits = [
        (vec!["spec", "deschedulingIntervalSeconds"], Some(json!(180))),
        (vec!["spec", "profiles"], Some(json!(["AffinityAndTaints", "LongLifecycle", "SoftTopologyAndDuplicates"]))),
        (vec!["spec", "profileCustomizations", "devEnableSoftTainter"], None),
    ];
    for (path, value) in edits {
        cluster.edit(&KUBE_DESCHEDULER, "cluster", &path, value);
    }
    let mut changed = live(&cluster, 1).unwrap();
    let entry = json!({
        "manager": "kubectl-edit", "operation": "Update", "time": "2026-03-02T20:15:00Z",
        "fieldsV1": {"f:spec": {"f:deschedulingIntervalSeconds": {}, "f:profiles": {}}},
    });
    changed["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    (config, vec![Ok(None), Ok(Some(changed))])
}

/// The records of one plan that was applied, of its way back, and of a plan that failed.
pub(crate) fn records() -> Vec<VirtPlatformPlanRecord> {
    let record = |plan: &Plan, number: u32, changes: Value| {
        let mut record = json!(records::recorded(plan, number));
        record["spec"]["startedAt"] = json!("2026-02-28T22:00:05Z");
        for (pointer, value) in changes.as_object().unwrap() {
            match pointer.rsplit_once('/').unwrap() {
                ("", top) => record[top] = value.clone(),
                (parent, last) => record.pointer_mut(parent).unwrap()[last] = value.clone(),
            }
        }
        serde_json::from_value(record).unwrap()
    };
    let (plan, files) = (plan(), plan_with_files());
    let ended = |plan: &Plan, outcome: &str| {
        let item = |planned: &advisor::PlannedItem| json!({"name": planned.item.name, "state": outcome, "applied": outcome == "Completed", "message": "as told"});
        let items: Vec<_> = plan.items.iter().map(item).collect();
        json!({"outcome": outcome, "message": "All items are in effect", "finishedAt": "2026-03-01T01:10:00Z", "items": items})
    };
    let approval = |by: &str, reason: &str| {
        json!({
            "planDigest": plan.digest, "mode": "Reviewed", "generation": 3, "time": "2026-02-28T21:00:00Z", "approvedBy": by,
            "reason": reason,
        })
    };
    vec![
        record(
            &plan,
            7,
            json!({"/status": ended(&plan, "Completed"), "/spec/approval": approval("alice", "CHG-4711: évacuation")}),
        ),
        record(&plan, 8, json!({"/spec/restore": {"record": "load-aware-rebalancing-7"}})),
        record(
            &files,
            1,
            json!({"/status": ended(&files, "Failed"), "/spec/approval": approval("bob", "more guests per node")}),
        ),
    ]
}
