//! Pressure metrics: added where they are missing, taken back where they are ours.

use super::*;

/// W16 (hidden reboots): no reboot for an argument that is in effect.
#[test]
fn nothing_is_added_where_pressure_metrics_are_on_already() {
    let on = |name: &str| machine_config(name, json!({"kernelArguments": ["quiet", "psi=1"]}));
    let off = |name: &str| machine_config(name, json!({"kernelArguments": ["psi=1", "psi=0"]}));
    let gpu = || pool("gpu", &["worker", "gpu"], 1);
    let note = |pools: &str| {
        format!("PSI metrics already effective in {pools} through another MachineConfig: '{PSI}' is not needed")
    };
    let worker = note("MachineConfigPool 'worker'");
    let both = note("MachineConfigPools 'worker', 'gpu'");
    let quiet = || psi_config(json!(["quiet"]));
    let relabeled = || {
        let mut config = psi_config(json!(["psi=1"]));
        config["metadata"]["labels"] = json!({ROLE: "infra"});
        config
    };
    let by = |sources: &[&str]| rendered_from(pool("worker", &["worker"], 3), sources);
    let base = || TestCluster::with_descheduler("5.1");
    let cases: Vec<(&str, TestCluster, Option<&str>)> = vec![
        ("off", base(), None),
        ("turned off again by a later argument", base().with(off("rendered-worker")), None),
        ("on", base().with(on("rendered-worker")), Some(&worker)),
        (
            "a pool without nodes yet has no rendered config",
            base().with(json!({
                "kind": "MachineConfigPool",
                "metadata": {"name": "worker"},
                "spec": {"machineConfigSelector": {"matchLabels": {ROLE: "worker"}}},
            })),
            None,
        ),
        ("no pools to look at", TestCluster::with_descheduler("5.1").without(&MACHINE_CONFIG_POOL), None),
        ("on in one pool of two", base().with(gpu()).with(on("rendered-worker")).with(off("rendered-gpu")), None),
        ("on in one pool, the other unknown", base().with(gpu()).with(on("rendered-worker")), None),
        ("on in both pools", base().with(gpu()).with(on("rendered-worker")).with(on("rendered-gpu")), Some(&both)),
        ("on in a pool that the argument would not reach", base().with(on("rendered-master")), None),
        (
            "on by another, while ours has other arguments",
            base().with(on("rendered-worker")).with(quiet()),
            Some(&worker),
        ),
        (
            "on by ours, which was just deleted: it is about to end",
            base().with(on("rendered-worker")).with(by(&["00-worker", PSI])),
            None,
        ),
        (
            "on by ours, from which the argument was just taken",
            base().with(on("rendered-worker")).with(by(&["00-worker", PSI])).with(quiet()),
            None,
        ),
        (
            "on by another, while ours is for other nodes",
            base().with(on("rendered-worker")).with(relabeled()),
            Some(&worker),
        ),
        ("off, while ours is for other nodes", base().with(relabeled()), None),
        (
            "on by another that is named",
            base().with(on("rendered-worker")).with(by(&["00-worker", "50-performance"])),
            Some(&worker),
        ),
    ];
    for (case, cluster, expected) in cases {
        let draft = cluster.draft(NAME, json!({}));
        let names: Vec<_> = draft.intents.iter().map(|intent| intent.name.to_string()).collect();
        match expected {
            Some(note) => {
                assert_eq!(notes(&draft), [note], "{case}");
                assert_eq!(names, ["enable-load-aware-descheduling"], "{case}");
            }
            None => {
                assert_eq!(notes(&draft), [""; 0], "{case}");
                assert_eq!(names, ["enable-psi-metrics", "enable-load-aware-descheduling"], "{case}");
            }
        }
    }
}

