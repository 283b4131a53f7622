//! In any state of a cluster: after a plan is carried out, the next plan has no changes.

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};
use testkit::platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config};

const CASES: usize = 24;

fn live_descheduler() -> impl Strategy<Value = Option<Value>> {
    let profiles = prop::sample::subsequence(
        vec!["AffinityAndTaints", "SoftTopologyAndDuplicates", "EvictPodsWithPVC", "LifecycleAndUtilization"],
        0..=4,
    );
    let customizations = prop_oneof![
        Just(json!({})),
        Just(json!({"devEnableSoftTainter": false, "namespaces": {"excluded": ["kube-system"]}})),
        Just(json!({"devDeviationThresholds": "High", "thresholdPriority": 7})),
    ];
    let limits = prop_oneof![Just(json!({})), Just(json!({"total": 1})), Just(json!({"node": 9, "total": 9}))];
    let spec = (profiles, customizations, limits, 60..90_000i32, prop::bool::ANY).prop_map(|(profiles, customizations, limits, interval, managed)| {
        let mut spec = json!({"profiles": profiles, "deschedulingIntervalSeconds": interval, "profileCustomizations": customizations, "evictionLimits": limits});
        if managed {
            spec["managementState"] = "Unmanaged".into();
        }
        spec
    });
    prop::option::weighted(0.8, spec)
}

fn live_arguments() -> impl Strategy<Value = Option<Vec<String>>> {
    let argument = prop::sample::select(vec!["psi=0", "psi=1", "psi", "quiet", "nosmt", "hugepages=4"]);
    prop::option::weighted(0.7, prop::collection::vec(argument.prop_map(str::to_owned), 0..5))
}

fn live_hco() -> impl Strategy<Value = Value> {
    let ksm = prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!({"nodeLabelSelector": {}})),
        Just(json!({"nodeLabelSelector": {"matchLabels": {"a": "b"}}})),
    ];
    (ksm, 1..60i32, 1..9i32, 10..250i32).prop_map(|(ksm, total, node, ratio)| {
        let mut spec = json!({
            "liveMigrationConfig": {"parallelMigrationsPerCluster": total, "parallelOutboundMigrationsPerNode": node},
            "higherWorkloadDensity": {"memoryOvercommitPercentage": ratio},
        });
        if !ksm.is_null() {
            spec["ksmConfiguration"] = ksm;
        }
        spec
    })
}

fn options() -> impl Strategy<Value = (Value, Value)> {
    let load_aware = prop_oneof![
        Just(Value::Null),
        Just(json!({"loadAware": {"enablePSIMetrics": false}})),
        Just(json!({"loadAware": {"mode": "Predictive", "evictionLimitTotal": 3}})),
        Just(
            json!({"loadAware": {"devDeviationThresholds": "Medium", "evictionLimitNode": 3, "deschedulingIntervalSeconds": 600}})
        ),
    ];
    let density = prop_oneof![
        Just(Value::Null),
        Just(json!({"virtHigherDensity": {}})),
        Just(json!({"virtHigherDensity": {"enableSwap": false}})),
        Just(
            json!({"virtHigherDensity": {"ksmConfiguration": {"nodeLabelSelector": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}}})
        ),
    ];
    (load_aware, density)
}

#[tokio::test]
async fn carrying_out_a_plan_and_planning_again_yields_no_changes() {
    let platform = Platform::shared().await;
    let strategy = (live_descheduler(), live_arguments(), live_hco(), prop::bool::ANY, options());
    let mut runner = TestRunner::deterministic();
    for case in 0..CASES {
        let (descheduler_spec, arguments, hco, updated, (load_aware, density)) =
            strategy.new_tree(&mut runner).unwrap().current();
        for name in ["99-worker-psi-karg", "90-worker-kubelet-swap"] {
            platform.delete(&machine_config(name, json!({}))).await;
        }
        platform.delete(&descheduler(json!({}))).await;
        platform.delete(&hyper_converged(json!({}))).await;
        // The managed fields of an apply and of an update differ.
        let manager = if updated { "kubectl-edit" } else { "argocd" };
        platform.apply("installer", &hyper_converged(json!({})), "").await;
        if updated {
            platform.patch(manager, &hyper_converged(hco.clone())).await;
        } else {
            platform.apply(manager, &hyper_converged(hco.clone()), "").await;
        }
        if let Some(spec) = &descheduler_spec {
            platform.apply(manager, &descheduler(spec.clone()), "").await;
        }
        if let Some(arguments) = &arguments {
            platform
                .apply(manager, &machine_config("99-worker-psi-karg", json!({"kernelArguments": arguments})), "")
                .await;
        }
        for (profile, options) in [(LOAD_AWARE, &load_aware), (DENSITY, &density)] {
            let plan = platform.plan_with(profile, options.clone()).await;
            let refusals: Vec<_> = plan.refusals().map(ToString::to_string).collect();
            assert!(refusals.is_empty(), "case {case}: {refusals:?}");
            platform.carry_out(&plan).await;
            let again = platform.plan_with(profile, options.clone()).await;
            let left: Vec<_> = again
                .items
                .iter()
                .filter_map(|planned| planned.item.diff.as_deref())
                .filter(|diff| !diff.contains("(no changes)"))
                .collect();
            assert!(
                left.is_empty(),
                "case {case}: {profile} {options} on {descheduler_spec:?} {arguments:?} {hco}\n{}",
                left.join("\n")
            );
        }
    }
}
