//! Beside the autopilot: what it manages is left out, unless people have told it to leave the object alone.

use super::*;

pub(super) const SWITCH: &str = "platform.kubevirt.io/autopilot";
const AUTOPILOT: &str = "virt-platform-autopilot";
const THEIR_PSI: &str = "99-openshift-machineconfig-worker-psi-karg";
const OPT_OUT: &str = "kubectl annotate --overwrite kubedescheduler cluster -n openshift-kube-descheduler-operator \
                       platform.kubevirt.io/mode=unmanaged";

/// The cluster with this value of the annotation on HyperConverged.
pub(super) fn switched(cluster: TestCluster, value: &str) -> TestCluster {
    let mut object = hyper_converged("v1beta1", json!({}));
    object["metadata"]["annotations"] = json!({SWITCH: value});
    cluster.with(object)
}

/// The KubeDescheduler as the autopilot writes it, with these annotations.
fn their_descheduler(annotations: Value) -> Value {
    let spec = json!({"mode": "Automatic", "deschedulingIntervalSeconds": 60, "profiles": ["KubeVirtRelieveAndMigrate"],
        "evictionLimits": {"total": 5, "node": 2}, "managementState": "Managed"});
    let mut object = live_descheduler(spec);
    object["metadata"]["labels"] = json!({"platform.kubevirt.io/managed-by": AUTOPILOT});
    let mut object = set_by(AUTOPILOT, "Apply", object);
    object["metadata"]["annotations"] = annotations;
    object
}

fn base() -> TestCluster {
    TestCluster::with_descheduler("5.1")
}

fn names(draft: &Draft) -> Vec<&str> {
    draft.intents.iter().map(|intent| intent.name.as_ref()).collect()
}

const BOTH: [&str; 2] = ["enable-psi-metrics", "enable-load-aware-descheduling"];

#[test]
fn items_that_the_autopilot_manages_are_left_out() {
    let theirs = |annotations: Value| base().with(their_descheduler(annotations));
    let psi = |annotations: Value| {
        let mut config = machine_config(THEIR_PSI, json!({"kernelArguments": ["psi=1"]}));
        config["metadata"]["labels"]["platform.kubevirt.io/managed-by"] = AUTOPILOT.into();
        config["metadata"]["annotations"] = annotations;
        config
    };
    let unmanaged = || json!({"platform.kubevirt.io/mode": "unmanaged"});
    let rolling = || rendered_from(pool("worker", &["worker"], 3), &["00-worker", THEIR_PSI]);
    let cases: Vec<(&str, TestCluster, &[&str])> = vec![
        ("nothing of it", base(), &BOTH),
        ("everything", switched(base(), "true"), &[]),
        ("everything, as it is", switched(theirs(json!({})), "true"), &[]),
        ("off", switched(theirs(json!({})), "false"), &BOTH),
        ("its group", switched(base(), "descheduler-loadaware"), &[]),
        ("pressure metrics alone", switched(base(), "psi-enable"), &BOTH[1..]),
        ("something else", switched(base(), "swap-enable"), &BOTH),
        ("no annotation, and its object", theirs(json!({})), &BOTH[..1]),
        ("opted out of the descheduler", switched(theirs(unmanaged()), "true"), &BOTH[1..]),
        ("opted out of pressure metrics", switched(base().with(psi(unmanaged())), "true"), &BOTH[..1]),
        ("opted out of both", switched(theirs(unmanaged()).with(psi(unmanaged())), "true"), &BOTH),
        ("no annotation, and its config on its way", base().with(psi(json!({}))).with(rolling()), &BOTH[1..]),
        ("no annotation, and its config elsewhere", base().with(psi(json!({}))), &BOTH),
    ];
    for (case, cluster, expected) in cases {
        let draft = cluster.draft(NAME, json!({}));
        assert_eq!(names(&draft), expected, "{case}");
        let left: Vec<_> = draft.left_out.iter().map(|left| left.item.as_ref()).collect();
        let others: Vec<_> = BOTH.into_iter().filter(|name| !expected.contains(name)).collect();
        assert_eq!(left, others, "{case}");
        for left in &draft.left_out {
            assert!(draft.notes.contains(&left.why) && left.why.contains(AUTOPILOT), "{case}: {:?}", draft.notes);
        }
        assert_eq!(draft.risks, [], "{case}");
    }
}