/// W17 (overwritten settings): the list is replaced as a whole, with theirs in it.
#[test]
fn arguments_that_others_put_into_the_config_are_kept() {
    let cases = [
        (json!([]), json!(["psi=1"])),
        (json!(["psi=1"]), json!(["psi=1"])),
        (json!(["quiet", "nosmt"]), json!(["quiet", "nosmt", "psi=1"])),
        (json!(["quiet", "psi=1", "nosmt"]), json!(["quiet", "psi=1", "nosmt"])),
        (json!(["psi=0", "quiet"]), json!(["quiet", "psi=1"])),
        (json!(["psi=1", "psi=0"]), json!(["psi=1"])),
        (json!(["psi=0", "psi=1"]), json!(["psi=0", "psi=1"])),
        (json!(["psi"]), json!(["psi=1"])),
        (json!(["psi_cgroup=off"]), json!(["psi_cgroup=off", "psi=1"])),
        (Value::Null, json!(["psi=1"])),
    ];
    for (existing, expected) in cases {
        let cluster = TestCluster::with_descheduler("5.1").with(psi_config(existing.clone()));
        let draft = cluster.draft(NAME, json!({}));
        assert_eq!(fields(&draft.intents[0])["spec"]["kernelArguments"], expected, "{existing}");
    }
}

#[test]
fn the_message_says_whether_the_argument_is_in_effect() {
    let on = || machine_config("rendered-worker", json!({"kernelArguments": ["psi=1"]}));
    let worker = || rendered_from(pool("worker", &["worker"], 3), &["00-worker", PSI]);
    let will = "MachineConfig '99-worker-psi-karg' will be configured to enable PSI metrics";
    let cases = [
        ("new", TestCluster::with_descheduler("5.1"), will),
        ("there, nodes not there yet", TestCluster::with_descheduler("5.1").with(psi_config(json!(["psi=1"]))), will),
        (
            "there and in effect",
            TestCluster::with_descheduler("5.1").with(psi_config(json!(["psi=1"]))).with(on()).with(worker()),
            "PSI metrics already effective in MachineConfigPool 'worker'",
        ),
        (
            "in effect, and undone",
            TestCluster::with_descheduler("5.1").with(psi_config(json!(["psi=0"]))).with(on()).with(worker()),
            will,
        ),
    ];
    for (case, cluster, expected) in cases {
        assert_eq!(cluster.draft(NAME, json!({})).intents[0].message, expected, "{case}");
    }
}

