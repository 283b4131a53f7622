//! The settings of HyperConverged: memory overcommitment and page merging.

use super::*;
use crate::fields::Path;

/// Paths, and the values found there.
type Inputs = Vec<(&'static str, Option<&'static str>)>;

fn density(cluster: &TestCluster, options: Value) -> Intent {
    cluster.draft(NAME, options).intents.pop().unwrap()
}

const SELECTOR: &str = "spec.ksmConfiguration.nodeLabelSelector";

fn removed(intent: &Intent) -> Vec<Path> {
    let Change::Apply { remove, .. } = &intent.change else { panic!("not an apply: {intent:?}") };
    remove.clone()
}

#[test]
fn the_item_is_the_one_of_the_guide() {
    let intent = density(&installed(), Value::Null);
    let message = "HyperConverged 'kubevirt-hyperconverged' will be configured with memoryOvercommitPercentage=150 and KSM enabled";
    assert_eq!(intent.message, message);
    assert_eq!(intent.managed, ["spec.higherWorkloadDensity.memoryOvercommitPercentage", "spec.ksmConfiguration"]);
    let expected = json!({
        "apiVersion": "hco.kubevirt.io/v1beta1",
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        "spec": {
            "higherWorkloadDensity": {"memoryOvercommitPercentage": 150},
            "ksmConfiguration": {"nodeLabelSelector": {}},
        },
    });
    assert_eq!(fields(&intent), &expected);
    assert_eq!(removed(&intent), []);
}

/// D3 (swap removal), D26 (density default): never what HyperConverged has at the moment.
#[test]
fn the_ratio_is_the_users_or_follows_from_swap() {
    let cases = [
        (json!({}), 150),
        (json!({"virtHigherDensity": {}}), 150),
        (given(json!({"enableSwap": true})), 150),
        (given(json!({"enableSwap": false})), 120),
        (given(json!({"enableSwap": false, "memoryToRequestRatio": 100})), 100),
        (given(json!({"memoryToRequestRatio": 200})), 200),
        (given(json!({"memoryToRequestRatio": 150})), 150),
    ];
    for (options, ratio) in cases {
        let intent = density(&installed(), options.clone());
        let spec = &fields(&intent)["spec"];
        assert_eq!(spec["higherWorkloadDensity"], json!({"memoryOvercommitPercentage": ratio}), "{options}");
        assert!(intent.message.contains(&format!("memoryOvercommitPercentage={ratio}")), "{options}");
    }
}

/// D1 (page merging default): in every form of the options.
#[test]
fn page_merging_is_on_by_default_and_off_where_options_leave_it_out() {
    let labels = json!({"matchLabels": {"ksm-enabled": "true"}});
    let expressions = json!({"matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
        {"key": "spot", "operator": "DoesNotExist"},
    ]});
    let ksm = |ksm: Value| given(json!({"ksmConfiguration": ksm}));
    let cases = [
        ("no options", Value::Null, Some(json!({}))),
        ("empty options", json!({}), Some(json!({}))),
        ("options without it", given(json!({})), None),
        ("other options only", given(json!({"enableSwap": true, "memoryToRequestRatio": 150})), None),
        ("an empty configuration", ksm(json!({})), Some(json!({}))),
        ("an empty selector", ksm(json!({"nodeLabelSelector": {}})), Some(json!({}))),
        ("labels", ksm(json!({"nodeLabelSelector": labels})), Some(labels)),
        ("expressions", ksm(json!({"nodeLabelSelector": expressions})), Some(expressions)),
        ("on by word", ksm(json!({"enabled": true})), Some(json!({}))),
        ("off by word", ksm(json!({"enabled": false})), None),
        ("off by word, whatever the selector", ksm(json!({"enabled": false, "nodeLabelSelector": {}})), None),
        ("without swap", given(json!({"enableSwap": false, "ksmConfiguration": {}})), Some(json!({}))),
    ];
    for (case, options, expected) in cases {
        let intent = density(&installed(), options);
        let spec = &fields(&intent)["spec"];
        let expected_ksm = expected.as_ref().map(|selector| json!({"nodeLabelSelector": selector}));
        assert_eq!(spec.get("ksmConfiguration"), expected_ksm.as_ref(), "{case}");
        assert_eq!(intent.message.ends_with(" and KSM enabled"), expected.is_some(), "{case}: {}", intent.message);
        assert_eq!(intent.managed.iter().any(|path| path == "spec.ksmConfiguration"), expected.is_some(), "{case}");
        let kept_out =
            if expected.is_some() { vec![] } else { vec![Path::dotted("spec.ksmConfiguration.nodeLabelSelector")] };
        assert_eq!(removed(&intent), kept_out, "{case}: off means that nobody may turn it on unseen");
        assert!(!intent.message.ends_with(" and KSM disabled"), "{case}: it was not on");
    }
}

