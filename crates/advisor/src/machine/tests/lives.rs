//! Whole sequences of phases.

use super::*;
use Phase::*;

/// W40 (ignored status errors), D15 (first phases), D23 (items in order): Pending is shown, items go in order without
/// waiting, and each step is recorded once.
#[test]
fn planned_reviewed_approved_rolled_out() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    fixture.settle();
    assert_eq!(fixture.phases, [Pending, Drafting, ReviewRequired]);
    assert_eq!(fixture.written, [""; 0]);
    fixture.act(Action::Apply);
    assert_eq!(fixture.phase(), InProgress);
    assert_eq!(fixture.written, ["enable-psi-metrics", "enable-load-aware-descheduling"], "in order, without waiting");
    assert_eq!(fixture.item("enable-load-aware-descheduling").message.as_deref(), Some("Applied successfully"));
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phases, [Pending, Drafting, ReviewRequired, InProgress, Completed]);
    let message = "MachineConfigPool 'worker' is ready (all 3 nodes updated)";
    assert_eq!(fixture.item("enable-psi-metrics").message.as_deref(), Some(message));
    assert_eq!(fixture.records, 7, "two to get going, the plan, each write, their answers, the end");
    let before = fixture.status.clone();
    fixture.pass(300).settle();
    assert_eq!(fixture.status, before, "at rest nothing is recorded");
}

#[test]
fn apply_from_the_start_is_an_approval() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.settle();
    assert_eq!(fixture.phases, [Pending, Drafting, InProgress]);
    assert_eq!(fixture.written.len(), 2);
}

/// W30 (DryRun after completion), D15 (first phases): a dry run after completion plans again; nothing to change is
/// done at once.
#[test]
fn a_plan_without_changes_completes_at_once() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    for action in [Action::DryRun, Action::Apply] {
        fixture.phases.clear();
        fixture.act(action);
        assert_eq!(fixture.phases, [Pending, Drafting, Completed], "{action}");
        assert_eq!(fixture.status.observed_generation, Some(fixture.generation));
    }
    assert_eq!(fixture.written.len(), 2, "nothing was written again");
}

/// W5 (writes in DryRun), D11 (DryRun writes nothing): a rollout that is under way is followed under DryRun, and
/// nothing is written.
#[test]
fn nothing_would_change_but_nodes_still_roll() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.settle();
    fixture.phases.clear();
    fixture.act(Action::DryRun);
    assert_eq!(fixture.phases, [Pending, Drafting, InProgress], "waited for, without writing");
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Completed);
    assert_eq!(fixture.written.len(), 2);
}

/// W9 (stale Drifted), D9 (exact Completed), D10 (no fighting by default): Drifted ends with the drift, and nobody is
/// fought.
#[test]
fn drift_is_told_and_goes_away_with_its_cause() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.interval(180).settle();
    assert_eq!(fixture.phase(), Drifted);
    let item = fixture.item("enable-load-aware-descheduling");
    assert!(item.diff.as_deref().unwrap().contains("-  deschedulingIntervalSeconds: 180"), "{item:?}");
    assert!(item.drifted_by.is_some());
    assert_eq!(fixture.written.len(), 2, "inform, do not fight");
    fixture.interval(60).settle();
    assert_eq!(fixture.phase(), Completed);
    let item = fixture.item("enable-load-aware-descheduling");
    assert!(item.diff.as_deref().unwrap().ends_with("(no changes)\n") && item.drifted_by.is_none());
}

/// W42 (endless reverts): with pauses, and not against somebody who does the same.
#[test]
fn drift_is_reverted_on_request_and_not_forever() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.edit(|spec| spec.bypass_optimistic_lock = true).settle();
    for (wait, reverted) in [(0, true), (10, false), (30, true), (60, false), (120, true)] {
        let before = fixture.written.len();
        fixture.pass(wait).interval(180).settle();
        assert_eq!(fixture.written.len() > before, reverted, "{wait} s later");
        assert_eq!(fixture.phase(), if reverted { Completed } else { Drifted }, "{wait} s later");
    }
    fixture.pass(1).interval(180).settle();
    assert_eq!(fixture.condition("Drifted").unwrap().reason, "RemediationStalled");
    fixture.pass(3600).settle();
    assert_eq!(fixture.condition("Drifted").unwrap().reason, "RemediationStalled", "until somebody edits the spec");
    fixture.edit(|_| {}).settle();
    assert_eq!(fixture.phase(), Completed);
}

/// Somebody changes the MachineConfig.
fn psi_off(fixture: &mut Fixture) {
    fixture.cluster.edit(&crate::kind::MACHINE_CONFIG, PSI, &["spec", "kernelArguments"], Some(json!(["psi=0"])));
}

