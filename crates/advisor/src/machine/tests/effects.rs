//! A written item is not in effect yet: the operator of its target may take it over later, or never.

use super::*;

const DESCHEDULER: &str = "enable-load-aware-descheduling";

/// Sets the status of the KubeDescheduler as its operator would.
fn report(fixture: &mut Fixture, degraded: Option<&str>) {
    let mut live = fixture
        .cluster
        .find(&KUBE_DESCHEDULER, Some("openshift-kube-descheduler-operator"), "cluster")
        .unwrap()
        .clone();
    let status = if degraded.is_some() { "True" } else { "False" };
    live["status"] = json!({"conditions": [
        {"type": "TargetConfigControllerDegraded", "status": status, "reason": degraded.unwrap_or("AsExpected")},
    ]});
    fixture.cluster.put(live);
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
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(operator());
    fixture.settle().roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Phase::InProgress);
    assert_eq!(fixture.item("enable-psi-metrics").state.as_str(), "Completed");
    let message = fixture.item(DESCHEDULER).message.clone().unwrap();
    assert!(message.contains("has not deployed a descheduler yet"), "{message}");

    report(&mut fixture, Some("profile X can only be used when KubeVirt is properly deployed"));
    fixture.settle();
    let message = fixture.item(DESCHEDULER).message.clone().unwrap();
    let expected = "KubeDescheduler 'cluster' is refused by its operator: profile X can only be used when KubeVirt is properly deployed";
    assert_eq!((fixture.phase(), message.as_str()), (Phase::InProgress, expected));

    report(&mut fixture, None);
    fixture.cluster.put(deployed());
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::Completed);
    assert_eq!(fixture.item(DESCHEDULER).message.as_deref(), Some("Applied successfully"));
}

#[test]
fn a_refusal_that_lasts_runs_into_the_time_limit_like_a_pool_that_is_degraded() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.spec.wait_timeout = Some("1h".into());
    fixture.cluster.put(operator());
    fixture.settle().roll_out(&[PSI]).settle();
    report(&mut fixture, Some("no route"));
    fixture.settle().pass(3601).settle();
    assert_eq!(fixture.phase(), Phase::Failed);
    let told = &fixture.condition("Failed").unwrap().message;
    assert!(told.contains("Timeout waiting") && told.contains("is refused by its operator: no route"), "{told}");
}

#[test]
fn a_refusal_that_comes_later_takes_completed_back_until_it_is_gone() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let written = fixture.written.len();
    report(&mut fixture, Some("no PSI"));
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::InProgress);
    assert!(fixture.item(DESCHEDULER).message.as_deref().unwrap().ends_with("is refused by its operator: no PSI"));
    report(&mut fixture, None);
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Phase::Completed, written), "and nothing was written for it");
}

#[test]
fn a_config_that_overrules_ours_later_takes_completed_back() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let mut overruling = crate::test_cluster::machine_config("99-worker-zzz", json!({"kernelArguments": ["psi=0"]}));
    overruling["metadata"]["uid"] = "z".into();
    fixture.cluster.put(overruling);
    fixture.roll_out(&[PSI, "99-worker-zzz"]);
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::InProgress);
    let message = fixture.item("enable-psi-metrics").message.clone().unwrap();
    assert!(message.contains("MachineConfig '99-worker-zzz' is merged after"), "{message}");
}

#[test]
fn where_nobody_reports_written_counts_as_done() {
    let fixture = Fixture::completed(LOAD_AWARE);
    assert!(fixture.status.notes.iter().any(|note| note.starts_with("No operator reports on KubeDescheduler")));
    assert_eq!(fixture.item(DESCHEDULER).message.as_deref(), Some("Applied successfully"));
}
