//! Whether what was applied is in effect: as the descheduler's operator and the pools tell it.

use api::virt_platform_config::Item;

use super::*;
use crate::{Effect, kind::DEPLOYMENT};

/// An effect, or a part of why there is none and whether that is a refusal.
type Expected = Result<Effect, (&'static str, bool)>;

fn effect(cluster: &TestCluster, item: &str) -> Effect {
    let planner = planner(NAME, Value::Null);
    let facts = cluster.facts(planner.as_ref());
    planner.effect(&Item { name: item.to_owned(), ..Item::default() }, &facts)
}

fn deployment(name: &str, difference: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "generation": 4},
        "spec": {"replicas": 1, "template": {"metadata": {"annotations": {
            "kubedeschedulers.operator.openshift.io/cluster": "7",
        }}}},
        "status": {"observedGeneration": 4, "updatedReplicas": 1, "availableReplicas": 1},
    });
    for (pointer, value) in difference.as_object().unwrap() {
        *object.pointer_mut(pointer).unwrap() = value.clone();
    }
    object
}

fn reported(status: Value) -> Value {
    let mut live = live_descheduler(json!({}));
    live["metadata"]["generation"] = 7.into();
    live["status"] = status;
    live
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"conditions": [
        {"type": "ConfigObservationDegraded", "status": "False"},
        {"type": kind, "status": status, "reason": reason, "message": message},
    ]})
}

/// Real operators, fourth in rank: Completed over a refusal.
#[test]
fn the_descheduler_is_in_effect_when_its_operator_has_taken_it() {
    const ITEM: &str = "enable-load-aware-descheduling";
    let psi = "profile KubeVirtRelieveAndMigrate can only be used when PSI metrics are enabled for the worker nodes";
    let degraded = "TargetConfigControllerDegraded";
    let fine = || condition(degraded, "False", "AsExpected", "");
    let operator = || deployment("descheduler-operator", json!({}));
    let cluster =
        |objects: Vec<Value>| objects.into_iter().fold(TestCluster::with_descheduler("5.1"), TestCluster::with);
    let operand = |difference: Value| deployment("descheduler", difference);
    let annotation = "/spec/template/metadata/annotations/kubedeschedulers.operator.openshift.io~1cluster";
    let cases: Vec<(&str, Vec<Value>, Expected)> = vec![
        ("nobody is there", vec![reported(Value::Null)], Ok(Effect::Unreported)),
        ("taken", vec![reported(fine()), operator(), operand(json!({}))], Ok(Effect::Confirmed)),
        ("said to be fine, and nothing else to see", vec![reported(fine())], Ok(Effect::Confirmed)),
        ("refused, the sentence in the reason", vec![reported(condition(degraded, "True", psi, ""))], Err((psi, true))),
        (
            "refused, the sentence in the message",
            vec![reported(condition("Degraded", "True", "X", psi))],
            Err((psi, true)),
        ),
        ("not available", vec![reported(condition("Available", "False", "", "no pods"))], Err(("no pods", true))),
        (
            "an operator that has not reported yet",
            vec![reported(Value::Null), operator()],
            Err(("not deployed", false)),
        ),
        (
            "an operator that has not seen it yet",
            vec![
                reported(json!({"observedGeneration": 6, "conditions": fine()["conditions"]})),
                operator(),
                operand(json!({})),
            ],
            Err(("at generation 6 of 7", false)),
        ),
        (
            "refused in the log only: what runs is of before",
            vec![reported(fine()), operator(), operand(json!({annotation: "6"}))],
            Err(("of generation 6 and not 7", false)),
        ),
        (
            "scaled to 0",
            vec![reported(fine()), operator(), operand(json!({"/spec/replicas": 0}))],
            Err(("to 0", false)),
        ),
        (
            "rolling",
            vec![reported(fine()), operator(), operand(json!({"/status/availableReplicas": 0}))],
            Err(("to be available", false)),
        ),
        (
            "its status is of before",
            vec![reported(fine()), operator(), operand(json!({"/metadata/generation": 5}))],
            Err(("to be available", false)),
        ),
    ];
    for (case, objects, expected) in cases {
        let found = effect(&cluster(objects), ITEM);
        match expected {
            Ok(expected) => assert_eq!(found, expected, "{case}"),
            Err((part, is_refused)) => {
                let (Effect::Pending(why) | Effect::Refused(why)) = &found else { panic!("{case}: {found:?}") };
                assert!(why.starts_with("KubeDescheduler 'cluster' ") && why.contains(part), "{case}: {why}");
                assert_eq!(matches!(found, Effect::Refused(_)), is_refused, "{case}");
            }
        }
    }
}