#[test]
fn page_merging_that_is_on_is_turned_off_by_taking_the_field_out() {
    let off = || given(json!({"memoryToRequestRatio": 150}));
    let live = |ksm: Value| {
        TestCluster::with_descheduler("5.1").with(hyper_converged(
            "openshift-cnv",
            "v1beta1",
            json!({"ksmConfiguration": ksm}),
        ))
    };
    let cases = [
        ("on for all", json!({"nodeLabelSelector": {}}), true),
        ("on for some", json!({"nodeLabelSelector": {"matchLabels": {"a": "b"}}}), true),
        ("off, as the platform's own webhook writes it", json!({}), false),
        ("off", json!({"nodeLabelSelector": null}), false),
        ("absent", Value::Null, false),
    ];
    for (case, ksm, was_on) in cases {
        let intent = density(&live(ksm), off());
        assert_eq!(removed(&intent), [Path::dotted(SELECTOR)], "{case}: whoever turns it on later is noticed");
        assert_eq!(intent.message.ends_with(" and KSM disabled"), was_on, "{case}: {}", intent.message);
    }

    let mut cluster = live(json!({"nodeLabelSelector": {}}));
    let plan = cluster.plan(NAME, off());
    let item = &plan.items[1].item;
    assert_eq!(item.removes, [SELECTOR]);
    let diff = item.diff.as_ref().unwrap();
    assert!(diff.contains("\n-  ksmConfiguration:\n-    nodeLabelSelector: {}\n"), "{diff}");
    assert!(diff.contains("\n+  ksmConfiguration: {}\n"), "{diff}");
    cluster.apply(NAME, off());
    assert!(!cluster.plan(NAME, off()).has_changes());
}

#[test]
fn page_merging_that_somebody_turns_on_again_is_noticed() {
    let off = || given(json!({"memoryToRequestRatio": 150}));
    let mut cluster = installed();
    cluster.apply(NAME, off());
    let before = cluster.plan(NAME, off());
    let object = cluster.find(&HYPER_CONVERGED, Some("openshift-cnv"), "kubevirt-hyperconverged");
    let mut object = object.unwrap().clone();
    object["spec"]["ksmConfiguration"] = json!({"nodeLabelSelector": {}});
    cluster.put(object);
    let after = cluster.plan(NAME, off());
    assert_ne!(before.items[1].fingerprint, after.items[1].fingerprint);
    assert_eq!((before.items[1].verb, after.items[1].verb), (Verb::Unchanged, Verb::Configured));
}

#[test]
fn page_merging_of_ours_is_turned_off_too() {
    let mut cluster = installed();
    cluster.apply(NAME, json!({}));
    let off = given(json!({"ksmConfiguration": {"enabled": false}}));
    assert_eq!(cluster.plan(NAME, off.clone()).items[1].verb, Verb::Configured);
    cluster.apply(NAME, off.clone());
    let after = cluster.find(&HYPER_CONVERGED, Some("openshift-cnv"), "kubevirt-hyperconverged").unwrap();
    assert_eq!(after.pointer("/spec/ksmConfiguration/nodeLabelSelector"), None);
    assert!(!cluster.plan(NAME, off).has_changes());
}

