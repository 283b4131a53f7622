//! The descheduler: which profile, and whose settings stay.

use super::*;

#[test]
fn the_best_profile_that_the_installed_release_knows_is_chosen() {
    for release in Release::ALL {
        let profile = match release {
            Release::V4_17 => "LongLifecycle",
            Release::V4_18 | Release::V4_19 => "DevKubeVirtRelieveAndMigrate",
            Release::V4_20 | Release::V4_21 | Release::V5_1 => "KubeVirtRelieveAndMigrate",
        };
        let intent = descheduler(&TestCluster::with_descheduler(release.as_str()), json!({}));
        let spec = &fields(&intent)["spec"];
        let message = format!("KubeDescheduler 'cluster' will be configured with profile '{profile}'");
        assert_eq!(intent.message, message, "{release}");
        assert_eq!(spec["profiles"], json!([profile]), "{release}");

        let plain = ["spec.deschedulingIntervalSeconds", "spec.mode", "spec.profiles"];
        let full = [&plain[..], &["spec.profileCustomizations", "spec.evictionLimits"]].concat();
        let (managed, customized, limits) = match release {
            Release::V4_17 => (plain.to_vec(), false, Value::Null),
            Release::V4_18 => (full, true, json!({"total": 5})),
            _ => (full, true, json!({"total": 5, "node": 2})),
        };
        assert_eq!(intent.managed, managed, "{release}");
        assert_eq!(spec.get("profileCustomizations").is_some(), customized, "{release}");
        assert_eq!(spec.get("evictionLimits").cloned().unwrap_or_default(), limits, "{release}");
    }
}

/// Real operators, third in rank: without a metric, 4.18 compares requests and not load.
#[test]
fn load_is_measured_on_every_release_that_can() {
    for release in Release::ALL {
        let metric = &spec(&TestCluster::with_descheduler(release.as_str()), json!({}))["profileCustomizations"]["devActualUtilizationProfile"];
        let expected = if release == Release::V4_18 { json!("PrometheusCPUCombined") } else { Value::Null };
        assert_eq!(metric, &expected, "{release}");
    }
}

/// Real operators, last in rank: the reasons that people read differ where the effect does.
#[test]
fn the_plan_says_what_a_release_cannot_do() {
    let why = |release: Release| descheduler(&TestCluster::with_descheduler(release.as_str()), json!({})).why;
    let reasons: Vec<_> = Release::ALL.into_iter().map(why).collect();
    assert!(reasons[0].contains("does not see how busy"), "{reasons:?}");
    assert!(reasons[1..4].iter().all(|why| why.contains("whose processor is busy")), "{reasons:?}");
    assert!(reasons[4..].iter().all(|why| why.contains("away from busy nodes")), "{reasons:?}");
    for release in Release::ALL {
        let notes = TestCluster::with_descheduler(release.as_str()).draft(NAME, json!({})).notes;
        let says = notes.iter().any(|note| note.contains("most virtual machines will not move"));
        assert_eq!(says, release == Release::V4_17, "{release}: {notes:?}");
    }
}

/// Real operators, second in rank: two thresholds are refused, and nobody is told.
#[test]
fn a_field_that_is_refused_beside_ours_is_taken_out_and_its_owner_named() {
    const RIVAL: &str = "spec.profileCustomizations.devLowNodeUtilizationThresholds";
    for release in Release::ALL {
        let existing = json!({"profiles": ["LongLifecycle"], "profileCustomizations": {
            "devLowNodeUtilizationThresholds": "High", "thresholdPriority": 7, "namespaces": {"excluded": ["mine"]},
        }});
        let mut cluster =
            TestCluster::with_descheduler(release.as_str()).with(set_by("argocd", "Apply", live_descheduler(existing)));
        let planned = cluster.plan(NAME, no_psi()).items.remove(0);
        let removes: &[&str] = if release == Release::V4_17 { &[] } else { &[RIVAL] };
        assert_eq!(planned.item.removes, removes, "{release}");
        let is_named = planned
            .item
            .takes_over
            .iter()
            .any(|taken| taken.manager == "argocd" && taken.fields.contains(&RIVAL.to_owned()));
        assert_eq!(is_named, !removes.is_empty(), "{release}: {:?}", planned.item.takes_over);
        let diff = planned.item.diff.unwrap();
        assert_eq!(
            diff.contains("-    devLowNodeUtilizationThresholds: High\n"),
            !removes.is_empty(),
            "{release}: {diff}"
        );

        cluster.apply(NAME, no_psi());
        let live = cluster.find(&KUBE_DESCHEDULER, Some(NAMESPACE), "cluster").unwrap();
        let customizations = &live["spec"]["profileCustomizations"];
        assert_eq!(customizations["thresholdPriority"], 7, "{release}: nothing of ours excludes it");
        assert_eq!(customizations["namespaces"], json!({"excluded": ["mine"]}), "{release}");
        let both = ["devLowNodeUtilizationThresholds", "devDeviationThresholds"]
            .map(|name| customizations.get(name).is_some());
        assert_ne!(both, [true, true], "{release}");
        assert!(!cluster.plan(NAME, no_psi()).has_changes(), "{release}: and that is all");
    }
}

