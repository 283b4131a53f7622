//! Definitions that are installed, removed and upgraded while the operator runs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{DENSITY_ITEM, DESCHEDULER, limits, no_psi, no_swap};
use testkit::{
    configs::{condition, item, phase, reason},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged},
    running_operator::RunningOperator,
};

const DRIFT: &str = "InputDependencyDrift";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn missing(config: &Value) -> &str {
    let told = condition(config, "PrerequisiteFailed");
    if told["status"] == "True" { told["message"].as_str().unwrap() } else { "" }
}

async fn namespace(platform: &Platform, name: &str) {
    platform.apply("admin", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}), "").await;
}

/// Starts an operator on a platform with this KubeDescheduler definition and a HyperConverged.
async fn start_with(definition: &str) -> (Platform, RunningOperator) {
    let platform = Platform::with(&[definition, "hyperconverged-v1beta1.yaml"]).await;
    platform.install().await;
    namespace(&platform, "openshift-kube-descheduler-operator").await;
    namespace(&platform, "openshift-cnv").await;
    platform.apply("admin", &hyper_converged(json!({})), "").await;
    let operator = RunningOperator::start(&platform).await;
    (platform, operator)
}

/// W33 (no early impact), W39 (exit on new definition): in one process, and with an impact before there is a plan.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_the_plan_goes_on_as_soon_as_it_appears() {
    let platform = Platform::with(&[]).await;
    // Our own definition may be installed after the start, too.
    let operator = RunningOperator::start(&platform).await;
    platform.install().await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let waiting = platform.until_phase(LOAD_AWARE, "PrerequisiteFailed").await;
    let descheduler_missing =
        "  - KubeDescheduler (operator.openshift.io.v1): Please install the Descheduler Operator via OLM\n";
    let config_missing = "  - MachineConfig (machineconfiguration.openshift.io.v1): MachineConfig CRD is required for \
                          PSI metrics configuration (typically available on OpenShift)\n";
    let list = "Missing required dependencies:\n";
    assert_eq!(missing(&waiting), format!("{list}{descheduler_missing}{config_missing}"));
    assert_eq!(reason(&waiting, "PrerequisiteFailed"), "PrerequisiteFailed");
    assert_eq!(condition(&waiting, "Drafting")["reason"], "PrerequisitesFailed");
    assert_eq!(waiting["status"]["impactSeverity"], "High", "what the profile may do, as long as there is no plan");

    // The case of the reference: only the descheduler is missing. The plan does not wait for the next recheck.
    platform.define("machineconfig.yaml").await;
    platform.define("machineconfigpool.yaml").await;
    let shorter = format!("{list}{descheduler_missing}");
    platform.until(LOAD_AWARE, "told less", |config| missing(config) == shorter).await;

    platform.define("kubedescheduler-5.1.yaml").await;
    let no_namespace = |config: &Value| reason(config, "PrerequisiteFailed") == "NamespaceMissing";
    let waiting = platform.until(LOAD_AWARE, "without a namespace", no_namespace).await;
    assert!(missing(&waiting).contains("namespace openshift-kube-descheduler-operator does not exist"));
    operator.stop().await;

    // Namespaces are not watched: this takes until the next recheck.
    let operator = RunningOperator::rechecking_every(&platform, Duration::from_millis(300)).await;
    namespace(&platform, "openshift-kube-descheduler-operator").await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    operator.stop().await;

    // Without HyperConverged its defaults count. When it is installed later, there is a new plan.
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    namespace(&platform, "openshift-cnv").await;
    platform.define("hyperconverged-v1beta1.yaml").await;
    platform.apply("admin", &limits(10, 2), "").await;
    let forced = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let why = "Input dependency changed: HCO parallelMigrationsPerCluster changed (scaled 5 -> 10)";
    assert_eq!(condition(&forced, DRIFT)["message"], why);
    operator.stop().await;
}

