//! What shows that the autopilot manages an object, one table each.

use serde_json::{Value, json};

use super::{excluded::parse, *};
use crate::{Answer, test_cluster::set_by};

fn scope(annotation: &str) -> Scope {
    Scope::parse(Some(annotation))
}

fn listed_scope(names: &[&str]) -> Scope {
    Scope::Listed(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn the_annotation_names_everything_nothing_or_a_list() {
    assert_eq!(Scope::parse(None), Scope::Unset);
    let cases = [
        ("", Scope::Unset),
        ("  ", Scope::Unset),
        ("false", Scope::Off),
        (" false ", Scope::Off),
        ("true", Scope::Everything),
        (" true", Scope::Everything),
        ("swap-enable", listed_scope(&["swap-enable"])),
        (" swap-enable , descheduler-loadaware,", listed_scope(&["swap-enable", "descheduler-loadaware"])),
        (",", listed_scope(&[])),
        ("True", listed_scope(&["True"])),
        ("swap-enable,false", listed_scope(&["swap-enable", "false"])),
    ];
    for (annotation, expected) in cases {
        assert_eq!(scope(annotation), expected, "{annotation:?}");
    }
}

#[test]
fn a_scope_covers_assets_by_their_names_and_by_their_groups() {
    let assets = [Asset::descheduler(), Asset::psi(), Asset::swap(), Asset::hyper_converged(&Facts::default())];
    let cases = [
        ("", [false, false, false, false]),
        ("false", [false, false, false, false]),
        ("true", [true, true, true, true]),
        ("descheduler-loadaware", [true, true, false, false]),
        ("psi-enable", [false, true, false, false]),
        ("swap-enable", [false, false, true, false]),
        ("hco-golden-config,swap-enable", [false, false, true, true]),
        ("metallb-operator,mtv-operator", [false, false, false, false]),
        ("descheduler", [false, false, false, false]),
    ];
    for (annotation, expected) in cases {
        let covered = assets.each_ref().map(|asset| scope(annotation).covers(asset));
        assert_eq!(covered, expected, "{annotation:?}");
    }
}

fn hyper_converged(annotations: Value) -> Value {
    json!({"metadata": {"annotations": annotations, "name": "kubevirt-hyperconverged"}})
}

fn descheduler(labels: Value, annotations: Value) -> Value {
    json!({"metadata": {"labels": labels, "annotations": annotations, "name": "cluster"}, "spec": {"mode": "Automatic"}})
}

fn facts(hyper_converged: Option<Value>, object: Option<Value>) -> Facts {
    let answer = |object: Option<Value>| match object {
        Some(object) => Answer::Object { version: "v1beta1", object },
        None => Answer::Absent { version: "v1beta1" },
    };
    let [first, second] = crate::hyper_converged::locations();
    Facts::of([
        (Query::Object(first), answer(hyper_converged)),
        (Query::Object(second), Answer::Absent { version: "v1beta1" }),
        (Query::Object(Asset::descheduler().object), answer(object)),
    ])
}

/// What is known about the state, without the words.
#[derive(Debug, PartialEq)]
enum Kind {
    Uninvolved,
    Manages,
    Paused,
    OptedOut,
}

#[test]
fn an_object_is_managed_if_anything_shows_it_and_nothing_speaks_against_it() {
    let on = || Some(hyper_converged(json!({SWITCH: "true"})));
    let other = || Some(hyper_converged(json!({SWITCH: "swap-enable"})));
    let off = || Some(hyper_converged(json!({SWITCH: "false"})));
    let silent = || Some(hyper_converged(json!({})));
    let excluding =
        |list: &str| Some(hyper_converged(json!({SWITCH: "true", "platform.kubevirt.io/disabled-resources": list})));
    let plain = || Some(descheduler(json!({}), json!({})));
    let labeled = || Some(descheduler(json!({LABEL: MANAGER}), json!({})));
    let applied = || plain().map(|object| set_by(MANAGER, "Apply", object));
    let touched = || plain().map(|object| set_by(MANAGER, "Update", object));
    let told = |name: &str, value: &str| Some(descheduler(json!({LABEL: MANAGER}), json!({name: value})));
    let cases = [
        ("nothing shows it", silent(), plain(), Kind::Uninvolved),
        ("there is no HyperConverged", None, plain(), Kind::Uninvolved),
        ("switched on", on(), plain(), Kind::Manages),
        ("switched on, and not created yet", on(), None, Kind::Manages),
        ("switched on for something else", other(), plain(), Kind::Uninvolved),
        ("labeled", silent(), labeled(), Kind::Manages),
        ("labeled, while the list is of something else", other(), labeled(), Kind::Manages),
        (
            "labeled for somebody else",
            silent(),
            Some(descheduler(json!({LABEL: "other"}), json!({}))),
            Kind::Uninvolved,
        ),
        ("applied", silent(), applied(), Kind::Manages),
        ("applied, without any HyperConverged", None, applied(), Kind::Manages),
        ("updated, which is not how it writes", silent(), touched(), Kind::Uninvolved),
        ("labeled, and switched off since", off(), labeled(), Kind::Uninvolved),
        ("applied, and switched off since", off(), applied(), Kind::Uninvolved),
        ("unmanaged", on(), told(MODE, "unmanaged"), Kind::OptedOut),
        ("managed, in so many words", on(), told(MODE, "managed"), Kind::Manages),
        ("paused", on(), told(PAUSED, "true"), Kind::Paused),
        ("no longer paused", on(), told(PAUSED, "false"), Kind::Manages),
        ("excluded", excluding("- kind: KubeDescheduler\n  name: cluster\n"), labeled(), Kind::OptedOut),
        ("excluded before it exists", excluding("[{kind: KubeDescheduler, name: cluster}]"), None, Kind::OptedOut),
        ("something else is excluded", excluding("- kind: MachineConfig\n  name: cluster\n"), plain(), Kind::Manages),
        ("a list that nobody can read", excluding("- kind: [KubeDescheduler\n"), plain(), Kind::Manages),
    ];
    for (case, hyper_converged, object, expected) in cases {
        let state = AutopilotState::of(&Asset::descheduler(), &["spec.mode"], &facts(hyper_converged, object));
        let kind = match state {
            AutopilotState::Uninvolved => Kind::Uninvolved,
            AutopilotState::Manages(evidence) => {
                assert!(!evidence.is_empty(), "{case}");
                Kind::Manages
            }
            AutopilotState::Paused(_) => Kind::Paused,
            AutopilotState::OptedOut => Kind::OptedOut,
            AutopilotState::WritesOthers(_) => panic!("{case}: it writes the whole object"),
        };
        assert_eq!(kind, expected, "{case}");
    }
}

#[test]
fn the_evidence_names_the_annotation_the_label_and_the_fields() {
    let mut object = descheduler(json!({LABEL: MANAGER}), json!({}));
    object["spec"] = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6});
    let facts = facts(Some(hyper_converged(json!({SWITCH: "true"}))), Some(set_by(MANAGER, "Apply", object)));
    let AutopilotState::Manages(evidence) = AutopilotState::of(&Asset::descheduler(), &[""; 0], &facts) else {
        panic!("managed")
    };
    let expected = "HyperConverged openshift-cnv/kubevirt-hyperconverged has the annotation platform.kubevirt.io/autopilot: \
                    \"true\"; it has the label platform.kubevirt.io/managed-by; virt-platform-autopilot owns spec.a, spec.b, \
                    spec.c, spec.d and 2 more";
    assert_eq!(evidence, expected);
}

