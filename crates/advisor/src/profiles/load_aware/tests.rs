//! The rules of the profile, one table each.

mod autopilot;
mod descheduler;
mod effect;
mod limits;
mod psi;

use api::virt_platform_config::{PlanInput, Severity};
use serde_json::{Value, json};

use super::{LoadAware, descheduler::scaled};
use crate::{
    Change, Draft, Intent, Profile, Verb,
    fields::Path,
    kind::{HYPER_CONVERGED, KUBE_DESCHEDULER, MACHINE_CONFIG, MACHINE_CONFIG_POOL},
    kube_descheduler::Release,
    profile::missing,
    test_cluster::{self, ROLE, TestCluster, machine_config, ours, planner, pool, set_by},
};

const NAME: &str = "load-aware-rebalancing";
const PSI: &str = "99-worker-psi-karg";
const NAMESPACE: &str = "openshift-kube-descheduler-operator";

/// The options of this profile, for a VirtPlatformConfig.
fn given(options: Value) -> Value {
    json!({"loadAware": options})
}

fn no_psi() -> Value {
    given(json!({"enablePSIMetrics": false}))
}

fn hyper_converged(version: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("hco.kubevirt.io/{version}"),
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        "spec": spec,
    })
}

fn migrations(cluster: Value, node: Value) -> Value {
    json!({"liveMigrationConfig": {"parallelMigrationsPerCluster": cluster, "parallelOutboundMigrationsPerNode": node}})
}

fn live_descheduler(spec: Value) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": NAMESPACE},
        "spec": spec,
    })
}

/// The notes of a plan, but for the one that there is no operator in this cluster.
fn notes(draft: &Draft) -> Vec<&str> {
    draft.notes.iter().map(String::as_str).filter(|note| !note.starts_with("No operator reports")).collect()
}

fn psi_config(arguments: Value) -> Value {
    machine_config(PSI, json!({"kernelArguments": arguments}))
}

/// A pool whose nodes run what these machine configs were rendered to.
fn rendered_from(mut pool: Value, sources: &[&str]) -> Value {
    let source: Vec<_> = sources.iter().map(|name| json!({"kind": "MachineConfig", "name": name})).collect();
    pool["status"]["configuration"]["source"] = source.into();
    pool
}

fn fields(intent: &Intent) -> &Value {
    let Change::Apply { fields, .. } = &intent.change else { panic!("not an apply: {intent:?}") };
    fields
}

fn descheduler(cluster: &TestCluster, options: Value) -> Intent {
    cluster.draft(NAME, options).intents.pop().unwrap()
}

fn spec(cluster: &TestCluster, options: Value) -> Value {
    fields(&descheduler(cluster, options))["spec"].clone()
}

/// D19 (pressure metrics first): as the workflow guide prints it.
#[test]
fn the_plan_has_two_items_and_pressure_comes_first() {
    let draft = TestCluster::with_descheduler("5.1").draft(NAME, Value::Null);
    assert_eq!(notes(&draft), [""; 0]);
    let [psi, descheduler] = &draft.intents[..] else { panic!("{draft:?}") };

    assert_eq!(psi.name, "enable-psi-metrics");
    assert_eq!(psi.target.to_string(), "MachineConfig 99-worker-psi-karg");
    assert_eq!(psi.message, "MachineConfig '99-worker-psi-karg' will be configured to enable PSI metrics");
    assert_eq!(psi.managed, ["spec.kernelArguments"]);
    assert_eq!(psi.inputs, []);
    let expected = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"labels": {ROLE: "worker"}, "name": PSI},
        "spec": {"kernelArguments": ["psi=1"]},
    });
    assert_eq!(fields(psi), &expected);

    assert_eq!(descheduler.name, "enable-load-aware-descheduling");
    assert_eq!(descheduler.target.to_string(), "KubeDescheduler openshift-kube-descheduler-operator/cluster");
    let message = "KubeDescheduler 'cluster' will be configured with profile 'KubeVirtRelieveAndMigrate'";
    assert_eq!(descheduler.message, message);
    let expected = json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": NAMESPACE},
        "spec": {
            "deschedulingIntervalSeconds": 60,
            "evictionLimits": {"node": 2, "total": 5},
            "managementState": "Managed",
            "mode": "Automatic",
            "profileCustomizations": {
                "devDeviationThresholds": "AsymmetricLow",
                "devEnableEvictionsInBackground": true,
                "devEnableSoftTainter": true,
            },
            "profiles": ["KubeVirtRelieveAndMigrate"],
        },
    });
    assert_eq!(fields(descheduler), &expected);
}