#[test]
fn the_fallback_takes_no_customizations_even_if_the_user_asks_for_them() {
    let options = json!({"devDeviationThresholds": "High", "evictionLimitTotal": 7, "evictionLimitNode": 3, "mode": "Predictive"});
    let expected = json!({
        "deschedulingIntervalSeconds": 60,
        "managementState": "Managed",
        "mode": "Predictive",
        "profiles": ["LongLifecycle"],
    });
    assert_eq!(spec(&TestCluster::with_descheduler("4.17"), given(options)), expected);
    assert_eq!(
        descheduler(&TestCluster::with_descheduler("4.17"), json!({})).inputs,
        [],
        "limits that are not set have no inputs"
    );
}

#[test]
fn customizations_that_the_installed_version_lacks_are_left_out() {
    let mut definition = test_cluster::definition("kubedescheduler-5.1");
    let customizations = "/schema/openAPIV3Schema/properties/spec/properties/profileCustomizations/properties";
    let known = definition["spec"]["versions"][0].pointer_mut(customizations).and_then(Value::as_object_mut);
    known.unwrap().remove("devEnableSoftTainter");
    let spec = spec(&TestCluster::with_descheduler("5.1").with(definition), json!({}));
    let expected = json!({"devDeviationThresholds": "AsymmetricLow", "devEnableEvictionsInBackground": true});
    assert_eq!(spec["profileCustomizations"], expected);
}

#[test]
fn the_schema_of_the_served_version_decides() {
    let mut definition = test_cluster::definition("kubedescheduler-5.1");
    let profiles = "/schema/openAPIV3Schema/properties/spec/properties/profiles/items";
    let set = |definition: &mut Value, items: Value| {
        *definition["spec"]["versions"][0].pointer_mut(profiles).unwrap() = items;
    };
    let chosen = |definition: &Value| {
        let cluster = TestCluster::with_descheduler("5.1").with(definition.clone());
        spec(&cluster, json!({}))["profiles"][0].as_str().unwrap().to_owned()
    };
    set(&mut definition, json!({"enum": ["LongLifecycle", "DevKubeVirtRelieveAndMigrate"]}));
    assert_eq!(chosen(&definition), "DevKubeVirtRelieveAndMigrate", "the order in the schema does not matter");
    set(&mut definition, json!({"enum": ["AffinityAndTaints"]}));
    assert_eq!(chosen(&definition), "KubeVirtRelieveAndMigrate", "none of ours is listed: the current name");
    set(&mut definition, json!({"type": "string"}));
    assert_eq!(chosen(&definition), "KubeVirtRelieveAndMigrate", "nothing is listed");
    definition["spec"]["versions"][0]["name"] = "v2".into();
    assert_eq!(chosen(&definition), "KubeVirtRelieveAndMigrate", "another version's schema tells nothing");
}

/// W17 (overwritten settings): duplicates would be refused.
#[test]
fn profiles_of_the_administrator_that_go_with_ours_are_kept_once_and_in_order() {
    let ours = "KubeVirtRelieveAndMigrate";
    let cases = [
        (json!([]), json!([ours])),
        (json!(["AffinityAndTaints"]), json!(["AffinityAndTaints", ours])),
        (
            json!(["SoftTopologyAndDuplicates", "AffinityAndTaints"]),
            json!(["SoftTopologyAndDuplicates", "AffinityAndTaints", ours]),
        ),
        (
            json!(["LifecycleAndUtilization", "TopologyAndDuplicates", "EvictPodsWithPVC", "CompactAndScale"]),
            json!([ours]),
        ),
        (
            json!(["AffinityAndTaints", "LifecycleAndUtilization", "SoftTopologyAndDuplicates"]),
            json!(["AffinityAndTaints", "SoftTopologyAndDuplicates", ours]),
        ),
        (
            json!(["AffinityAndTaints", "SoftTopologyAndDuplicates", "AffinityAndTaints"]),
            json!(["AffinityAndTaints", "SoftTopologyAndDuplicates", ours]),
        ),
        (json!(["AffinityAndTaints", ours]), json!(["AffinityAndTaints", ours])),
        (json!([ours, "AffinityAndTaints"]), json!(["AffinityAndTaints", ours])),
        (json!(["DevKubeVirtRelieveAndMigrate", "LongLifecycle"]), json!([ours])),
        (json!(null), json!([ours])),
    ];
    for (existing, expected) in cases {
        let cluster = TestCluster::with_descheduler("5.1").with(live_descheduler(json!({"profiles": existing})));
        assert_eq!(spec(&cluster, json!({}))["profiles"], expected, "{existing}");
    }
    let cluster =
        TestCluster::with_descheduler("4.17").with(live_descheduler(json!({"profiles": ["AffinityAndTaints", ours]})));
    assert_eq!(
        spec(&cluster, json!({}))["profiles"],
        json!(["AffinityAndTaints", "LongLifecycle"]),
        "after a downgrade"
    );
}

