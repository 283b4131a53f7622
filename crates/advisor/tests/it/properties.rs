//! Properties of every plan, with any options in any cluster.

use advisor::{
    Change, Draft, Intent, Verb, access,
    kind::{HYPER_CONVERGED, MACHINE_CONFIG},
    kube_descheduler::Release,
    schema,
    test_cluster::{
        TestCluster, arbitrary, definition, machine_config, ours, pool, set_by, spec_schema, stored, unknown_fields,
    },
};
use api::names::FIELD_MANAGER;
use proptest::{prelude::*, sample::Index};
use serde_json::{Map, Value, json};

const LOAD_AWARE: &str = "load-aware-rebalancing";
const HIGHER_DENSITY: &str = "virt-higher-density";
const NAMESPACE: &str = "openshift-kube-descheduler-operator";

// --- arbitrary options and clusters ---

/// A map with some of the fields.
fn some_of(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            proptest::option::of(value).prop_map(move |value| value.map(|value| (name.to_owned(), value)))
        })
        .collect();
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>()))
}

fn one_of(values: &'static [&'static str]) -> BoxedStrategy<Value> {
    proptest::sample::select(values).prop_map(Value::from).boxed()
}

fn number(range: std::ops::RangeInclusive<i32>) -> BoxedStrategy<Value> {
    range.prop_map(Value::from).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

const THRESHOLDS: [&str; 6] = ["Low", "Medium", "High", "AsymmetricLow", "AsymmetricMedium", "AsymmetricHigh"];

pub(crate) fn load_aware_options() -> impl Strategy<Value = Value> {
    let options = some_of(vec![
        ("deschedulingIntervalSeconds", number(60..=86400)),
        ("mode", one_of(&["Automatic", "Predictive"])),
        ("enablePSIMetrics", flag()),
        ("devDeviationThresholds", one_of(&THRESHOLDS)),
        ("evictionLimitTotal", number(1..=1000)),
        ("evictionLimitNode", number(1..=100)),
    ]);
    prop_oneof![1 => Just(json!({})), 4 => options.prop_map(|options| json!({"loadAware": options}))]
}

pub(crate) fn higher_density_options() -> impl Strategy<Value = Value> {
    let labels =
        Just(json!({"matchLabels": {"ksm": "true"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}));
    let selector = prop_oneof![Just(json!({})), labels].boxed();
    let options = some_of(vec![
        ("enableSwap", flag()),
        ("memoryToRequestRatio", number(100..=120)),
        ("ksmConfiguration", some_of(vec![("enabled", flag()), ("nodeLabelSelector", selector)]).boxed()),
    ]);
    prop_oneof![1 => Just(json!({})), 4 => options.prop_map(|options| json!({"virtHigherDensity": options}))]
}

/// Who has set the object: nobody known, somebody else, the operator, or both.
fn owned(object: Value, owner: Index) -> Value {
    match owner.index(5) {
        0 => object,
        1 => set_by("kubectl", "Apply", object),
        2 => set_by("kubectl-edit", "Update", object),
        3 => ours(object),
        _ => set_by("kubectl-edit", "Update", ours(object)),
    }
}

/// An arbitrary descheduler, with fields that every version has and fields that none has.
fn live_descheduler() -> impl Strategy<Value = Value> {
    const PROFILES: [&str; 6] = [
        "AffinityAndTaints",
        "SoftTopologyAndDuplicates",
        "LifecycleAndUtilization",
        "TopologyAndDuplicates",
        "LongLifecycle",
        "KubeVirtRelieveAndMigrate",
    ];
    let profiles =
        proptest::collection::vec(proptest::sample::select(&PROFILES[..]), 0..5).prop_map(Value::from).boxed();
    let spec = some_of(vec![
        ("profiles", profiles),
        ("deschedulingIntervalSeconds", number(1..=3600)),
        ("mode", one_of(&["Automatic", "Predictive"])),
        ("managementState", one_of(&["Managed", "Unmanaged", "Removed"])),
        ("evictionLimits", some_of(vec![("total", number(-1..=20)), ("node", number(-1..=20))]).boxed()),
        (
            "profileCustomizations",
            some_of(vec![
                ("devEnableSoftTainter", flag()),
                ("devDeviationThresholds", one_of(&THRESHOLDS)),
                ("foreign", flag()),
            ])
            .boxed(),
        ),
        ("foreign", arbitrary::value().boxed()),
    ]);
    (spec, any::<Index>()).prop_map(|(spec, owner)| {
        let object = json!({
            "apiVersion": "operator.openshift.io/v1",
            "kind": "KubeDescheduler",
            "metadata": {"name": "cluster", "namespace": NAMESPACE},
            "spec": spec,
        });
        owned(object, owner)
    })
}

fn arguments() -> BoxedStrategy<Value> {
    let words = proptest::sample::select(&["psi=1", "psi=0", "psi", "quiet", "nosmt"][..]);
    proptest::collection::vec(words, 0..4).prop_map(Value::from).boxed()
}

fn live_config(name: &'static str) -> impl Strategy<Value = Value> {
    let config = Just(json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/etc/a"}]}})).boxed();
    let spec =
        some_of(vec![("kernelArguments", arguments()), ("kernelType", one_of(&["realtime"])), ("config", config)]);
    (spec, any::<Index>()).prop_map(move |(spec, owner)| owned(machine_config(name, spec), owner))
}

fn hyper_converged(version: &'static str) -> impl Strategy<Value = Value> {
    let migration = some_of(vec![
        ("parallelMigrationsPerCluster", number(-1..=300)),
        ("parallelOutboundMigrationsPerNode", number(-1..=50)),
    ]);
    let ksm = prop_oneof![Just(json!({})), Just(json!({"nodeLabelSelector": {}}))].boxed();
    let density = some_of(vec![("memoryOvercommitPercentage", number(50..=300))]).boxed();
    let settings = some_of(vec![
        ("liveMigrationConfig", migration.boxed()),
        ("ksmConfiguration", ksm),
        ("higherWorkloadDensity", density),
    ]);
    (settings, any::<Index>()).prop_map(move |(settings, owner)| {
        let spec = if version == "v1" { json!({"virtualization": settings}) } else { settings };
        let object = json!({
            "apiVersion": format!("hco.kubevirt.io/{version}"),
            "kind": "HyperConverged",
            "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
            "spec": spec,
        });
        owned(object, owner)
    })
}

/// A version of the descheduler, and an arbitrary cluster with it.
pub(crate) fn cluster() -> impl Strategy<Value = (&'static str, TestCluster)> {
    let version = proptest::sample::select(&["v1beta1", "v1"][..]).prop_flat_map(|version| {
        proptest::option::of(hyper_converged(version)).prop_map(move |object| (version, object))
    });
    let objects = (
        proptest::option::of(live_descheduler()),
        proptest::option::of(live_config("99-worker-psi-karg")),
        proptest::option::of(live_config("90-worker-kubelet-swap")),
        live_config("rendered-worker"),
        any::<bool>(),
    );
    (any::<Index>(), version, objects).prop_map(|(descheduler, (version, hco), objects)| {
        let descheduler = Release::ALL[descheduler.index(Release::ALL.len())].as_str();
        let (live, psi, swap, rendered, custom_pool) = objects;
        let gpu = custom_pool.then(|| pool("gpu", &["worker", "gpu"], 2));
        let definition = definition(if version == "v1" { "hyperconverged-v1" } else { "hyperconverged-v1beta1" });
        let cluster = TestCluster::with_descheduler(descheduler).with(definition);
        let cluster = if version == "v1" { cluster.serving_v1_only() } else { cluster };
        let found = [live, psi, swap, hco, gpu].into_iter().flatten().chain([rendered]);
        (descheduler, found.fold(cluster, TestCluster::with))
    })
}

/// Adds HyperConverged if there is none: virt-higher-density requires it.
pub(crate) fn with_hyper_converged(cluster: TestCluster) -> TestCluster {
    let version = cluster.version(&HYPER_CONVERGED);
    if cluster.find(&HYPER_CONVERGED, Some("openshift-cnv"), "kubevirt-hyperconverged").is_some() {
        return cluster;
    }
    cluster.with(json!({
        "apiVersion": format!("hco.kubevirt.io/{version}"),
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        "spec": {},
    }))
}

pub(crate) fn either() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        load_aware_options().prop_map(|options| (LOAD_AWARE, options)),
        higher_density_options().prop_map(|options| (HIGHER_DENSITY, options)),
    ]
}

/// The values of an object that its schema does not allow.
fn forbidden_values(value: &Value, schema: &Value) -> Vec<String> {
    let not_listed = |value: &Value, schema: &Value| {
        schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)).then(|| value.to_string())
    };
    match value {
        Value::Object(map) => {
            let below = |name: &String| schema.get("properties").and_then(|properties| properties.get(name));
            map.iter().filter_map(|(name, value)| Some(forbidden_values(value, below(name)?))).flatten().collect()
        }
        Value::Array(list) => list.iter().flat_map(|value| forbidden_values(value, &schema["items"])).collect(),
        scalar => not_listed(scalar, schema).into_iter().collect(),
    }
}