/// Drift that the pool has not rendered needs no rollout of its revert; drift that it has rendered does.
#[test]
fn drift_of_nodes_that_is_reverted_is_waited_for_only_if_the_pool_has_noticed_it() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.spec.bypass_optimistic_lock = true;
    psi_off(&mut fixture);
    fixture.settle().pass(60).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 3), "nothing was rendered in between");
    psi_off(&mut fixture);
    fixture.roll_out(&[PSI]).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 4), "what it has rendered is the drift");
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Completed);
}

/// Found by a random schedule: the pool rendered the drift and then its former config again, and the operator waited for another one.
#[test]
fn drift_of_nodes_that_an_edit_sets_back_is_waited_for_only_if_the_pool_has_noticed_it() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    psi_off(&mut fixture);
    fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 120}})).settle().pass(60).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 4), "nothing was rendered in between");
    psi_off(&mut fixture);
    fixture.roll_out(&[PSI]).options(json!({"loadAware": {"deschedulingIntervalSeconds": 60}})).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 6), "what it has rendered is the drift");
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Completed);
}

/// The kind of a target is removed during the wait. The status says so, and the wait ends.
#[test]
fn prerequisites_that_vanish_while_nodes_are_waited_for_are_missed() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.settle();
    assert_eq!(fixture.phase(), InProgress);
    fixture.cluster = fixture.cluster.without(&crate::kind::MACHINE_CONFIG);
    fixture.settle();
    assert_eq!(fixture.phase(), PrerequisiteFailed);
    assert_eq!(fixture.condition("InputDependencyDrift").unwrap().reason, "PrerequisitesVanished");
}

/// D5 (changed input): a new plan, a forced review, and an end of it when the change is taken back.
#[test]
fn a_changed_input_is_reviewed_whatever_the_action_says() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.phases.clear();
    fixture.migrations(10).settle();
    assert_eq!(fixture.phases, [Drafting, ReviewRequired]);
    assert_eq!(fixture.written.len(), 2);
    let mark = fixture.condition("InputDependencyDrift").unwrap();
    let text = "Input dependency changed: HCO parallelMigrationsPerCluster changed (scaled 5 -> 10)";
    assert_eq!((mark.status.as_str(), mark.reason.as_str(), mark.message.as_str()), ("True", "InputChanged", text));
    fixture.clone().migrations(5).settle();
    let mut restored = fixture.clone();
    restored.migrations(5).settle();
    assert_eq!(restored.phase(), Completed);
    assert_eq!(restored.condition("InputDependencyDrift").unwrap().reason, "DriftResolved");
    fixture.edit(|_| {}).settle();
    assert_eq!(fixture.phase(), Completed, "acknowledged by a new generation");
    assert_eq!(fixture.condition("InputDependencyDrift").unwrap().reason, "Acknowledged");
    assert_eq!(fixture.written.len(), 3);
}

/// W3 (missed density changes), D5 (changed input), D26 (density default): compared with what was applied; what the
/// user fixed drifts.
#[test]
fn a_setting_that_is_managed_at_its_default_is_an_input_too() {
    let mut fixture = Fixture::completed(DENSITY);
    let path = ["spec", "higherWorkloadDensity", "memoryOvercommitPercentage"];
    let set = |fixture: &mut Fixture, value: i64| {
        fixture.cluster.edit(&HYPER_CONVERGED, "kubevirt-hyperconverged", &path, Some(value.into()));
        fixture.settle();
    };
    set(&mut fixture, 200);
    assert_eq!(fixture.phase(), ReviewRequired);
    let text = "Input dependency changed: HCO memoryOvercommitPercentage changed (150 -> 200)";
    assert_eq!(fixture.condition("InputDependencyDrift").unwrap().message, text);
    set(&mut fixture, 150);
    assert_eq!(fixture.phase(), Completed);

    let mut fixed = Fixture::new(DENSITY, Action::Apply);
    fixed.options(json!({"virtHigherDensity": {"memoryToRequestRatio": 150, "ksmConfiguration": {}}}));
    fixed.settle().roll_out(&["90-worker-kubelet-swap"]).settle();
    set(&mut fixed, 200);
    assert_eq!(fixed.phase(), Drifted, "what the user fixed drifts the ordinary way");
}

/// W25 (unresolved upgrade): what was High to apply is Low by now, and that is no upgrade.
#[test]
fn a_new_version_is_adopted_silently_when_it_changes_nothing() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.version = "v2";
    let records = fixture.records;
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.records), (Completed, records + 1));
    assert_eq!(fixture.status.operator_version.as_deref(), Some("v2"));
    assert_eq!(fixture.condition("UpgradeAvailable"), None);
}

