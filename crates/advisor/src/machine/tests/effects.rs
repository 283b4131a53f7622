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

/// A completed plan of an older version, which this version would add the descheduler to.
fn completed_with_upgrade() -> Fixture {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.status.items.retain(|item| item.name != DESCHEDULER);
    fixture.interval(300);
    fixture.version = "v2";
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::CompletedWithUpgrade);
    assert_eq!(fixture.item(DESCHEDULER).state.as_str(), "Pending", "it is proposed");
    fixture
}

#[test]
fn an_effect_that_is_lost_is_told_while_an_upgrade_is_proposed_too() {
    let mut fixture = completed_with_upgrade();
    let (written, stored) = (fixture.written.len(), fixture.phases.len());
    fixture.cluster.put(crate::test_cluster::machine_config("99-worker-zzz", json!({"kernelArguments": ["psi=0"]})));
    fixture.roll_out(&[PSI, "99-worker-zzz"]).settle();
    let message = fixture.item("enable-psi-metrics").message.clone().unwrap();
    assert_eq!(fixture.phase(), Phase::InProgress, "{message}");
    assert!(message.contains("MachineConfig '99-worker-zzz' is merged after"), "{message}");
    let upgrade = fixture.condition("UpgradeAvailable").unwrap();
    assert_eq!((upgrade.status.as_str(), upgrade.reason.as_str()), ("True", "LogicChanged"));

    fixture.roll_out(&[PSI]).pass(60).settle();
    let expected = [Phase::InProgress, Phase::Completed, Phase::CompletedWithUpgrade];
    assert_eq!(fixture.phases[stored..], expected);
    assert_eq!(fixture.written.len(), written, "what is proposed is not written");
    assert_eq!(fixture.item(DESCHEDULER).state.as_str(), "Pending", "it is proposed again");
}

/// Nothing of the upgrade is applied when the rollout of the older version's plan ends.
#[test]
fn no_status_says_that_an_upgrade_was_applied_when_only_an_effect_is_back() {
    let mut fixture = completed_with_upgrade();
    fixture.cluster.put(crate::test_cluster::machine_config("99-worker-zzz", json!({"kernelArguments": ["psi=0"]})));
    fixture.roll_out(&[PSI, "99-worker-zzz"]).settle().roll_out(&[PSI]).pass(60);
    let mut last = LastResult::None;
    while let Some(result) = fixture.step(last) {
        assert_eq!(fixture.condition("UpgradeAvailable").unwrap().status, "True", "{}", fixture.phase());
        last = result;
    }
    assert_eq!(fixture.phase(), Phase::CompletedWithUpgrade);
}