/// The autopilot labels HyperConverged and sets little there: only fields that both set are contested.
#[test]
fn in_hyper_converged_only_the_fields_of_the_plan_count() {
    let managed = ["spec.higherWorkloadDensity"];
    let state = |spec: Value| {
        let mut object = hyper_converged(json!({SWITCH: "true"}));
        object["spec"] = spec;
        let facts = facts(Some(set_by(MANAGER, "Apply", object)), None);
        AutopilotState::of(&Asset::hyper_converged(&facts), &managed, &facts)
    };
    let others = state(json!({"liveMigrationConfig": {"progressTimeout": 150}}));
    assert!(matches!(others, AutopilotState::WritesOthers(_)), "{others:?}");
    let ours = state(json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}}));
    assert!(matches!(&ours, AutopilotState::Manages(how) if how.contains("memoryOvercommitPercentage")), "{ours:?}");
}

#[test]
fn the_list_of_excluded_objects_is_yaml_with_patterns_or_pairs() {
    let object = Asset::descheduler().object;
    let config = Asset::psi().object;
    let cases = [
        ("", false, false),
        ("- kind: KubeDescheduler\n  name: cluster\n", true, false),
        ("- {kind: KubeDescheduler, name: cluster, namespace: openshift-kube-*}", true, false),
        ("- {kind: KubeDescheduler, name: cluster, namespace: other}", false, false),
        ("- kind: '*'\n  name: '*'\n", true, true),
        ("- kind: MachineConfig\n  name: 99-*-psi-karg\n", false, true),
        ("- kind: MachineConfig\n  name: 99-openshift-machineconfig-worker-psi-kar?\n", false, true),
        ("- kind: MachineConfig\n  name: 99-*-psi\n", false, false),
        ("- kind: kubedescheduler\n  name: cluster\n", false, false),
        ("KubeDescheduler/cluster, MachineConfig/50-swap-enable", true, false),
        ("KubeDescheduler", false, false),
        ("- name: cluster\n", false, false),
        ("{}", false, false),
    ];
    for (text, descheduler, psi) in cases {
        let excluded = [&object, &config].map(|object| parse(text).iter().any(|entry| entry.matches(object)));
        assert_eq!(excluded, [descheduler, psi], "{text:?}");
    }
}

