//! Life beside the autopilot, which writes the same objects by force: no edit war, and nothing is dropped without a word.

use super::*;
use crate::test_cluster::set_by;
use Phase::*;

const ITEM: &str = "enable-load-aware-descheduling";
const SWITCH: &str = "platform.kubevirt.io/autopilot";
const AUTOPILOT: &str = "virt-platform-autopilot";
const NAMESPACE: &str = "openshift-kube-descheduler-operator";
const OPT_OUT: &str = "kubectl annotate --overwrite kubedescheduler cluster -n openshift-kube-descheduler-operator \
                       platform.kubevirt.io/mode=unmanaged";
const FORCED_REVIEW: &str = "InputDependencyDrift";

impl Fixture {
    /// Applied without pressure metrics: only the descheduler.
    fn applied(bypass: bool) -> Fixture {
        let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
        fixture.spec.bypass_optimistic_lock = bypass;
        fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 1));
        fixture
    }

    fn switch(&mut self, value: Option<&str>) -> &mut Self {
        let annotations = value.map_or_else(|| json!({}), |value| json!({SWITCH: value}));
        let path = ["metadata", "annotations"];
        self.cluster.edit(&HYPER_CONVERGED, "kubevirt-hyperconverged", &path, Some(annotations));
        self
    }

    /// The autopilot takes the descheduler over, with this interval.
    fn takes(&mut self, interval: i64) -> &mut Self {
        let mut object = self.cluster.find(&KUBE_DESCHEDULER, Some(NAMESPACE), "cluster").unwrap().clone();
        object["spec"]["deschedulingIntervalSeconds"] = interval.into();
        object["metadata"]["labels"] = json!({"platform.kubevirt.io/managed-by": AUTOPILOT});
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        self.cluster.put(set_by(AUTOPILOT, "Apply", object));
        self
    }

    fn opt_out(&mut self) -> &mut Self {
        let annotations = json!({"platform.kubevirt.io/mode": "unmanaged"});
        self.cluster.edit(&KUBE_DESCHEDULER, "cluster", &["metadata", "annotations"], Some(annotations));
        self
    }

    fn told(&self, kind: &str) -> (&str, &str) {
        let condition = self.condition(kind).unwrap();
        (condition.reason.as_str(), condition.message.as_str())
    }
}

#[test]
fn what_the_autopilot_takes_back_is_drift_with_its_name_and_is_never_reverted() {
    for value in [None, Some("true"), Some("descheduler-loadaware")] {
        let mut fixture = Fixture::applied(true);
        fixture.phases.clear();
        fixture.takes(600).switch(value).settle();
        assert_eq!((&fixture.phases[..], fixture.written.len()), (&[Drifted][..], 1), "{value:?}");
        let (reason, message) = fixture.told("Drifted");
        assert_eq!(reason, "RemediationStalled", "{value:?}");
        assert!(message.contains("KubeDescheduler 'cluster' was changed by virt-platform-autopilot"), "{message}");
        assert!(message.ends_with(OPT_OUT), "{message}");
        assert_eq!(fixture.told("Stalled").0, "RemediationStalled");
        let item = fixture.item(ITEM);
        assert_eq!(item.drifted_by.as_ref().unwrap().manager, AUTOPILOT);
        assert!(item.message.as_deref().unwrap().ends_with(OPT_OUT), "{item:?}");
        assert!(item.diff.as_deref().unwrap().contains("-  deschedulingIntervalSeconds: 600"), "{item:?}");
        for seconds in [30, 600, 3600] {
            fixture.pass(seconds).settle();
            assert_eq!((fixture.phase(), fixture.written.len()), (Drifted, 1), "{value:?}, later");
        }
    }
}

#[test]
fn after_that_an_edit_leaves_it_to_the_autopilot_or_takes_it_back_from_one_that_was_told_to_leave_it() {
    let mut fixture = Fixture::applied(true);
    fixture.switch(Some("true")).takes(600).settle();
    let mut left = fixture.clone();
    left.edit(|_| {}).settle();
    assert_eq!((left.phase(), left.written.len(), left.status.items.len()), (Completed, 1, 0));
    assert!(left.status.notes.iter().any(|note| note.contains(AUTOPILOT)), "{:?}", left.status.notes);

    fixture.opt_out().settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Drifted, 1), "a person decides when");
    fixture.edit(|_| {}).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 2));
    fixture.pass(300).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 2));
}

#[test]
fn without_a_request_to_revert_its_drift_is_told_as_any_other_and_names_it() {
    let mut fixture = Fixture::applied(false);
    fixture.takes(600).settle();
    let (reason, _) = fixture.told("Drifted");
    assert_eq!((fixture.phase(), reason, fixture.written.len()), (Drifted, "DriftDetected", 1));
    let (_, message) = fixture.told("Stalled");
    assert!(message.contains("was changed by virt-platform-autopilot"), "{message}");
}