#[test]
fn that_nobody_will_confirm_it_is_noted_beforehand() {
    let notes = |cluster: TestCluster| cluster.draft(NAME, json!({})).notes;
    let found = notes(TestCluster::with_descheduler("5.1"));
    assert!(
        found[0].contains("there is no Deployment openshift-kube-descheduler-operator/descheduler-operator"),
        "{found:?}"
    );
    let operator = deployment("descheduler-operator", json!({}));
    assert_eq!(notes(TestCluster::with_descheduler("5.1").with(operator)), [""; 0]);
    let planner = planner(NAME, Value::Null);
    let mut facts = TestCluster::with_descheduler("5.1").facts(planner.as_ref());
    let operator = crate::ObjectRef::namespaced(&DEPLOYMENT, NAMESPACE, "descheduler-operator");
    facts.insert(crate::Query::Optional(operator), crate::Answer::Denied);
    assert!(planner.plan(&facts).notes[0].contains("may not be read"), "{:?}", planner.plan(&facts).notes);
}

/// A pool that runs our config and these others, with what they were rendered to.
fn pools_with(others: &[(&str, &str, &[&str])], arguments: &[&str]) -> TestCluster {
    let names: Vec<&str> = others.iter().map(|(name, ..)| *name).chain([PSI]).collect();
    let worker = rendered_from(pool("worker", &["worker", "gpu"], 3), &names);
    let cluster =
        TestCluster::with_descheduler("5.1").with(worker).with(test_cluster::rendered("rendered-worker", arguments));
    others.iter().fold(cluster.with(ours(psi_config(json!(["psi=1"])))), |cluster, (name, role, arguments)| {
        let mut config = machine_config(name, json!({"kernelArguments": arguments}));
        config["metadata"]["labels"][ROLE] = (*role).into();
        cluster.with(config)
    })
}

/// Real operators, fourth in rank: a config that is merged later wins.
#[test]
fn pressure_metrics_are_in_effect_when_the_rendered_arguments_end_in_them() {
    const ITEM: &str = "enable-psi-metrics";
    let off = |others: &[(&str, &str, &[&str])]| effect(&pools_with(others, &["psi=1", "psi=0"]), ITEM);
    assert_eq!(effect(&pools_with(&[], &["psi=0", "psi=1"]), ITEM), Effect::Confirmed);
    assert_eq!(
        effect(&pools_with(&[("99-worker-zzz", "worker", &["psi=0"])], &["psi=0 psi=1"]), ITEM),
        Effect::Confirmed
    );
    let refused = |effect: Effect| if let Effect::Refused(why) = effect { why } else { panic!("{effect:?}") };
    let why = refused(off(&[("99-worker-zzz", "worker", &["audit=0 psi=0"]), ("50-x", "worker", &["psi=0"])]));
    assert!(why.contains("MachineConfigPool 'worker'") && why.contains("'99-worker-zzz' is merged after"), "{why}");
    assert!(why.contains("'psi=0'"), "{why}");
    let why = refused(off(&[("99-worker-zzz", "worker", &["quiet"])]));
    assert!(why.ends_with("although it has taken in '99-worker-psi-karg'"), "nobody to blame: {why}");

    // Its own configs are merged last in a custom pool, whatever they are called.
    let mut gpu = rendered_from(pool("gpu", &["worker", "gpu"], 1), &["00-gpu", PSI]);
    gpu["status"]["configuration"]["name"] = "rendered-gpu".into();
    let mut config = machine_config("00-gpu", json!({"kernelArguments": ["psi=0"]}));
    config["metadata"]["labels"][ROLE] = "gpu".into();
    let cluster = pools_with(&[], &["psi=1"])
        .with(gpu)
        .with(config)
        .with(test_cluster::rendered("rendered-gpu", &["psi=1", "psi=0"]));
    let why = refused(effect(&cluster, ITEM));
    assert!(why.contains("MachineConfigPool 'gpu'") && why.contains("'00-gpu' is merged after"), "{why}");
}

#[test]
fn what_would_reboot_nodes_for_nothing_is_a_named_risk() {
    let risks = |cluster: &TestCluster| -> Vec<(String, String)> {
        cluster.draft(NAME, json!({})).risks.into_iter().map(|risk| (risk.name, risk.message)).collect()
    };
    assert_eq!(risks(&TestCluster::with_descheduler("5.1")), []);
    let mut worker = rendered_from(pool("worker", &["worker"], 3), &["00-worker", "99-worker-zzz"]);
    let overruling = machine_config("99-worker-zzz", json!({"kernelArguments": ["psi=0"]}));
    let found = risks(&TestCluster::with_descheduler("5.1").with(worker.clone()).with(overruling));
    assert_eq!(found[0].0, "PsiOverruled");
    assert!(found[0].1.contains("'99-worker-zzz' is merged after '99-worker-psi-karg'"), "{found:?}");

    worker["status"]["machineCount"] = 0.into();
    let found = risks(&TestCluster::with_descheduler("5.1").with(worker));
    assert_eq!(found[0].0, "NoMachineReached");
    assert!(found[0].1.contains("MachineConfigPool 'worker' has no machines"), "{found:?}");
    let none = risks(&TestCluster::with_descheduler("5.1").with(pool("worker", &["other"], 3)));
    assert!(none[0].1.contains("no MachineConfigPool takes it"), "{none:?}");
}