#[test]
fn a_command_excludes_more_without_losing_what_is_excluded_and_ends_no_quote() {
    let list = "- kind: MachineConfig\n  name: it's mine\n";
    let annotations = json!({SWITCH: "true", "platform.kubevirt.io/disabled-resources": list});
    let facts = facts(Some(hyper_converged(annotations)), None);
    let command = excluded::exclude(&facts, &[&Asset::descheduler().object]);
    let expected = "kubectl annotate --overwrite hyperconverged kubevirt-hyperconverged -n openshift-cnv \
                    platform.kubevirt.io/disabled-resources='[{\"kind\":\"MachineConfig\",\"name\":\"it\\u0027s mine\"},\
                    {\"kind\":\"KubeDescheduler\",\"name\":\"cluster\",\"namespace\":\"openshift-kube-descheduler-operator\"}]'";
    assert_eq!(command, expected);
    let written = command.split('\'').nth(1).unwrap();
    let names: Vec<_> = parse(written).into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["it's mine", "cluster"], "and can be read again");
}

#[test]
fn a_changed_switch_is_told_with_both_values() {
    let inputs = |value: Option<&str>| {
        let annotations = value.map_or_else(|| json!({}), |value| json!({SWITCH: value}));
        input(&facts(Some(hyper_converged(annotations)), None)).into_iter().collect::<Vec<_>>()
    };
    let [set] = &inputs(Some("true"))[..] else { panic!("one input") };
    assert_eq!(set.source, "HyperConverged/kubevirt-hyperconverged");
    assert_eq!(set.path, "metadata.annotations[\"platform.kubevirt.io/autopilot\"]");
    for (before, after, expected) in [
        (None, None, None),
        (Some("true"), Some("true"), None),
        (None, Some("true"), Some("unset -> \"true\"")),
        (Some("true"), None, Some("\"true\" -> unset")),
        (Some("true"), Some("swap-enable"), Some("\"true\" -> \"swap-enable\"")),
    ] {
        let expected =
            expected.map(|values| format!("HCO annotation platform.kubevirt.io/autopilot changed ({values})"));
        assert_eq!(switched(&inputs(before), &inputs(after)), expected, "{before:?}, {after:?}");
    }
}
