//! Beside the autopilot: swap is left to it, and settings of HyperConverged only if it owns them.

use super::*;

const SWITCH: &str = "platform.kubevirt.io/autopilot";
const AUTOPILOT: &str = "virt-platform-autopilot";
const THEIR_SWAP: &str = "90-worker-swap-online";
const BOTH: [&str; 2] = ["enable-kubelet-swap", "configure-higher-density"];

fn switched(value: &str) -> TestCluster {
    installed().with(annotated(json!({SWITCH: value})))
}

fn annotated(annotations: Value) -> Value {
    let spec = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}});
    let mut object = hyper_converged("openshift-cnv", "v1beta1", spec);
    object["metadata"]["annotations"] = annotations;
    object
}

fn names(cluster: &TestCluster, options: Value) -> (Vec<&'static str>, Vec<String>) {
    let draft = cluster.draft(NAME, options);
    let risks = draft.risks.iter().map(|risk| risk.name.clone()).collect();
    let known = |intent: &Intent| BOTH.into_iter().find(|known| intent.name == *known).unwrap();
    (draft.intents.iter().map(known).collect(), risks)
}

#[test]
fn swap_that_the_autopilot_manages_is_left_out() {
    let opted_out = |value: &str| {
        let mut config = machine_config(THEIR_SWAP, json!({"config": {}}));
        config["metadata"]["annotations"] = json!({"platform.kubevirt.io/mode": value});
        switched("swap-enable").with(config)
    };
    let excluded = |value: &str| {
        annotated(
            json!({SWITCH: value, "platform.kubevirt.io/disabled-resources": "MachineConfig/90-worker-swap-online"}),
        )
    };
    let cases: Vec<(&str, TestCluster, &[&str])> = vec![
        ("nothing of it", installed(), &BOTH),
        ("swap", switched("swap-enable"), &BOTH[1..]),
        ("something else", switched("descheduler-loadaware"), &BOTH),
        ("off", switched("false"), &BOTH),
        ("opted out", opted_out("unmanaged"), &BOTH),
        ("not opted out", opted_out(""), &BOTH[1..]),
        ("excluded", installed().with(excluded("swap-enable")), &BOTH),
    ];
    for (case, cluster, expected) in cases {
        assert_eq!(names(&cluster, json!({})), (expected.to_vec(), vec![]), "{case}");
        let draft = cluster.draft(NAME, json!({}));
        let is_told = draft.notes.iter().any(|note| note.contains(AUTOPILOT) && note.contains(THEIR_SWAP));
        assert_eq!(is_told, expected.len() == 1, "{case}: {:?}", draft.notes);
    }
}

#[test]
fn swap_of_ours_stays_managed_and_can_be_taken_back() {
    let mut cluster = installed();
    cluster.apply(NAME, json!({}));
    cluster.edit(
        &HYPER_CONVERGED,
        "kubevirt-hyperconverged",
        &["metadata", "annotations"],
        Some(json!({SWITCH: "swap-enable"})),
    );
    assert_eq!(names(&cluster, json!({})), (BOTH.to_vec(), vec!["AutopilotManages".to_owned()]));
    assert_eq!(cluster.plan(NAME, no_swap()).items[0].verb, Verb::Deleted);
}

/// It sets nothing there by default, so the settings stay planned, and the risk is named.
#[test]
fn settings_of_hyper_converged_are_left_out_only_if_the_autopilot_owns_them() {
    let risk = || vec!["AutopilotManages".to_owned()];
    assert_eq!(names(&switched("true"), no_swap()), (BOTH[1..].to_vec(), risk()));
    let unmanaged = annotated(json!({SWITCH: "true", "platform.kubevirt.io/mode": "unmanaged"}));
    assert_eq!(names(&installed().with(unmanaged), no_swap()), (BOTH[1..].to_vec(), vec![]));
    let owned = set_by(AUTOPILOT, "Apply", annotated(json!({SWITCH: "true"})));
    let draft = installed().with(owned).draft(NAME, no_swap());
    assert!(draft.intents.is_empty(), "{draft:?}");
    let command = "kubectl annotate --overwrite hyperconverged kubevirt-hyperconverged -n openshift-cnv \
                   platform.kubevirt.io/mode=unmanaged";
    assert!(draft.notes[0].ends_with(command), "{:?}", draft.notes);
}

/// A plan that turns page merging off removes its selector, whoever set it. The autopilot would set it again.
#[test]
fn a_selector_that_the_autopilot_has_set_is_not_taken_out() {
    let mut merging = annotated(json!({}));
    merging["spec"]["ksmConfiguration"] = json!({"nodeLabelSelector": {}});
    let with_selector_of = |manager: &str| {
        let mut object = merging.clone();
        let fields = json!({"f:spec": {"f:ksmConfiguration": {"f:nodeLabelSelector": {}}}});
        object["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Apply", "fieldsV1": fields}]);
        installed().with(object)
    };
    let draft = with_selector_of(AUTOPILOT).draft(NAME, no_swap());
    assert!(draft.intents.is_empty(), "{draft:?}");
    assert!(
        draft.notes[0].contains("virt-platform-autopilot owns spec.ksmConfiguration.nodeLabelSelector"),
        "{draft:?}"
    );
    assert_eq!(names(&with_selector_of("kubectl"), no_swap()), (BOTH[1..].to_vec(), vec![]));
}
