//! Written is not in effect: the owner of a target may take it later, or not at all.

use super::*;

const DESCHEDULER: &str = "enable-load-aware-descheduling";

/// Says in the KubeDescheduler's status what its operator makes of it.
fn report(story: &mut Story, degraded: Option<&str>) {
    let mut live =
        story.cluster.find(&KUBE_DESCHEDULER, Some("openshift-kube-descheduler-operator"), "cluster").unwrap().clone();
    let status = if degraded.is_some() { "True" } else { "False" };
    live["status"] = json!({"conditions": [
        {"type": "TargetConfigControllerDegraded", "status": status, "reason": degraded.unwrap_or("AsExpected")},
    ]});
    story.cluster.put(live);
}

fn operator() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
        "name": "descheduler-operator", "namespace": "openshift-kube-descheduler-operator",
    }})
}

fn deployed() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "descheduler", "namespace": "openshift-kube-descheduler-operator"},
        "spec": {"replicas": 1, "template": {"metadata": {"annotations": {"kubedeschedulers.operator.openshift.io/cluster": "0"}}}},
        "status": {"updatedReplicas": 1, "availableReplicas": 1},
    })
}

/// Real operators, fourth in rank: no Completed over a refusal.
#[test]
fn a_plan_completes_when_the_operator_has_taken_it_and_not_before() {
    let mut story = Story::new(LOAD_AWARE, Action::Apply);
    story.cluster.put(operator());
    story.settle().roll_out(&[PSI]).settle();
    assert_eq!(story.phase(), Phase::InProgress);
    assert_eq!(story.item("enable-psi-metrics").state.as_str(), "Completed");
    let message = story.item(DESCHEDULER).message.clone().unwrap();
    assert!(message.contains("has not deployed a descheduler yet"), "{message}");

    report(&mut story, Some("profile X can only be used when KubeVirt is properly deployed"));
    story.settle();
    let message = story.item(DESCHEDULER).message.clone().unwrap();
    let expected = "KubeDescheduler 'cluster' is refused by its operator: profile X can only be used when KubeVirt is properly deployed";
    assert_eq!((story.phase(), message.as_str()), (Phase::InProgress, expected));

    report(&mut story, None);
    story.cluster.put(deployed());
    story.settle();
    assert_eq!(story.phase(), Phase::Completed);
    assert_eq!(story.item(DESCHEDULER).message.as_deref(), Some("Applied successfully"));
}

#[test]
fn a_refusal_that_lasts_runs_into_the_time_limit_like_a_pool_that_is_degraded() {
    let mut story = Story::new(LOAD_AWARE, Action::Apply);
    story.spec.wait_timeout = Some("1h".into());
    story.cluster.put(operator());
    story.settle().roll_out(&[PSI]).settle();
    report(&mut story, Some("no route"));
    story.settle().pass(3601).settle();
    assert_eq!(story.phase(), Phase::Failed);
    let told = &story.condition("Failed").unwrap().message;
    assert!(told.contains("Timeout waiting") && told.contains("is refused by its operator: no route"), "{told}");
}

#[test]
fn a_refusal_that_comes_later_takes_completed_back_until_it_is_gone() {
    let mut story = Story::completed(LOAD_AWARE);
    let written = story.written.len();
    report(&mut story, Some("no PSI"));
    story.settle();
    assert_eq!(story.phase(), Phase::InProgress);
    assert!(story.item(DESCHEDULER).message.as_deref().unwrap().ends_with("is refused by its operator: no PSI"));
    report(&mut story, None);
    story.settle();
    assert_eq!((story.phase(), story.written.len()), (Phase::Completed, written), "and nothing was written for it");
}

#[test]
fn a_config_that_overrules_ours_later_takes_completed_back() {
    let mut story = Story::completed(LOAD_AWARE);
    let mut overruling = crate::test_cluster::machine_config("99-worker-zzz", json!({"kernelArguments": ["psi=0"]}));
    overruling["metadata"]["uid"] = "z".into();
    story.cluster.put(overruling);
    story.roll_out(&[PSI, "99-worker-zzz"]);
    let name = format!("rendered-worker{PSI}99-worker-zzz");
    story.cluster.put(crate::test_cluster::rendered(&name, &["psi=1", "psi=0"]));
    story.settle();
    assert_eq!(story.phase(), Phase::InProgress);
    let message = story.item("enable-psi-metrics").message.clone().unwrap();
    assert!(message.contains("MachineConfig '99-worker-zzz' is merged after"), "{message}");
}

#[test]
fn where_nobody_reports_written_counts_as_done() {
    let story = Story::completed(LOAD_AWARE);
    assert!(story.status.notes.iter().any(|note| note.starts_with("No operator reports on KubeDescheduler")));
    assert_eq!(story.item(DESCHEDULER).message.as_deref(), Some("Applied successfully"));
}
