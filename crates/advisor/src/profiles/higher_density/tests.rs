//! The rules of the profile, one table each.

mod autopilot;
mod density;
mod swap;

use api::virt_platform_config::{PlanInput, Severity};
use serde_json::{Value, json};

use super::HigherDensity;
use crate::{
    Change, Intent, Profile, Verb,
    kind::{HYPER_CONVERGED, MACHINE_CONFIG, MACHINE_CONFIG_POOL, MACHINE_CONFIGURATION},
    profile::missing,
    test_cluster::{self, TestCluster, machine_config, ours, planner, set_by},
};

const NAME: &str = "virt-higher-density";
const SWAP: &str = "90-worker-kubelet-swap";

/// The options of this profile, for a VirtPlatformConfig.
fn given(options: Value) -> Value {
    json!({"virtHigherDensity": options})
}

fn no_swap() -> Value {
    given(json!({"enableSwap": false}))
}

fn hyper_converged(namespace: &str, version: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("hco.kubevirt.io/{version}"),
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": namespace},
        "spec": spec,
    })
}

/// A cluster with OpenShift Virtualization as it is installed.
fn installed() -> TestCluster {
    let spec = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}});
    TestCluster::with_descheduler("5.1").with(hyper_converged("openshift-cnv", "v1beta1", spec))
}

fn fields(intent: &Intent) -> &Value {
    let Change::Apply { fields, .. } = &intent.change else { panic!("not an apply: {intent:?}") };
    fields
}

#[test]
fn the_plan_has_two_items_and_swap_comes_first() {
    let draft = installed().draft(NAME, Value::Null);
    assert_eq!(draft.notes, [""; 0]);
    let names: Vec<_> = draft.intents.iter().map(|intent| intent.name.to_string()).collect();
    assert_eq!(names, ["enable-kubelet-swap", "configure-higher-density"]);
    let targets: Vec<_> = draft.intents.iter().map(|intent| intent.target.to_string()).collect();
    let hco = "HyperConverged openshift-cnv/kubevirt-hyperconverged";
    assert_eq!(targets, ["MachineConfig 90-worker-kubelet-swap", hco]);
}

#[test]
fn the_profile_tells_what_it_is() {
    let about = HigherDensity.about();
    assert_eq!((about.name, about.category, about.impact, about.advertised), (NAME, "density", Severity::High, true));
    assert_eq!(about.description, "Enables higher VM density through swap and other optimizations");
    let summary = "Enables swap for kubelet to allow memory overcommit and higher VM density. \
                   Requires nodes with swap partition labeled CNV_SWAP.";
    assert_eq!(about.impact_summary, summary);
}

/// W37 (options as strings), D4 (ratio needs swap): the rule of swap holds where no schema was asked, too.
#[test]
fn options_that_no_schema_would_let_pass_are_refused() {
    let swap = "memoryToRequestRatio > 120 requires enableSwap=true";
    let range = "must be from 100 to 300";
    let cases = [
        (json!({"memoryToRequestRatio": 99}), Some((99, range))),
        (json!({"memoryToRequestRatio": 301}), Some((301, range))),
        (json!({"memoryToRequestRatio": 121, "enableSwap": false}), Some((121, swap))),
        (json!({"memoryToRequestRatio": 120, "enableSwap": false}), None),
        (json!({"memoryToRequestRatio": 100}), None),
        (json!({"memoryToRequestRatio": 300}), None),
        (json!({"enableSwap": false}), None),
    ];
    for (options, expected) in cases {
        let resolved = HigherDensity.resolve(test_cluster::options(given(options.clone())).as_ref());
        let error = resolved.err().map(|error| {
            assert_eq!(error.reason(), "InvalidOptions");
            error.to_string()
        });
        let expected = expected
            .map(|(value, rule)| format!("spec.options.virtHigherDensity.memoryToRequestRatio is {value}: {rule}"));
        assert_eq!(error, expected, "{options}");
    }
}

// --- what is required and what is asked ---

/// D20 (needed prerequisites only): without swap no MachineConfig.
#[test]
fn what_is_required_follows_from_the_options() {
    let config = "  - MachineConfig (machineconfiguration.openshift.io.v1): MachineConfig CRD is required for swap \
                  configuration (available on OpenShift)\n";
    let kind = "  - HyperConverged (hco.kubevirt.io.v1beta1): Install OpenShift Virtualization via OLM\n";
    let object =
        "  - HyperConverged openshift-cnv/kubevirt-hyperconverged: Create it to deploy OpenShift Virtualization\n";
    let upstream = || TestCluster::empty().with(hyper_converged("kubevirt-hyperconverged", "v1beta1", json!({})));
    let cases = [
        ("everything is there", installed(), json!({}), String::new()),
        (
            "nothing is",
            TestCluster::empty().without(&MACHINE_CONFIG).without(&HYPER_CONVERGED),
            json!({}),
            format!("{config}{kind}"),
        ),
        ("no nodes to configure", installed().without(&MACHINE_CONFIG), json!({}), config.to_owned()),
        ("the same, and none needed", installed().without(&MACHINE_CONFIG), no_swap(), String::new()),
        ("no virtualization", installed().without(&HYPER_CONVERGED), no_swap(), kind.to_owned()),
        ("not deployed: it is not ours to create", TestCluster::empty(), json!({}), object.to_owned()),
        ("deployed where the upstream project has it", upstream(), json!({}), String::new()),
    ];
    for (case, cluster, options, expected) in cases {
        let planner = planner(NAME, options);
        let facts = cluster.facts(planner.as_ref());
        let expected = (!expected.is_empty()).then(|| format!("Missing required dependencies:\n{expected}"));
        assert_eq!(missing(&planner.requirements(&facts), &facts), expected, "{case}");
    }
}