#[test]
fn the_profile_tells_what_it_is() {
    let about = LoadAware.about();
    assert_eq!(
        (about.name, about.category, about.impact, about.advertised),
        (NAME, "scheduling", Severity::High, true)
    );
    let description = "Enables load-aware VM rebalancing and PSI metrics for intelligent scheduling";
    assert_eq!(about.description, description);
    assert_eq!(about.impact_summary, "Medium - May require node reboots if PSI metrics are enabled");
}

// --- what is required and what is asked ---

/// D20 (needed prerequisites only): what is turned off is not required, and what has a default is not either.
#[test]
fn what_is_required_follows_from_the_options() {
    let descheduler =
        "  - KubeDescheduler (operator.openshift.io.v1): Please install the Descheduler Operator via OLM\n";
    let config = "  - MachineConfig (machineconfiguration.openshift.io.v1): MachineConfig CRD is required for PSI metrics \
                  configuration (typically available on OpenShift)\n";
    let both = format!("{descheduler}{config}");
    let cases = [
        ("a cluster with everything", TestCluster::with_descheduler("5.1"), json!({}), None),
        ("nothing at all", bare(), json!({}), Some(both.as_str())),
        ("no pressure metrics, no need of nodes", bare(), no_psi(), Some(descheduler)),
        ("no descheduler", TestCluster::empty().without(&KUBE_DESCHEDULER), json!({}), Some(descheduler)),
        (
            "no nodes to configure",
            TestCluster::with_descheduler("5.1").without(&MACHINE_CONFIG),
            json!({}),
            Some(config),
        ),
        ("the same, and none needed", TestCluster::with_descheduler("5.1").without(&MACHINE_CONFIG), no_psi(), None),
        (
            "no HyperConverged: there are defaults",
            TestCluster::with_descheduler("5.1").without(&HYPER_CONVERGED),
            json!({}),
            None,
        ),
    ];
    for (case, cluster, options, expected) in cases {
        let planner = planner(NAME, options);
        let facts = cluster.facts(planner.as_ref());
        let expected = expected.map(|lines| format!("Missing required dependencies:\n{lines}"));
        assert_eq!(missing(&planner.requirements(&facts), &facts), expected, "{case}");
    }
}

/// Kubernetes, and nothing of OpenShift.
fn bare() -> TestCluster {
    TestCluster::empty()
        .without(&KUBE_DESCHEDULER)
        .without(&MACHINE_CONFIG)
        .without(&MACHINE_CONFIG_POOL)
        .without(&HYPER_CONVERGED)
}

const DESCHEDULER: &str = "KubeDescheduler openshift-kube-descheduler-operator/cluster";
const DEFINITION: &str = "CustomResourceDefinition kubedeschedulers.operator.openshift.io";
const OPERATOR: &str = "Deployment openshift-kube-descheduler-operator/descheduler-operator";
const HCO: &str = "HyperConverged openshift-cnv/kubevirt-hyperconverged";
const UPSTREAM_HCO: &str = "HyperConverged kubevirt-hyperconverged/kubevirt-hyperconverged";
const CONFIG: &str = "MachineConfig 99-worker-psi-karg";
const POOLS: &str = "all machineconfigpools";