/// W39 (exit on new definition): going is noticed as well as coming.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_upgraded_or_vanishes_leads_to_a_new_plan_and_a_forced_review() {
    let (platform, operator) = start_with("kubedescheduler-4.18.yaml").await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    let mark = platform.mark().await;

    platform.define("kubedescheduler-5.1.yaml").await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(condition(&review, DRIFT)["status"], "True");
    let diff = item(&review, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("+    node: 2\n"), "{diff}");
    assert!(diff.contains("-  - DevKubeVirtRelieveAndMigrate\n+  - KubeVirtRelieveAndMigrate\n"), "{diff}");
    assert_eq!(platform.changes_since(mark).await, [""; 0], "although the action is Apply");
    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    let live = platform.get(&descheduler(Value::Null)).await;
    assert_eq!(live["spec"]["profiles"], json!(["KubeVirtRelieveAndMigrate"]));

    let crd = format!("{CRDS}/kubedeschedulers.operator.openshift.io");
    platform.request("DELETE", &crd, None, Value::Null).await;
    let gone = platform.until_phase(LOAD_AWARE, "PrerequisiteFailed").await;
    assert!(missing(&gone).contains("Please install the Descheduler Operator via OLM"), "{gone:#}");
    eventually("the definition is gone", async || {
        let request = http::Request::get(&crd).body(Vec::new()).unwrap();
        platform.client.request::<Value>(request).await.is_err().then_some(())
    })
    .await;
    let mark = platform.mark().await;
    platform.define("kubedescheduler-5.1.yaml").await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(condition(&review, DRIFT)["status"], "True");
    assert_eq!(platform.changes_since(mark).await, [""; 0], "nothing is created behind anybody's back");
    platform.configure(LOAD_AWARE, json!({"waitTimeout": "2h"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert!(platform.find(&descheduler(Value::Null)).await.is_some());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_in_review_follows_a_component_that_is_upgraded_meanwhile() {
    let (platform, operator) = start_with("kubedescheduler-4.19.yaml").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": no_psi()})).await;
    let old = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let profiles = |config: &Value| item(config, DESCHEDULER).pointer("/desiredState/spec/profiles").cloned();
    assert_eq!(profiles(&old), Some(json!(["DevKubeVirtRelieveAndMigrate"])));
    platform.define("kubedescheduler-5.1.yaml").await;
    let follows = |config: &Value| profiles(config) == Some(json!(["KubeVirtRelieveAndMigrate"]));
    platform.until(LOAD_AWARE, "planned for what is installed now", follows).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hyper_converged_is_followed_into_its_new_version() {
    let (platform, operator) = start_with("kubedescheduler-5.1.yaml").await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    platform.complete(DENSITY, json!({"options": no_swap()}), &[]).await;
    let mark = platform.mark().await;

    // Both versions are served for a while, and the old one is used.
    platform.define("hyperconverged-v1beta1-v1.yaml").await;
    platform.patch("admin", &limits(6, 2)).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let old = "spec.liveMigrationConfig.parallelMigrationsPerCluster";
    assert_eq!(review.pointer("/status/inputs/0/path"), Some(&json!(old)));
    platform.patch("admin", &limits(5, 2)).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(phase(&platform.config(DENSITY).await), "Completed");

    only_v1(&platform).await;
    // The limits are the same: only their path in the plan changes.
    let path = "spec.virtualization.liveMigrationConfig.parallelMigrationsPerCluster";
    let followed = |config: &Value| config.pointer("/status/inputs/0/path") == Some(&json!(path));
    let config = platform.until(LOAD_AWARE, "followed", followed).await;
    assert_eq!(phase(&config), "Completed");
    // This plan would write another path with the same effect.
    let followed = |config: &Value| item(config, DENSITY_ITEM)["targetRef"]["apiVersion"] == "hco.kubevirt.io/v1";
    platform.until(DENSITY, "followed", followed).await;
    let config = platform.until_phase(DENSITY, "Completed").await;
    assert_eq!(item(&config, DENSITY_ITEM)["message"], "Already in desired state");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    let mut new = hyper_converged(json!({"virtualization": {
        "liveMigrationConfig": {"parallelMigrationsPerCluster": 8},
        "higherWorkloadDensity": {"memoryOvercommitPercentage": 200},
    }}));
    new["apiVersion"] = "hco.kubevirt.io/v1".into();
    platform.patch("admin", &new).await;
    for (profile, why) in [
        (LOAD_AWARE, "HCO parallelMigrationsPerCluster changed (scaled 5 -> 8)"),
        (DENSITY, "HCO memoryOvercommitPercentage changed (120 -> 200)"),
    ] {
        let review = platform.until_phase(profile, "ReviewRequired").await;
        assert_eq!(condition(&review, DRIFT)["message"], format!("Input dependency changed: {why}"));
    }
    operator.stop().await;
}

/// Changes HyperConverged to v1 only, and converts the object as a conversion webhook would.
async fn only_v1(platform: &Platform) {
    let crd = format!("{CRDS}/hyperconvergeds.hco.kubevirt.io");
    let storage = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": false},
    ]);
    platform.request("PATCH", &crd, Some("application/json-patch+json"), storage).await;
    let mut object = platform.get(&hyper_converged(Value::Null)).await;
    let settings =
        ["liveMigrationConfig", "higherWorkloadDensity"].map(|name| (name.to_owned(), object["spec"][name].take()));
    object["apiVersion"] = "hco.kubevirt.io/v1".into();
    object["spec"] = json!({"virtualization": serde_json::Map::from_iter(settings)});
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    let key = "/registry/hco.kubevirt.io/hyperconvergeds/openshift-cnv/kubevirt-hyperconverged";
    platform.cluster.store(key, object.to_string().as_bytes()).await.unwrap();
    let stored = json!({"status": {"storedVersions": ["v1"]}});
    platform.request("PATCH", &format!("{crd}/status"), Some("application/merge-patch+json"), stored).await;
    platform.define("hyperconverged-v1.yaml").await;
}
