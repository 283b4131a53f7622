//! What the guide of load-aware-rebalancing says of errors: what becomes of a plan of which one item is refused.

use serde_json::Value;

use super::{
    test_cluster::{DESCHEDULER, TestCluster, define},
    workflow::condition,
};

const PROFILE: &str = "load-aware-rebalancing";

/// Real writes of MachineConfigs are refused, dry runs are not.
const REFUSAL: &str = r#"kubectl apply -f - <<EOF
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: no-machine-configs
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: ["machineconfiguration.openshift.io"]
      apiVersions: ["*"]
      operations: ["CREATE", "UPDATE"]
      resources: ["machineconfigs"]
  validations:
  - expression: has(request.dryRun) && request.dryRun
    message: not today
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: no-machine-configs
spec:
  policyName: no-machine-configs
  validationActions: ["Deny"]
EOF"#;

fn patch(spec: &str) -> String {
    format!("kubectl patch virtplatformconfig load-aware-rebalancing --type=merge -p '{{\"spec\": {spec}}}'")
}

fn states(config: &Value) -> Vec<&str> {
    config["status"]["items"].as_array().unwrap().iter().map(|item| item["state"].as_str().unwrap()).collect()
}

/// D8 (failure policy): Failed, or CompletedWithErrors.
#[tokio::test]
async fn the_failure_policy_decides_what_becomes_of_the_rest_of_a_plan() {
    let cluster = TestCluster::with_platform().await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    cluster.terminal.run(&patch(r#"{"action": "DryRun"}"#)).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    cluster.terminal.run(REFUSAL).await;
    // A policy is in effect a moment after it was accepted.
    for attempt in 0.. {
        let probe = format!("kubectl label machineconfig 00-worker --overwrite probe=number-{attempt}");
        if !cluster.terminal.try_run(&probe).await.status.success() {
            break;
        }
        assert!(attempt < 600, "the policy does not come into force");
    }

    cluster.terminal.run(&patch(r#"{"action": "Apply"}"#)).await;
    let config = cluster.reach(PROFILE, "Failed").await;
    assert_eq!(states(&config), ["Failed", "Pending"], "Abort: the rest is not tried");
    let message = config["status"]["items"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("Failed to apply: ") && message.contains("not today"), "{message}");
    let (status, _, said) = condition(&config, "Failed");
    assert_eq!(status, "True");
    assert!(said.contains("enable-psi-metrics") && said.contains("not today"), "{said}");
    let descheduler = cluster.terminal.try_run("kubectl get kubedescheduler cluster").await;
    assert!(!descheduler.status.success());

    cluster.terminal.run(&patch(r#"{"failurePolicy": "Continue"}"#)).await;
    let config = cluster.reach(PROFILE, "CompletedWithErrors").await;
    assert_eq!(states(&config), ["Failed", "Completed"], "Continue: the others are applied");
    assert_eq!(condition(&config, "Completed").0, "False");
    cluster.terminal.run("kubectl get kubedescheduler cluster").await;

    cluster.terminal.run("kubectl delete validatingadmissionpolicybinding no-machine-configs").await;
    cluster.finish().await;
}