#[test]
fn no_more_is_asked_than_the_plan_depends_on_and_nothing_twice() {
    let hco = || hyper_converged("v1beta1", migrations(json!(5), json!(2)));
    let off = |limits: Value| {
        let mut options = limits;
        options["enablePSIMetrics"] = false.into();
        given(options)
    };
    let cases: Vec<(&str, TestCluster, Value, Vec<Vec<&str>>)> = vec![
        (
            "by default, what the nodes run is asked as soon as the pools are known",
            TestCluster::with_descheduler("5.1").with(hco()),
            json!({}),
            vec![vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG, POOLS], vec!["MachineConfig rendered-worker"]],
        ),
        (
            "HyperConverged is looked for in the upstream namespace when it is not in the first",
            TestCluster::with_descheduler("5.1"),
            json!({}),
            vec![
                vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG, POOLS],
                vec![UPSTREAM_HCO, "MachineConfig rendered-worker"],
            ],
        ),
        (
            "but not where the kind is unknown",
            bare(),
            json!({}),
            vec![vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG, POOLS]],
        ),
        (
            "every pool that the argument would reach",
            TestCluster::with_descheduler("5.1").with(hco()).with(pool("gpu", &["worker", "gpu"], 1)),
            json!({}),
            vec![
                vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG, POOLS],
                vec!["MachineConfig rendered-worker", "MachineConfig rendered-gpu"],
            ],
        ),
        (
            "without pressure metrics, only the pools tell how far a removal is",
            TestCluster::with_descheduler("5.1").with(hco()),
            no_psi(),
            vec![vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG], vec![POOLS]],
        ),
        (
            "unless there is something to take back: then the pools tell how many nodes reboot",
            TestCluster::with_descheduler("5.1").with(hco()).with(ours(psi_config(json!(["psi=1"])))),
            no_psi(),
            vec![vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG], vec![POOLS]],
        ),
        (
            "with both limits fixed, HyperConverged still tells whether the autopilot is on",
            TestCluster::with_descheduler("5.1").with(hco()),
            off(json!({"evictionLimitTotal": 7, "evictionLimitNode": 3})),
            vec![vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG], vec![POOLS]],
        ),
        (
            "an operator that is there tells what it has deployed",
            TestCluster::with_descheduler("5.1").with(hco()).with(json!({"kind": "Deployment", "metadata": {
                "name": "descheduler-operator", "namespace": NAMESPACE,
            }})),
            no_psi(),
            vec![
                vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG],
                vec!["Deployment openshift-kube-descheduler-operator/descheduler", POOLS],
            ],
        ),
        (
            "configs that may overrule the argument",
            TestCluster::with_descheduler("5.1")
                .with(hco())
                .with(rendered_from(pool("worker", &["worker"], 3), &["00-a", "99-worker-ssh"])),
            json!({}),
            vec![
                vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG, POOLS],
                vec!["MachineConfig rendered-worker"],
                vec!["MachineConfig 99-worker-ssh"],
            ],
        ),
        (
            "where the autopilot is on, its MachineConfig tells whether people have opted out",
            autopilot::switched(TestCluster::with_descheduler("5.1"), "descheduler-loadaware"),
            json!({}),
            vec![
                vec![DESCHEDULER, DEFINITION, OPERATOR, HCO, CONFIG, POOLS],
                vec!["MachineConfig rendered-worker", "MachineConfig 99-openshift-machineconfig-worker-psi-karg"],
            ],
        ),
    ];
    for (case, cluster, options, expected) in cases {
        let (rounds, _) = cluster.rounds(planner(NAME, options).as_ref());
        assert_eq!(rounds, expected, "{case}");
    }
}

// --- impact ---

/// W16 (hidden reboots), D18 (descheduler impact): an item without changes is Low, and one that reboots is High.
#[test]
fn impact_follows_from_what_would_change() {
    let severities = |cluster: &TestCluster, options: Value| -> Vec<(String, Verb, Severity)> {
        let plan = cluster.plan(NAME, options);
        plan.items.iter().map(|item| (item.item.name.clone(), item.verb, item.item.impact_severity.unwrap())).collect()
    };
    let (psi, descheduler) = ("enable-psi-metrics".to_owned(), "enable-load-aware-descheduling".to_owned());
    let mut cluster = TestCluster::with_descheduler("5.1");
    let expected =
        [(psi.clone(), Verb::Created, Severity::High), (descheduler.clone(), Verb::Created, Severity::Medium)];
    assert_eq!(severities(&cluster, json!({})), expected, "new");

    cluster.apply(NAME, json!({}));
    let expected =
        [(psi.clone(), Verb::Unchanged, Severity::Low), (descheduler.clone(), Verb::Unchanged, Severity::Low)];
    assert_eq!(severities(&cluster, json!({})), expected, "applied");

    let slower = given(json!({"deschedulingIntervalSeconds": 600}));
    let expected =
        [(psi.clone(), Verb::Unchanged, Severity::Low), (descheduler.clone(), Verb::Configured, Severity::Low)];
    assert_eq!(severities(&cluster, slower), expected, "another interval");

    let expected = [(psi, Verb::Deleted, Severity::High), (descheduler, Verb::Unchanged, Severity::Low)];
    assert_eq!(severities(&cluster, no_psi()), expected, "no pressure metrics any more");
}

#[test]
fn a_removal_tells_which_nodes_reboot() {
    let mut cluster = TestCluster::with_descheduler("5.1").with(pool("gpu", &["worker", "gpu"], 2));
    cluster.apply(NAME, json!({}));
    let plan = cluster.plan(NAME, no_psi());
    let detail = plan.items[0].item.impact_detail.as_ref().unwrap();
    let pools: Vec<_> = detail.pools.iter().map(|pool| (pool.name.as_str(), pool.nodes)).collect();
    assert!(detail.reboot);
    assert_eq!(pools, [("worker", Some(3)), ("gpu", Some(2))]);
    cluster.apply(NAME, no_psi());
    assert_eq!(cluster.find(&MACHINE_CONFIG, None, PSI), None);
    assert!(!cluster.plan(NAME, no_psi()).has_changes());
}
