//! Writes to a target that others change between the plan, the read and the write.

use super::*;
use crate::{
    autopilot,
    kind::KUBE_DESCHEDULER,
    test_cluster::{TestCluster, records, sample, server_side_apply, set_by},
};

const LOAD_AWARE: &str = "load-aware-rebalancing";
const NAMESPACE: &str = "openshift-kube-descheduler-operator";

fn descheduler(manager: &str, annotations: Value, interval: i64) -> Value {
    let object = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": NAMESPACE, "annotations": annotations},
        "spec": {"deschedulingIntervalSeconds": interval, "profiles": ["AffinityAndTaints"], "managementState": "Managed"},
    });
    set_by(manager, "Apply", object)
}

fn cluster() -> TestCluster {
    TestCluster::with_descheduler("5.1").with(sample("hyperconverged"))
}

fn live(cluster: &TestCluster) -> Option<Value> {
    cluster.find(&KUBE_DESCHEDULER, Some(NAMESPACE), "cluster").cloned()
}

/// The item for the descheduler, on a cluster with this one.
fn planned(object: Value) -> (PlannedItem, Value) {
    let cluster = cluster().with(object);
    let plan = cluster.plan(LOAD_AWARE, json!({"loadAware": {"enablePSIMetrics": false}}));
    (plan.items[0].clone(), live(&cluster).unwrap())
}

/// What comes of a write if the target has become this between the comparison and the write.
fn after_conflict(planned: &PlannedItem, found: Value, lock: Lock, now: Value) -> Step {
    let mut writing = Writing::new(planned.clone(), lock);
    let first = writing.start(Some(Some(found)));
    assert!(matches!(first, Step::Send(Request::Apply(_) | Request::Delete { .. })), "{first:?}");
    assert_eq!(writing.next(Input::Conflict), Step::Send(Request::Read));
    writing.next(Input::Object(Box::new(now)))
}

fn refused(step: &Step) -> String {
    match step {
        Step::Done(Outcome::Finished(Err(NotWritten::Refused(refusal @ Refusal::Autopilot { .. })))) => {
            refusal.to_string()
        }
        other => panic!("{other:?}"),
    }
}

fn is_stale(step: &Step) -> bool {
    matches!(step, Step::Done(Outcome::Finished(Err(NotWritten::Stale { .. }))))
}

#[test]
fn what_the_autopilot_takes_meanwhile_is_left_to_it_under_any_lock() {
    let (planned, found) = planned(descheduler("kubectl", json!({}), 3600));
    let changed = descheduler(autopilot::MANAGER, json!({}), 900);
    let text = refused(&after_conflict(&planned, found.clone(), Lock::Bypass, changed.clone()));
    for part in [
        "KubeDescheduler openshift-kube-descheduler-operator/cluster is left as it is",
        "virt-platform-autopilot has set spec.deschedulingIntervalSeconds, spec.profiles since the plan was made",
        "platform.kubevirt.io/mode=unmanaged",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(is_stale(&after_conflict(&planned, found.clone(), Lock::Compare, changed)), "the plan did not see it");
    // The values are those that the plan found, and by now the autopilot wants them.
    let same = descheduler(autopilot::MANAGER, json!({}), 3600);
    for lock in [Lock::Compare, Lock::Bypass] {
        refused(&after_conflict(&planned, found.clone(), lock, same.clone()));
    }
    let others = descheduler("kubectl", json!({}), 900);
    let step = after_conflict(&planned, found, Lock::Bypass, others);
    assert!(matches!(step, Step::Send(Request::Apply(_))), "anybody else is overwritten, as the spec asks: {step:?}");
}

#[test]
fn what_the_plan_takes_from_an_autopilot_that_was_told_to_leave_it_is_written() {
    let opted_out = || json!({"platform.kubevirt.io/mode": "unmanaged"});
    let (planned, found) = planned(descheduler(autopilot::MANAGER, opted_out(), 3600));
    assert!(planned.lost_by_autopilot.contains(&"spec.deschedulingIntervalSeconds".to_owned()));
    let mut later = found.clone();
    later["metadata"]["resourceVersion"] = "9".into();
    for lock in [Lock::Compare, Lock::Bypass] {
        let step = after_conflict(&planned, found.clone(), lock, later.clone());
        assert!(matches!(step, Step::Send(Request::Apply(_))), "{step:?}");
    }
}

#[test]
fn an_object_that_somebody_uses_by_now_is_not_deleted() {
    let mut cluster = cluster();
    let plan = cluster.plan(LOAD_AWARE, json!({"loadAware": {"enablePSIMetrics": false}}));
    cluster.apply_recorded(&plan, 1);
    let planned = cluster.restore_plan(LOAD_AWARE, "original").items[0].clone();
    assert_eq!(planned.item.operation, Operation::Delete);
    let found = live(&cluster).unwrap();
    let mut labeled = found.clone();
    labeled["metadata"]["labels"] = json!({"a": "b"});
    let theirs = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": NAMESPACE}, "spec": {"logLevel": "Debug"},
    });
    let used = server_side_apply::apply(Some(&found), &theirs, None, "argocd").0;
    for lock in [Lock::Compare, Lock::Bypass] {
        let step = after_conflict(&planned, found.clone(), lock, labeled.clone());
        assert!(matches!(step, Step::Send(Request::Delete { .. })), "a label is no use of it: {step:?}");
        assert!(is_stale(&after_conflict(&planned, found.clone(), lock, used.clone())));
    }
}