/// W8 (ignored options), D2 (descheduler mode): the mode among them.
#[test]
fn options_reach_the_descheduler() {
    let options = json!({
        "deschedulingIntervalSeconds": 1800,
        "mode": "Predictive",
        "devDeviationThresholds": "AsymmetricHigh",
        "evictionLimitTotal": 50,
        "evictionLimitNode": 12,
    });
    let spec = spec(&TestCluster::with_descheduler("5.1"), given(options));
    assert_eq!(spec["deschedulingIntervalSeconds"], 1800);
    assert_eq!(spec["mode"], "Predictive");
    assert_eq!(spec["profileCustomizations"]["devDeviationThresholds"], "AsymmetricHigh");
    assert_eq!(spec["evictionLimits"], json!({"total": 50, "node": 12}), "fixed limits are not scaled");
}

/// W37 (options as strings): refused, and not replaced by a default.
#[test]
fn options_that_no_schema_would_let_pass_are_refused() {
    let cases = [
        (
            json!({"deschedulingIntervalSeconds": 59}),
            Some("deschedulingIntervalSeconds is 59: must be from 60 to 86400"),
        ),
        (
            json!({"deschedulingIntervalSeconds": 86401}),
            Some("deschedulingIntervalSeconds is 86401: must be from 60 to 86400"),
        ),
        (json!({"deschedulingIntervalSeconds": 86400}), None),
        (json!({"evictionLimitTotal": 0}), Some("evictionLimitTotal is 0: must be from 1 to 1000")),
        (json!({"evictionLimitTotal": 1001}), Some("evictionLimitTotal is 1001: must be from 1 to 1000")),
        (json!({"evictionLimitNode": -1}), Some("evictionLimitNode is -1: must be from 1 to 100")),
        (json!({"evictionLimitNode": 101}), Some("evictionLimitNode is 101: must be from 1 to 100")),
        (json!({"evictionLimitTotal": 1000, "evictionLimitNode": 100}), None),
    ];
    for (options, expected) in cases {
        let resolved = LoadAware.resolve(test_cluster::options(given(options.clone())).as_ref());
        let error = resolved.err().map(|error| {
            assert_eq!(error.reason(), "InvalidOptions");
            error.to_string()
        });
        assert_eq!(error, expected.map(|text| format!("spec.options.loadAware.{text}")), "{options}");
    }
}

/// D16 (managementState): and it is not managed.
#[test]
fn the_management_state_is_set_on_creation_and_kept_only_while_it_is_ours() {
    let plain = || live_descheduler(json!({"mode": "Automatic"}));
    let managed = |state: &str| live_descheduler(json!({"managementState": state, "mode": "Automatic"}));
    let cases = [
        ("a new object", None, Some("Managed")),
        ("somebody's object without it", Some(plain()), None),
        ("our object without it", Some(ours(plain())), None),
        ("the administrator's value", Some(set_by("kubectl", "Apply", managed("Unmanaged"))), None),
        ("our value", Some(ours(managed("Managed"))), Some("Managed")),
        ("a value of ours from another time", Some(ours(managed("Removed"))), Some("Removed")),
        (
            "updated under our name, which is not how we write",
            Some(set_by("virt-advisor-operator", "Update", managed("Managed"))),
            None,
        ),
    ];
    for (case, live, expected) in cases {
        let cluster = live.into_iter().fold(TestCluster::with_descheduler("5.1"), TestCluster::with);
        let intent = descheduler(&cluster, json!({}));
        let state = fields(&intent)["spec"].get("managementState").and_then(Value::as_str);
        assert_eq!(state, expected, "{case}");
        assert!(
            !intent.managed.iter().any(|path| path == "spec.managementState"),
            "{case}: it is not watched for drift"
        );
    }
}

#[test]
fn an_administrators_management_state_survives_an_apply() {
    let live =
        set_by("kubectl", "Apply", live_descheduler(json!({"managementState": "Unmanaged", "mode": "Predictive"})));
    let mut cluster = TestCluster::with_descheduler("5.1").with(live);
    cluster.apply(NAME, no_psi());
    cluster.apply(NAME, no_psi());
    let after = cluster.find(&KUBE_DESCHEDULER, Some(NAMESPACE), "cluster").unwrap();
    assert_eq!(after["spec"]["managementState"], "Unmanaged");
    assert_eq!(after["spec"]["mode"], "Automatic");
}