#[test]
fn the_note_says_who_manages_what_and_how_to_opt_out() {
    let draft = switched(base().with(their_descheduler(json!({}))), "descheduler-loadaware").draft(NAME, no_psi());
    let expected = format!(
        "virt-platform-autopilot manages the descheduler by KubeDescheduler openshift-kube-descheduler-operator/cluster \
         (HyperConverged openshift-cnv/kubevirt-hyperconverged has the annotation platform.kubevirt.io/autopilot: \
         \"descheduler-loadaware\"; it has the label platform.kubevirt.io/managed-by; virt-platform-autopilot owns \
         spec.deschedulingIntervalSeconds, spec.evictionLimits.node, spec.evictionLimits.total, spec.managementState and 2 \
         more), so this plan leaves it out. To plan it here instead, tell the autopilot to leave it alone: {OPT_OUT}"
    );
    assert_eq!(draft.notes, [expected], "and nothing about an item that is not there");
    assert!(draft.notes[0].len() <= api::bounds::NOTE);
}

/// An object that does not exist cannot be annotated.
#[test]
fn before_the_objects_exist_one_command_excludes_them_and_then_they_are_planned() {
    let draft = switched(base(), "true").draft(NAME, json!({}));
    let [psi, descheduler, command] = &draft.notes[..] else { panic!("{:?}", draft.notes) };
    assert!(psi.ends_with("It has not created it yet.") && descheduler.ends_with("It has not created it yet."));
    let (_, list) = command.split_once("platform.kubevirt.io/disabled-resources='").unwrap();
    let mut object = hyper_converged("v1beta1", json!({}));
    object["metadata"]["annotations"] =
        json!({SWITCH: "true", "platform.kubevirt.io/disabled-resources": list.trim_end_matches('\'')});
    assert_eq!(names(&base().with(object).draft(NAME, json!({}))), BOTH, "{command}");
}

#[test]
fn a_plan_with_nothing_left_is_empty_and_has_the_annotation_as_its_input() {
    let plan = switched(base(), "true").plan(NAME, json!({}));
    assert!(plan.items.is_empty() && !plan.has_changes());
    let inputs: Vec<_> = plan.inputs.iter().map(|input| (input.path.as_str(), input.value.as_deref())).collect();
    assert_eq!(inputs, [("metadata.annotations[\"platform.kubevirt.io/autopilot\"]", Some("\"true\""))]);
    let plan = switched(base(), "mtv-operator").plan(NAME, json!({}));
    assert_eq!(plan.inputs.len(), 3, "also where nothing is left out");
    assert_eq!(base().plan(NAME, json!({})).inputs.len(), 2, "and not where it is not set");
}

/// It paused itself because somebody else wrote the object too: the plan goes on, with a warning.
#[test]
fn where_the_autopilot_has_paused_itself_the_plan_names_the_risk() {
    let paused = json!({"platform.kubevirt.io/reconcile-paused": "true"});
    let draft = switched(base().with(their_descheduler(paused)), "true").draft(NAME, no_psi());
    assert_eq!(names(&draft), BOTH[1..]);
    let [risk] = &draft.risks[..] else { panic!("{:?}", draft.risks) };
    assert_eq!(risk.name, "AutopilotManages");
    assert!(
        risk.message.contains("platform.kubevirt.io/reconcile-paused") && risk.message.ends_with(OPT_OUT),
        "{risk:?}"
    );
}

/// Two MachineConfigs with one argument are no edit war.
#[test]
fn a_config_of_ours_that_is_there_already_stays_managed_and_can_be_taken_back() {
    let mut cluster = base();
    cluster.apply(NAME, json!({}));
    let cluster = switched(cluster, "psi-enable");
    let draft = cluster.draft(NAME, json!({}));
    assert_eq!(names(&draft), BOTH);
    let risks: Vec<_> = draft.risks.iter().map(|risk| risk.name.as_str()).collect();
    assert_eq!(risks, ["AutopilotManages"]);
    assert!(draft.risks[0].message.contains(THEIR_PSI), "{:?}", draft.risks);
    let removal = cluster.plan(NAME, no_psi());
    assert_eq!(
        (removal.items[0].verb, removal.risks.len()),
        (Verb::Deleted, 0),
        "which is no concern of the autopilot"
    );
}

/// Its MachineConfig has another name: the argument counts, whoever set it.
#[test]
fn pressure_metrics_that_the_autopilot_has_turned_on_are_no_item() {
    let on = machine_config("rendered-worker", json!({"kernelArguments": ["psi=1"]}));
    let pool = rendered_from(pool("worker", &["worker"], 3), &["00-worker", THEIR_PSI]);
    let note = "PSI metrics already effective in MachineConfigPool 'worker' through another MachineConfig: \
                '99-worker-psi-karg' is not needed";
    for cluster in [base(), switched(base(), "false"), switched(base(), "psi-enable")] {
        let draft = cluster.with(on.clone()).with(pool.clone()).draft(NAME, json!({}));
        assert_eq!((names(&draft), notes(&draft)), (BOTH[1..].to_vec(), vec![note]));
    }
}