/// What is taken out of an object that stays may have a default, which comes back with every write.
#[test]
fn a_restore_takes_fields_out_once_and_leaves_their_defaults() {
    let mut cluster = cluster();
    let plan = cluster.plan(LOAD_AWARE, json!({"loadAware": {"enablePSIMetrics": false}}));
    cluster.apply_recorded(&plan, 1);
    let mut edited = live(&cluster).unwrap();
    let entry = json!({
        "manager": "kubectl-edit", "operation": "Update", "apiVersion": "operator.openshift.io/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:deschedulingIntervalSeconds": {}}},
    });
    edited["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    cluster.put(edited.clone());
    let planned = cluster.restore_plan(LOAD_AWARE, "original").items[0].clone();
    assert_eq!((planned.item.operation, &planned.refusal), (Operation::Apply, &None));
    assert!(
        !planned.item.removes.contains(&"spec".to_owned()),
        "the definition requires it: {:?}",
        planned.item.removes
    );
    let defaults = json!({"logLevel": "Normal", "mode": "Predictive", "operatorLogLevel": "Normal"});
    assert_eq!(planned.after.as_ref().unwrap()["spec"], defaults, "the reviewer sees what stays");

    let mut writing = Writing::new(planned.clone(), Lock::Compare);
    assert!(matches!(writing.start(Some(Some(edited.clone()))), Step::Send(Request::Apply(_))));
    let step = writing.next(Input::Object(Box::new(edited)));
    let Step::Send(Request::Patch(patch)) = step else { panic!("{step:?}") };
    let patch = patch.to_string();
    assert!(patch.contains(r#""/spec/mode""#) && !patch.contains(r#""/spec""#), "{patch}");
    let left = cluster.carry_out(&planned).unwrap();
    let step = writing.next(Input::Object(Box::new(left)));
    assert!(matches!(step, Step::Done(Outcome::Finished(Ok(Written::Applied(_))))), "{step:?}");
}

/// Also `records::recorded` keeps such paths, as keys.
#[test]
fn a_field_whose_name_has_dots_is_removed_and_watched() {
    let before = json!({"theirs": "x"});
    let mut cluster = cluster().with(descheduler("kubectl", before, 60));
    let path = Path::member(&["metadata", "labels", "a.b/c"]);
    let plan = cluster.plan(LOAD_AWARE, json!({"loadAware": {"enablePSIMetrics": false}}));
    let mut record = records::recorded(&plan, 1);
    let leaf =
        api::virt_platform_plan_record::Leaf { path: path.keys(), after: Some("\"d\"".into()), ..Default::default() };
    record.spec.items[0].leaves.push(leaf);
    cluster.put(json!(record));
    cluster.carry_out(&plan.items[0]);
    let mut labeled = live(&cluster).unwrap();
    path.set(&mut labeled, json!("d"));
    cluster.put(labeled.clone());

    let planned = cluster.restore_plan(LOAD_AWARE, "original").items[0].clone();
    assert!(planned.item.removes.contains(&r#"metadata.labels["a.b/c"]"#.to_owned()), "{:?}", planned.item.removes);
    assert!(drift::leaves(&planned.item, Some(&labeled)).contains(&path));
    let mut writing = Writing::new(planned, Lock::Compare);
    assert!(matches!(writing.start(Some(Some(labeled.clone()))), Step::Send(Request::Apply(_))));
    let Step::Send(Request::Patch(patch)) = writing.next(Input::Object(Box::new(labeled))) else { panic!("no patch") };
    assert!(patch.to_string().contains(r#""path":"/metadata/labels/a.b~1c""#), "{patch}");
}

#[test]
fn an_apply_keeps_what_is_removed_after_it_only_within_a_map_of_others() {
    const US: &str = "virt-advisor-operator/virt-higher-density";
    let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": fields}});
    let live = |managers: &[Value]| json!({"metadata": {"managedFields": managers}, "spec": {"ksm": {"selector": {"a": "b"}}, "other": 1}});
    let ours = || entry(US, json!({"f:ksm": {"f:selector": {}}}));
    let remove = [Path::dotted("spec.ksm.selector")];
    let kept = json!({"spec": {"ratio": 1, "ksm": {"selector": {"a": "b"}}}});
    let plain = json!({"spec": {"ratio": 1}});
    for (case, live, expected) in [
        ("an empty map of theirs", live(&[ours(), entry("ed", json!({"f:ksm": {}}))]), &kept),
        ("they lost its member to us", live(&[ours(), entry("ed", json!({"f:ksm": {".": {}}}))]), &kept),
        ("the map is ours", live(&[ours()]), &plain),
        ("they have set it too", live(&[ours(), entry("ed", json!({"f:ksm": {"f:selector": {}}}))]), &plain),
        ("it is theirs", live(&[entry("ed", json!({"f:ksm": {"f:selector": {}}}))]), &plain),
        (
            "it does not exist",
            json!({"metadata": {"managedFields": [ours(), entry("ed", json!({"f:ksm": {}}))]}}),
            &plain,
        ),
    ] {
        assert_eq!(with_kept_fields(&plain, &remove, Some(&live), US), *expected, "{case}");
    }
    assert_eq!(with_kept_fields(&plain, &remove, None, US), plain);
}