/// W14 (leftover MachineConfig): deleted, or taken out of what others use too.
#[test]
fn turned_off_what_is_ours_is_taken_back_and_nothing_else() {
    let base = || TestCluster::with_descheduler("5.1");
    let deleted = "MachineConfig '99-worker-psi-karg' will be deleted to disable PSI metrics";
    let taken_out = "'psi=1' will be taken out of MachineConfig '99-worker-psi-karg' to disable PSI metrics";
    let labeled = set_by(
        "kubectl",
        "Update",
        json!({
            "kind": "MachineConfig",
            "metadata": {"labels": {"team": "virt"}, "name": PSI},
        }),
    );
    let with_label = |mut object: Value| {
        let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap();
        entries.extend(labeled["metadata"]["managedFields"].as_array().cloned().unwrap());
        object["metadata"]["managedFields"] = entries.into();
        object
    };
    let cases = [
        ("nothing there", None, None),
        ("ours", Some(ours(psi_config(json!(["psi=1"])))), Some((deleted, None))),
        ("ours, labeled by somebody", Some(with_label(ours(psi_config(json!(["psi=1"]))))), Some((deleted, None))),
        ("ours, and nothing of ours is left in it", Some(ours(psi_config(json!(["quiet"])))), None),
        (
            "ours by now, but some arguments are not: we never add any but one",
            Some(ours(psi_config(json!(["quiet", "psi=1"])))),
            Some((taken_out, Some(json!(["quiet"])))),
        ),
        (
            "shared: the arguments of others stay",
            Some(set_by("kubectl-edit", "Update", ours(psi_config(json!(["quiet", "psi=1"]))))),
            Some((taken_out, Some(json!(["quiet"])))),
        ),
        (
            "shared: what somebody else said of pressure metrics stays",
            Some(set_by("kubectl-edit", "Update", ours(psi_config(json!(["psi=0", "psi=1"]))))),
            Some((taken_out, Some(json!(["psi=0"])))),
        ),
    ];
    for (case, live, expected) in cases {
        let cluster = live.into_iter().fold(base(), TestCluster::with);
        let draft = cluster.draft(NAME, no_psi());
        assert_eq!(notes(&draft), [""; 0], "{case}");
        let (psi, descheduler) = draft.intents.split_at(draft.intents.len() - 1);
        assert_eq!(descheduler[0].name, "enable-load-aware-descheduling", "{case}");
        let found = psi.first().map(|intent| {
            assert_eq!(
                (intent.name.as_ref(), intent.managed.concat().as_str()),
                ("enable-psi-metrics", "spec.kernelArguments"),
                "{case}"
            );
            let arguments = match &intent.change {
                Change::Delete => None,
                Change::Apply { fields, .. } => fields.pointer("/spec/kernelArguments").cloned(),
            };
            (intent.message.as_str(), arguments)
        });
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn the_list_goes_when_ours_was_the_only_argument_in_a_config_of_several_owners() {
    let mut live = psi_config(json!(["psi=1"]));
    live["spec"]["kernelType"] = "realtime".into();
    let cluster = TestCluster::with_descheduler("5.1").with(set_by("kubectl-edit", "Update", ours(live)));
    let draft = cluster.draft(NAME, no_psi());
    let Change::Apply { fields, remove } = &draft.intents[0].change else { panic!("{draft:?}") };
    assert_eq!(fields.get("spec"), None);
    assert_eq!(remove, &[Path::dotted("spec.kernelArguments")]);
    let plan = cluster.plan(NAME, no_psi());
    assert_eq!(plan.items[0].item.removes, ["spec.kernelArguments"]);
    assert_eq!(plan.items[0].verb, Verb::Configured);
    assert_eq!(plan.items[0].item.impact_severity, Some(Severity::High));
}

#[test]
fn a_config_that_was_there_before_us_survives_us() {
    for arguments in [json!(["quiet"]), json!(["psi=1"]), json!(["psi=1", "quiet"]), json!(["psi=0"])] {
        let mut cluster =
            TestCluster::with_descheduler("5.1").with(set_by("kubectl", "Apply", psi_config(arguments.clone())));
        cluster.apply(NAME, json!({}));
        cluster.apply(NAME, no_psi());
        cluster.apply(NAME, no_psi());
        let after = cluster.find(&MACHINE_CONFIG, None, PSI);
        let kept = |argument: &&Value| !argument.as_str().unwrap().starts_with("psi");
        let kept: Vec<_> = arguments.as_array().unwrap().iter().filter(kept).cloned().collect();
        if !kept.is_empty() {
            assert_eq!(after.unwrap()["spec"]["kernelArguments"], json!(kept), "{arguments}");
        }
        assert!(!cluster.plan(NAME, no_psi()).has_changes(), "{arguments}");
    }
}

/// W14 (leftover MachineConfig): nothing stays behind without a word.
#[test]
fn turned_off_what_is_not_ours_stays_and_the_plan_says_so() {
    let note = |owner: &str| {
        format!("MachineConfig '{PSI}' belongs to {owner} and is left alone: PSI metrics stay as they are")
    };
    let label_only = {
        let mut object = set_by("argocd", "Apply", psi_config(json!(["psi=1"])));
        let entry = json!({"manager": "virt-advisor-operator", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {(format!("f:{ROLE}")): {}}}}});
        object["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
        object
    };
    let cases = [
        ("somebody's", set_by("argocd", "Apply", psi_config(json!(["psi=1"]))), note("argocd")),
        ("nobody's", psi_config(json!(["psi=1"])), note("somebody else")),
        ("ours is a label at most", label_only, note("argocd")),
    ];
    for (case, live, expected) in cases {
        let draft = TestCluster::with_descheduler("5.1").with(live).draft(NAME, no_psi());
        assert_eq!(notes(&draft), [&expected], "{case}");
        assert_eq!(draft.intents.len(), 1, "{case}");
    }
}

#[test]
fn without_machine_configs_there_is_nothing_to_turn_off() {
    let draft = TestCluster::with_descheduler("5.1").without(&MACHINE_CONFIG).draft(NAME, no_psi());
    assert_eq!((draft.intents.len(), notes(&draft).len()), (1, 0));
}