/// W3 (missed density changes), D26 (density default): and what was fixed is not.
#[test]
fn what_the_user_did_not_fix_is_an_input_too() {
    const RATIO: &str = "spec.higherWorkloadDensity.memoryOvercommitPercentage";
    const KSM: &str = "spec.ksmConfiguration";
    let fixed = given(json!({"memoryToRequestRatio": 150}));
    let cases: Vec<(&str, TestCluster, Value, Inputs)> = vec![
        ("nothing fixed", installed(), json!({}), vec![(RATIO, Some("100")), (KSM, None)]),
        (
            "nothing fixed, page merging on",
            TestCluster::with_descheduler("5.1").with(hyper_converged(
                "openshift-cnv",
                "v1beta1",
                json!({"ksmConfiguration": {"nodeLabelSelector": {}}}),
            )),
            json!({}),
            vec![(RATIO, None), (KSM, Some(r#"{"nodeLabelSelector":{}}"#))],
        ),
        ("options without either", installed(), given(json!({})), vec![(RATIO, Some("100")), (KSM, None)]),
        ("only page merging fixed", installed(), given(json!({"ksmConfiguration": {}})), vec![(RATIO, Some("100"))]),
        ("only swap fixed", installed(), no_swap(), vec![(RATIO, Some("100")), (KSM, None)]),
        ("only the ratio fixed", installed(), fixed, vec![(KSM, None)]),
        (
            "both fixed",
            installed(),
            given(json!({"memoryToRequestRatio": 150, "ksmConfiguration": {"enabled": false}})),
            vec![],
        ),
    ];
    for (case, cluster, options, expected) in cases {
        let input = |(path, value): (&str, Option<&str>)| PlanInput {
            source: "HyperConverged/kubevirt-hyperconverged".into(),
            path: path.into(),
            value: value.map(str::to_owned),
        };
        assert_eq!(density(&cluster, options).inputs, expected.into_iter().map(input).collect::<Vec<_>>(), "{case}");
    }
}

#[test]
fn version_1_of_hyper_converged_keeps_all_of_it_below_virtualization() {
    let spec = json!({"virtualization": {"ksmConfiguration": {"nodeLabelSelector": {}}}});
    let cluster =
        TestCluster::with_descheduler("5.1").serving_v1_only().with(hyper_converged("openshift-cnv", "v1", spec));
    let intent = density(&cluster, json!({}));
    assert_eq!(intent.version, "v1");
    let expected = json!({
        "apiVersion": "hco.kubevirt.io/v1",
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        "spec": {"virtualization": {
            "higherWorkloadDensity": {"memoryOvercommitPercentage": 150},
            "ksmConfiguration": {"nodeLabelSelector": {}},
        }},
    });
    assert_eq!(fields(&intent), &expected);
    let managed = [
        "spec.virtualization.higherWorkloadDensity.memoryOvercommitPercentage",
        "spec.virtualization.ksmConfiguration",
    ];
    assert_eq!(intent.managed, managed);
    assert_eq!(intent.inputs.iter().map(|input| input.path.as_str()).collect::<Vec<_>>(), managed);

    let off = density(&cluster, no_swap());
    assert_eq!(removed(&off), [Path::dotted("spec.virtualization.ksmConfiguration.nodeLabelSelector")]);
}

#[test]
fn the_object_that_is_there_is_the_one_that_is_configured() {
    let cluster =
        TestCluster::with_descheduler("5.1").with(hyper_converged("kubevirt-hyperconverged", "v1beta1", json!({})));
    let intent = density(&cluster, json!({}));
    assert_eq!(intent.target.to_string(), "HyperConverged kubevirt-hyperconverged/kubevirt-hyperconverged");
    assert_eq!(fields(&intent)["metadata"]["namespace"], "kubevirt-hyperconverged");
}