/// W25 (unresolved upgrade): shown with its diff, settled by hand too, and drift is seen meanwhile.
#[test]
fn a_new_version_that_would_change_something_is_shown_and_resolved_by_hand_or_by_a_new_plan() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    // An older version planned another interval.
    fixture.interval(90);
    let live = fixture.cluster.find(&KUBE_DESCHEDULER, Some("openshift-kube-descheduler-operator"), "cluster").cloned();
    let item = fixture.status.items.iter_mut().find(|item| item.target_ref.kind == "KubeDescheduler").unwrap();
    item.desired_state.as_mut().unwrap()["spec"]["deschedulingIntervalSeconds"] = 90.into();
    item.applied_fingerprint = Some(drift::fingerprint(item, live.as_ref()));
    fixture.version = "v2";
    fixture.settle();
    assert_eq!(fixture.phase(), CompletedWithUpgrade);
    assert!(
        fixture
            .item("enable-load-aware-descheduling")
            .diff
            .as_deref()
            .unwrap()
            .contains("+  deschedulingIntervalSeconds: 60")
    );
    assert_eq!(fixture.condition("UpgradeAvailable").unwrap().reason, "LogicChanged");
    assert_eq!(fixture.status.operator_version.as_deref(), Some("v1"));

    let mut drifted = fixture.clone();
    drifted.interval(300).settle();
    assert_eq!(drifted.phase(), Drifted, "drift is still seen");
    drifted.interval(90).settle();
    assert_eq!(drifted.phase(), CompletedWithUpgrade);

    let mut aligned = fixture.clone();
    aligned.interval(60).settle();
    assert_eq!(
        (aligned.phase(), aligned.condition("UpgradeAvailable").unwrap().reason.as_str()),
        (Completed, "ManuallyAligned")
    );

    fixture.edit(|_| {}).settle();
    assert_eq!(fixture.phase(), Completed);
    assert_eq!(fixture.written.last().unwrap(), "enable-load-aware-descheduling");
    assert_eq!(fixture.condition("UpgradeAvailable").unwrap().reason, "Applied");
}

/// W1 (endless updates), D32 (all descheduler releases): limits that a version does not have are neither missed nor
/// taken for changed.
#[test]
fn a_plan_for_any_version_of_the_descheduler_comes_into_force_and_stays_there() {
    for version in crate::kube_descheduler::Release::ALL.map(crate::kube_descheduler::Release::as_str) {
        let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
        fixture.cluster = TestCluster::with_descheduler(version).with(crate::test_cluster::sample("hyperconverged"));
        fixture.settle().roll_out(&[PSI]).settle();
        assert_eq!(fixture.phases, [Pending, Drafting, InProgress, Completed], "{version}");
        let (status, written) = (fixture.status.clone(), fixture.written.len());
        for _ in 0..3 {
            fixture.pass(300).settle();
        }
        assert_eq!((&fixture.status, fixture.written.len()), (&status, written), "{version}: nothing more to do");
        assert_eq!(fixture.condition("InputDependencyDrift"), None, "{version}");
    }
}

/// W21 (live state as baseline): the baseline is what the API server answered to our write, whatever is there when
/// the nodes are done.
#[test]
fn what_somebody_changes_before_the_nodes_are_done_is_drift_and_no_baseline() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.settle();
    assert_eq!(fixture.phase(), InProgress);
    fixture.interval(180).roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Drifted);
    fixture.interval(60).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 2));
}

/// W6 (reverted by a rollout), D10 (no fighting by default): an edit by hand makes the pool roll. That is the news,
/// and not a reason to apply anything again.
#[test]
fn an_edited_config_whose_pool_rolls_is_told_and_not_written_over() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.cluster.edit(&crate::kind::MACHINE_CONFIG, PSI, &["spec", "kernelArguments"], Some(json!(["psi=0"])));
    let mut pool = fixture.cluster.find(&MACHINE_CONFIG_POOL, None, "worker").unwrap().clone();
    pool["status"]["updatedMachineCount"] = 1.into();
    pool["status"]["conditions"] = json!([{"type": "Updating", "status": "True"}]);
    fixture.cluster.put(pool);
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Drifted, 2));
    assert!(fixture.item("enable-psi-metrics").drifted_by.is_some());
}

/// W42 (endless reverts): whoever asked for reverts gets back what was changed, and no round of everything else.
#[test]
fn only_what_drifted_is_applied_again() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.edit(|spec| spec.bypass_optimistic_lock = true).settle();
    fixture.written.clear();
    let other = fixture.item("enable-psi-metrics").clone();
    fixture.interval(180).settle();
    assert_eq!(
        (fixture.phase(), &fixture.written[..]),
        (Completed, &["enable-load-aware-descheduling".to_owned()][..])
    );
    assert_eq!(fixture.item("enable-psi-metrics"), &other, "not even looked into");
}
