//! The limits of evictions: which setting each is derived from, and what an administrator fixes.

use super::*;

/// Paths, and the values found there.
type Inputs = Vec<(&'static str, Option<&'static str>)>;

#[test]
fn derived_limits_leave_room_for_migrations_that_people_start() {
    let table = [
        (1, 1),
        (5, 5),
        (9, 9),
        (10, 10),
        (11, 10),
        (12, 11),
        (13, 12),
        (15, 14),
        (20, 18),
        (25, 22),
        (50, 42),
        (100, 82),
    ];
    for (setting, limit) in table {
        assert_eq!(scaled(setting), limit, "{setting}");
        let cluster = TestCluster::with_descheduler("5.1")
            .with(hyper_converged("v1beta1", migrations(json!(setting), json!(setting))));
        let limits = &spec(&cluster, json!({}))["evictionLimits"];
        assert_eq!(limits, &json!({"total": limit, "node": limit}), "{setting}");
    }
    assert_eq!(scaled(i64::MAX), i64::MAX / 5 * 4 + 3, "a nonsensical setting is scaled like any other");
}

/// W19 (wrong culprit): one that is fixed leaves the other alone.
#[test]
fn each_limit_is_fixed_or_derived_on_its_own() {
    let cluster = "spec.liveMigrationConfig.parallelMigrationsPerCluster";
    let node = "spec.liveMigrationConfig.parallelOutboundMigrationsPerNode";
    let hco = |spec| TestCluster::with_descheduler("5.1").with(hyper_converged("v1beta1", spec));
    let (total, both) = (json!({"evictionLimitTotal": 40}), json!({"evictionLimitTotal": 40, "evictionLimitNode": 30}));
    let set = || migrations(json!(20), json!(12));
    let cases: Vec<(&str, TestCluster, Value, [i64; 2], Inputs)> = vec![
        ("both derived", hco(set()), json!({}), [18, 11], vec![(cluster, Some("20")), (node, Some("12"))]),
        ("total fixed", hco(set()), total, [40, 11], vec![(node, Some("12"))]),
        ("node fixed", hco(set()), json!({"evictionLimitNode": 30}), [18, 30], vec![(cluster, Some("20"))]),
        ("both fixed", hco(set()), both, [40, 30], vec![]),
        (
            "no HyperConverged",
            TestCluster::with_descheduler("5.1"),
            json!({}),
            [5, 2],
            vec![(cluster, None), (node, None)],
        ),
        (
            "no such kind",
            TestCluster::with_descheduler("5.1").without(&HYPER_CONVERGED),
            json!({}),
            [5, 2],
            vec![(cluster, None), (node, None)],
        ),
        ("nothing set", hco(json!({})), json!({}), [5, 2], vec![(cluster, None), (node, None)]),
        (
            "only one set",
            hco(json!({"liveMigrationConfig": {"parallelOutboundMigrationsPerNode": 1}})),
            json!({}),
            [5, 1],
            vec![(cluster, None), (node, Some("1"))],
        ),
        (
            "zero and less mean nothing",
            hco(migrations(json!(0), json!(-3))),
            json!({}),
            [5, 2],
            vec![(cluster, Some("0")), (node, Some("-3"))],
        ),
    ];
    for (case, cluster, options, [total, node], inputs) in cases {
        let intent = descheduler(&cluster, given(options));
        let limits = &fields(&intent)["spec"]["evictionLimits"];
        assert_eq!(limits, &json!({"total": total, "node": node}), "{case}");
        assert_eq!(intent.inputs, inputs_from_hco(&inputs), "{case}");
    }
}

/// Found by random edits: such a setting silently became its default.
#[test]
fn a_setting_from_which_no_limit_can_be_derived_is_named_with_what_is_assumed() {
    let notes = |total: Value, node: Value| {
        let cluster = TestCluster::with_descheduler("5.1").with(hyper_converged("v1beta1", migrations(total, node)));
        let notes = cluster.draft("load-aware-rebalancing", json!({})).notes;
        notes.into_iter().filter(|note| note.contains("parallel")).collect::<Vec<_>>()
    };
    for (total, node, expected) in [
        (
            json!(0),
            json!(2),
            vec![
                "spec.liveMigrationConfig.parallelMigrationsPerCluster of HyperConverged/kubevirt-hyperconverged is 0",
            ],
        ),
        (
            json!(5),
            json!(-1),
            vec![
                "spec.liveMigrationConfig.parallelOutboundMigrationsPerNode of HyperConverged/kubevirt-hyperconverged is -1",
            ],
        ),
        (
            json!("many"),
            json!(true),
            vec![
                "parallelMigrationsPerCluster of HyperConverged/kubevirt-hyperconverged is \"many\"",
                "parallelOutboundMigrationsPerNode of HyperConverged/kubevirt-hyperconverged is true",
            ],
        ),
        (json!(1), json!(100), vec![]),
    ] {
        let notes = notes(total.clone(), node.clone());
        assert_eq!(notes.len(), expected.len(), "{total} {node}: {notes:?}");
        for (note, expected) in notes.iter().zip(expected) {
            assert!(note.contains(expected) && note.contains("assumes its default"), "{note}");
        }
    }
}

fn inputs_from_hco(inputs: &[(&str, Option<&str>)]) -> Vec<PlanInput> {
    let input = |(path, value): &(&str, Option<&str>)| PlanInput {
        source: "HyperConverged/kubevirt-hyperconverged".into(),
        path: (*path).into(),
        value: value.map(str::to_owned),
    };
    inputs.iter().map(input).collect()
}

/// W1 (endless updates): what cannot be set cannot differ.
#[test]
fn a_limit_that_the_installed_version_lacks_has_no_input_either() {
    let cluster =
        TestCluster::with_descheduler("4.18").with(hyper_converged("v1beta1", migrations(json!(20), json!(12))));
    let intent = descheduler(&cluster, json!({}));
    assert_eq!(fields(&intent)["spec"]["evictionLimits"], json!({"total": 18}));
    let expected = [("spec.liveMigrationConfig.parallelMigrationsPerCluster", Some("20"))];
    assert_eq!(intent.inputs, inputs_from_hco(&expected));
}

#[test]
fn limits_are_found_where_version_1_of_hyper_converged_keeps_them() {
    let object = hyper_converged("v1", json!({"virtualization": migrations(json!(20), json!(12))}));
    let intent = descheduler(&TestCluster::with_descheduler("5.1").serving_v1_only().with(object), json!({}));
    assert_eq!(fields(&intent)["spec"]["evictionLimits"], json!({"total": 18, "node": 11}));
    let expected = [
        ("spec.virtualization.liveMigrationConfig.parallelMigrationsPerCluster", Some("20")),
        ("spec.virtualization.liveMigrationConfig.parallelOutboundMigrationsPerNode", Some("12")),
    ];
    assert_eq!(intent.inputs, inputs_from_hco(&expected));
}

/// W18 (unreadable as absent): HyperConverged is looked for where it may be.
#[test]
fn limits_are_found_in_the_upstream_namespace() {
    let mut object = hyper_converged("v1beta1", migrations(json!(8), json!(4)));
    object["metadata"]["namespace"] = "kubevirt-hyperconverged".into();
    let cluster = TestCluster::with_descheduler("5.1").with(object);
    assert_eq!(spec(&cluster, json!({}))["evictionLimits"], json!({"total": 8, "node": 4}));
}