proptest! {
    #![proptest_config(arbitrary::cases(48))]

    #[test]
    fn a_plan_never_names_a_field_or_a_value_that_the_targets_schema_lacks(
        (descheduler, cluster) in cluster(),
        (profile, options) in either(),
    ) {
        let cluster = with_hyper_converged(cluster);
        for intent in cluster.draft(profile, options).intents {
            let Change::Apply { fields, .. } = intent.change else { continue };
            let definition = match intent.target.kind.kind {
                "KubeDescheduler" => definition(&format!("kubedescheduler-{descheduler}")),
                "HyperConverged" if intent.version == "v1" => definition("hyperconverged-v1"),
                "HyperConverged" => definition("hyperconverged-v1beta1"),
                _ => definition("machineconfig"),
            };
            let schema = spec_schema(&definition, intent.version);
            let Some(spec) = fields.get("spec") else { continue };
            prop_assert_eq!(unknown_fields(spec, schema), Vec::<String>::new(), "{}", fields);
            prop_assert_eq!(forbidden_values(spec, schema), Vec::<String>::new(), "{}", fields);
            for path in intent.managed {
                let path = path.strip_prefix("spec.").unwrap();
                prop_assert!(schema::field(schema, path).is_some(), "managed {}", path);
            }
        }
    }

    /// W1 (endless updates), D32 (all descheduler releases): on every version, with whatever is there.
    #[test]
    fn planning_again_after_applying_finds_nothing_to_change((_, cluster) in cluster(), (profile, options) in either()) {
        let mut cluster = with_hyper_converged(cluster);
        cluster.apply(profile, options.clone());
        let again = cluster.plan(profile, options);
        for planned in &again.items {
            prop_assert_eq!(planned.verb, Verb::Unchanged, "{}", planned.item.diff.clone().unwrap_or_default());
        }
        prop_assert_eq!(again.severity.as_str(), "Low");
    }

    #[test]
    fn nothing_is_changed_that_the_operator_is_not_granted((_, cluster) in cluster(), (profile, options) in either()) {
        let cluster = with_hyper_converged(cluster);
        let roles = access::operator();
        for Intent { target, change, .. } in cluster.draft(profile, options).intents {
            let live = cluster.find(target.kind, target.namespace, &target.name);
            let verbs: &[&str] = match change {
                Change::Delete => &["delete"],
                Change::Apply { .. } if live.is_some() => &["patch"],
                Change::Apply { .. } => &["create", "patch"],
            };
            for verb in verbs.iter().chain(&["get", "list", "watch"]) {
                let (group, resource) = (target.kind.group, target.kind.plural);
                let granted =
                    roles.iter().any(|role| role.allows(verb, group, resource, target.namespace, Some(&target.name)));
                prop_assert!(granted, "{} {}", verb, target);
            }
        }
    }

    #[test]
    fn nothing_is_deleted_that_others_had_a_part_in((_, cluster) in cluster(), (profile, options) in either()) {
        let cluster = with_hyper_converged(cluster);
        for intent in cluster.draft(profile, options).intents {
            if intent.change == Change::Delete {
                let live = cluster.find(&MACHINE_CONFIG, None, &intent.target.name).unwrap();
                let managers = live["metadata"]["managedFields"].as_array().unwrap();
                prop_assert!(managers.iter().all(|entry| entry["manager"] == FIELD_MANAGER), "{}", live);
            }
        }
    }

    /// W17 (overwritten settings): whatever is turned on and off.
    #[test]
    fn arguments_of_others_are_never_lost(
        (_, cluster) in cluster(),
        changes_of_mind in proptest::collection::vec(load_aware_options(), 1..4),
    ) {
        let others = |object: Option<&Value>| -> Vec<Value> {
            let list = object.and_then(|object| object.pointer("/spec/kernelArguments")).and_then(Value::as_array);
            let of_psi = |argument: &Value| argument.as_str().unwrap().split('=').next() == Some("psi");
            list.into_iter().flatten().filter(|argument| !of_psi(argument)).cloned().collect()
        };
        let before = cluster.find(&MACHINE_CONFIG, None, "99-worker-psi-karg").cloned();
        let mut cluster = cluster;
        for options in changes_of_mind {
            cluster.apply(LOAD_AWARE, options);
        }
        let after = cluster.find(&MACHINE_CONFIG, None, "99-worker-psi-karg");
        prop_assert_eq!(others(after), others(before.as_ref()));
    }

    /// W22 (foreign fields as drift): of a plan, too.
    #[test]
    fn a_foreign_field_changes_neither_digest_nor_snapshot(
        (descheduler, cluster) in cluster(),
        live in live_descheduler(),
        options in load_aware_options(),
        foreign in arbitrary::value(),
    ) {
        let mut live = stored(&definition(&format!("kubedescheduler-{descheduler}")), live);
        let cluster = cluster.with(live.clone());
        let before = cluster.plan(LOAD_AWARE, options.clone());
        live["spec"]["unsupportedConfigOverrides"] = foreign.clone();
        live["metadata"]["annotations"] = json!({"foreign": foreign.to_string()});
        live["metadata"]["resourceVersion"] = "7".into();
        let after = cluster.with(live).plan(LOAD_AWARE, options);
        prop_assert_eq!(before.snapshot, after.snapshot);
        prop_assert_eq!(before.digest, after.digest);
    }

    #[test]
    fn a_draft_depends_on_nothing_but_its_facts((_, cluster) in cluster(), (profile, options) in either()) {
        let cluster = with_hyper_converged(cluster);
        let draft: Draft = cluster.draft(profile, options.clone());
        prop_assert_eq!(&draft, &cluster.draft(profile, options));
        let mut names: Vec<_> = draft.intents.iter().map(|intent| intent.name.to_string()).collect();
        names.dedup();
        prop_assert_eq!(names.len(), draft.intents.len(), "names are unique");
    }
}