#[test]
fn no_more_is_asked_than_the_plan_depends_on_and_nothing_twice() {
    const HCO: &str = "HyperConverged openshift-cnv/kubevirt-hyperconverged";
    const UPSTREAM_HCO: &str = "HyperConverged kubevirt-hyperconverged/kubevirt-hyperconverged";
    const CONFIG: &str = "MachineConfig 90-worker-kubelet-swap";
    const POOLS: &str = "all machineconfigpools";
    const POLICY: &str = "MachineConfiguration cluster";
    let cases: Vec<(&str, TestCluster, Value, Vec<Vec<&str>>)> = vec![
        (
            "by default, with what tells how kubelets take swap",
            installed(),
            json!({}),
            vec![vec![HCO, CONFIG, POOLS, POLICY], vec!["MachineConfig rendered-worker"]],
        ),
        (
            "the version is asked for where the nodes' config does not tell",
            installed().with(machine_config("rendered-worker", json!({}))),
            json!({}),
            vec![
                vec![HCO, CONFIG, POOLS, POLICY],
                vec!["MachineConfig rendered-worker"],
                vec!["ClusterVersion version"],
            ],
        ),
        (
            "without swap, only the pools tell how far a removal is",
            installed(),
            no_swap(),
            vec![vec![HCO, CONFIG], vec![POOLS]],
        ),
        (
            "unless there is something to take back",
            installed().with(ours(machine_config(SWAP, json!({"config": {}})))),
            no_swap(),
            vec![vec![HCO, CONFIG], vec![POOLS, POLICY]],
        ),
        (
            "the second namespace is asked only after the first",
            TestCluster::empty(),
            no_swap(),
            vec![vec![HCO, CONFIG], vec![UPSTREAM_HCO, POOLS]],
        ),
        (
            "and not where the kind is unknown",
            TestCluster::empty().without(&HYPER_CONVERGED).without(&MACHINE_CONFIG),
            no_swap(),
            vec![vec![HCO, CONFIG]],
        ),
    ];
    for (case, cluster, options, expected) in cases {
        let (rounds, _) = cluster.rounds(planner(NAME, options).as_ref());
        assert_eq!(rounds, expected, "{case}");
    }
}

// --- impact ---

/// W16 (hidden reboots): nothing to change is Low, here too.
#[test]
fn impact_follows_from_what_would_change() {
    let severities = |cluster: &TestCluster, options: Value| -> Vec<(Verb, Severity)> {
        let plan = cluster.plan(NAME, options);
        plan.items.iter().map(|item| (item.verb, item.item.impact_severity.unwrap())).collect()
    };
    let mut cluster = installed();
    let expected = [(Verb::Created, Severity::High), (Verb::Configured, Severity::Medium)];
    assert_eq!(severities(&cluster, json!({})), expected, "fresh");
    cluster.apply(NAME, json!({}));
    let expected = [(Verb::Unchanged, Severity::Low), (Verb::Unchanged, Severity::Low)];
    assert_eq!(severities(&cluster, json!({})), expected, "applied");
    let expected = [(Verb::Deleted, Severity::High), (Verb::Configured, Severity::Medium)];
    assert_eq!(severities(&cluster, no_swap()), expected, "swap turned off");
    cluster.apply(NAME, no_swap());
    assert_eq!(severities(&cluster, no_swap()), [(Verb::Unchanged, Severity::Low)], "swap gone");
}

#[test]
fn a_policy_that_covers_all_of_it_spares_the_reboot() {
    let policies = |units: Value| {
        json!({
            "kind": "MachineConfiguration",
            "metadata": {"name": "cluster", "generation": 1},
            "status": {"observedGeneration": 1, "nodeDisruptionPolicyStatus": {"clusterPolicies": {
                "files": [
                    {"path": "/etc/find-swap-partition", "actions": [{"type": "None"}]},
                    {"path": "/etc/openshift/kubelet.conf.d", "actions": [{"type": "Restart"}]},
                ],
                "units": units,
            }}},
        })
    };
    let unit = |name: &str| json!({"name": name, "actions": [{"type": "DaemonReload"}, {"type": "Restart"}]});
    let both = json!([unit("swap-provision.service"), unit("cgroup-system-slice-config.service")]);
    let cases = [
        ("all covered", policies(both), Severity::Medium, false),
        ("one unit not covered", policies(json!([unit("swap-provision.service")])), Severity::High, true),
    ];
    for (case, policy, severity, reboot) in cases {
        let plan = installed().with(policy).plan(NAME, json!({}));
        let item = &plan.items[0].item;
        let reboots = item.impact_detail.as_ref().map(|detail| detail.reboot);
        assert_eq!((item.impact_severity, reboots), (Some(severity), Some(reboot)), "{case}");
    }
    let bare = installed().without(&MACHINE_CONFIG_POOL).without(&MACHINE_CONFIGURATION).plan(NAME, json!({}));
    assert_eq!(bare.items[0].item.impact_severity, Some(Severity::High), "nothing known: the worst");
}