#[test]
fn an_applied_item_that_the_autopilot_manages_from_now_on_is_for_a_person_to_know() {
    for bypass in [false, true] {
        let mut fixture = Fixture::applied(bypass);
        fixture.phases.clear();
        fixture.switch(Some("true")).settle();
        assert_eq!(fixture.phases, [Drafting, ReviewRequired]);
        let (reason, message) = fixture.told(FORCED_REVIEW);
        assert_eq!(reason, "AutopilotManages");
        assert!(
            message.contains("platform.kubevirt.io/autopilot: \"true\"") && message.ends_with(OPT_OUT),
            "{message}"
        );
        assert_eq!(fixture.status.notes.iter().filter(|note| note.contains(OPT_OUT)).count(), 1);
        fixture.pass(300).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, 1), "until somebody has read it");

        // The autopilot writes what it wants meanwhile.
        fixture.takes(600).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, 1));
        fixture.edit(|_| {}).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 1), "acknowledged");
        assert_eq!(fixture.told(FORCED_REVIEW).0, "Acknowledged");
    }
}

#[test]
fn a_review_ends_by_itself_when_the_autopilot_is_switched_off_or_opted_out_again() {
    let mut fixture = Fixture::applied(true);
    fixture.switch(Some("true")).settle();
    let (mut off, mut opted_out) = (fixture.clone(), fixture);
    off.switch(None);
    opted_out.opt_out();
    for mut fixture in [off, opted_out] {
        fixture.settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 1));
        assert_eq!(fixture.told(FORCED_REVIEW).0, "DriftResolved");
        assert_eq!(fixture.status.items.len(), 1, "managed again");
    }
}

#[test]
fn a_plan_that_was_empty_because_of_the_autopilot_is_made_again_when_it_is_switched_off() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.switch(Some("true")).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 0));
    assert_eq!(fixture.status.inputs.len(), 1);
    fixture.switch(Some("false")).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, 0), "nobody has read this plan");
    let message =
        "Input dependency changed: HCO annotation platform.kubevirt.io/autopilot changed (\"true\" -> \"false\")";
    assert_eq!(fixture.told(FORCED_REVIEW), ("InputChanged", message));
    fixture.edit(|_| {}).settle();
    assert_eq!(fixture.written.len(), 2);
}

#[test]
fn a_scope_without_the_plan_is_remembered_and_changes_nothing() {
    let mut fixture = Fixture::applied(true);
    fixture.phases.clear();
    for value in [Some("swap-enable"), Some("false"), None] {
        fixture.switch(value).pass(300).settle();
        let inputs: Vec<_> = fixture.status.inputs.iter().skip(2).filter_map(|input| input.value.clone()).collect();
        assert_eq!(inputs, value.map(|value| format!("{value:?}")).into_iter().collect::<Vec<_>>());
    }
    assert_eq!((&fixture.phases[..], fixture.written.len()), (&[][..], 1));
}

/// The item fails with the reason, and is not written, although the spec asks to overwrite changes.
#[test]
fn an_approved_item_that_the_autopilot_manages_by_then_is_not_written() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    fixture.spec.bypass_optimistic_lock = true;
    fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).settle();
    let mut reviewed = fixture.clone();
    reviewed.edit(|spec| spec.action = Action::Apply).switch(Some("true")).settle();
    assert_eq!((reviewed.phase(), reviewed.written.len()), (Completed, 0), "nothing is left to do");
    assert!(reviewed.status.notes.iter().any(|note| note.contains(AUTOPILOT)));

    // The plan was approved, and its first item is about to be written.
    fixture.edit(|spec| spec.action = Action::Apply);
    let mut last = LastResult::None;
    while fixture.phase() != InProgress {
        last = fixture.step(last).unwrap();
    }
    drop(last);
    fixture.switch(Some("true")).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Failed, 0));
    assert!(
        fixture.told("Failed").1.contains("virt-platform-autopilot manages the descheduler"),
        "{:?}",
        fixture.status
    );
}

#[test]
fn a_new_version_of_the_operator_does_not_drop_what_the_autopilot_has_taken() {
    let mut drifted = Fixture::applied(true);
    drifted.takes(600).switch(Some("true")).settle();
    drifted.version = "v2";
    drifted.settle();
    assert_eq!((drifted.phase(), drifted.told("Drifted").0), (Drifted, "RemediationStalled"));
    let mut silent = Fixture::applied(true);
    silent.switch(Some("true")).version = "v2";
    silent.settle();
    assert_eq!((silent.phase(), silent.told(FORCED_REVIEW).0), (ReviewRequired, "AutopilotManages"));
}
