//! The outcomes of a plan other than success: refusals, missing kinds and errors, each with its own message.

use advisor::{Plan, Verb};
use devcluster::Identity;
use kube_io::Class;
use operator::{PlanError, make_plan};
use serde_json::{Value, json};
use testkit::{
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config},
};

use crate::webhook::Webhook;

/// Makes plans until an item is refused: the API server knows a new webhook or schema with a delay.
async fn refused_plan(platform: &Platform, profile: &str) -> Plan {
    let refused = async || Some(platform.plan(profile).await).filter(|plan| plan.refusals().count() > 0);
    eventually(format!("an item of {profile} is refused"), refused).await
}

/// W35 (silent take-over): in the plan, before anybody approves it.
#[tokio::test]
async fn fields_of_other_managers_are_named_before_they_are_taken_over() {
    let platform = Platform::shared().await;
    let spec = json!({"deschedulingIntervalSeconds": 600, "mode": "Predictive", "profiles": ["AffinityAndTaints"]});
    platform.apply("argocd", &descheduler(spec), "").await;
    platform.patch("kubectl-edit", &descheduler(json!({"mode": "Automatic"}))).await;

    let plan = platform.plan(LOAD_AWARE).await;
    assert_eq!(
        json!(plan.items[1].item.takes_over),
        json!([{"manager": "argocd", "fields": ["spec.deschedulingIntervalSeconds", "spec.profiles"]}])
    );
    assert_eq!(plan.items[1].verb, Verb::Configured, "and the plan still shows what would come of it");
    assert!(plan.items[0].item.takes_over.is_empty());
}

#[tokio::test]
async fn missing_kinds_are_listed_with_what_to_install() {
    let platform = Platform::with(&["machineconfig.yaml", "machineconfigpool.yaml"]).await;
    let Err(PlanError::MissingPrerequisites(text)) = platform.try_plan(LOAD_AWARE, Value::Null).await else {
        panic!("there is no KubeDescheduler")
    };
    assert_eq!(
        text,
        "Missing required dependencies:\n  - KubeDescheduler (operator.openshift.io.v1): Please install the Descheduler Operator via OLM\n"
    );

    let Err(PlanError::MissingPrerequisites(text)) = platform.try_plan(DENSITY, Value::Null).await else {
        panic!("there is no HyperConverged")
    };
    assert_eq!(
        text,
        "Missing required dependencies:\n  - HyperConverged (hco.kubevirt.io.v1beta1): Install OpenShift Virtualization via OLM\n"
    );

    platform.define("hyperconverged-v1beta1.yaml").await;
    let Err(PlanError::MissingPrerequisites(text)) = platform.try_plan(DENSITY, Value::Null).await else {
        panic!("the kind is there, the object is not, and it is not ours to create")
    };
    assert_eq!(
        text,
        "Missing required dependencies:\n  - HyperConverged openshift-cnv/kubevirt-hyperconverged: Create it to deploy OpenShift Virtualization\n"
    );
}

/// D20 (needed prerequisites only): not even HyperConverged.
#[tokio::test]
async fn only_what_the_options_need_is_required_and_a_missing_namespace_is_an_outcome_of_its_own() {
    let platform = Platform::with(&["kubedescheduler-5.1.yaml"]).await;
    let options = json!({"loadAware": {"enablePSIMetrics": false}});
    let plan = platform.plan_with(LOAD_AWARE, options.clone()).await;
    assert_eq!(plan.items.len(), 1, "neither MachineConfig nor HyperConverged is needed");
    let planned = &plan.items[0];
    assert_eq!((planned.verb, planned.refusal.as_ref().unwrap().reason()), (Verb::Refused, "NamespaceMissing"));
    assert_eq!(
        planned.item.message.as_deref(),
        Some(
            "KubeDescheduler openshift-kube-descheduler-operator/cluster cannot be created: namespace openshift-kube-descheduler-operator \
             does not exist. Create it, or install the component that owns it"
        )
    );
    assert_eq!(planned.item.diff, None);

    platform.apply("admin", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-kube-descheduler-operator"}}), "").await;
    let plan = platform.plan_with(LOAD_AWARE, options).await;
    let limits = plan.items[0].item.desired_state.as_ref().unwrap()["spec"]["evictionLimits"].clone();
    assert_eq!(limits, json!({"total": 5, "node": 2}), "without HyperConverged the defaults hold");
}

/// W18 (unreadable as absent): limits are not made up.
#[tokio::test]
async fn what_may_not_be_read_is_an_error_and_never_a_default() {
    let platform = Platform::shared().await;
    let rules = json!([
        {"apiGroups": ["operator.openshift.io", "machineconfiguration.openshift.io"], "resources": ["*"], "verbs": ["get", "list", "patch", "create"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
    ]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "half"}, "rules": rules});
    platform.apply("admin", &role, "").await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "half"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "half"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "half"}],
    });
    platform.apply("admin", &binding, "").await;
    let kubernetes = platform.kubernetes_as(&Identity::user("half", &[])).await;
    let profile = advisor::profiles::find(LOAD_AWARE).unwrap();

    // A right holds a moment after it was granted.
    let error = eventually("HyperConverged is forbidden, and nothing else", async || {
        match make_plan(&kubernetes, profile, None).await {
            Err(PlanError::Request(error)) if error.doing.contains("HyperConverged") => Some(error),
            _ => None,
        }
    })
    .await;
    assert_eq!(error.class, Class::Forbidden);
    let text = error.to_string();
    assert!(
        text.starts_with(
            "reading HyperConverged openshift-cnv/kubevirt-hyperconverged: hyperconvergeds.hco.kubevirt.io"
        ),
        "{text}"
    );
    assert!(text.contains("User \"half\" cannot get resource"), "{text}");
}

#[tokio::test]
async fn what_may_be_read_and_not_written_is_a_refused_item() {
    let platform = Platform::shared().await;
    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": rules});
    platform.apply("admin", &role, "").await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
    });
    platform.apply("admin", &binding, "").await;
    let kubernetes = platform.kubernetes_as(&Identity::user("reader", &[])).await;
    let profile = advisor::profiles::find(LOAD_AWARE).unwrap();
    // A right holds a moment after it was granted.
    let plan = eventually("the right holds", async || make_plan(&kubernetes, profile, None).await.ok()).await;
    let reasons: Vec<_> = plan.refusals().map(advisor::Refusal::reason).collect();
    assert_eq!(reasons, ["Forbidden", "Forbidden"]);
    let message = plan.items[0].item.message.as_deref().unwrap();
    assert!(message.starts_with("MachineConfig 99-worker-psi-karg may not be changed: "), "{message}");
    assert!(message.ends_with("Grant this right to whoever applies the plan"), "{message}");
}

#[tokio::test]
async fn a_webhook_that_says_no_is_quoted() {
    let platform = Platform::shared().await;
    let webhook = Webhook::start("node changes are frozen until Monday").await;
    let protected = machine_config("99-worker-psi-karg", json!({}));
    webhook.protect(&platform, &protected).await;
    let plan = platform.plan(LOAD_AWARE).await;
    assert_eq!(plan.items[0].refusal.as_ref().unwrap().reason(), "WebhookRefused");
    assert_eq!(
        plan.items[0].item.message.as_deref(),
        Some(
            "MachineConfig 99-worker-psi-karg was refused by an admission webhook: admission webhook \"frozen.example.com\" denied the \
             request: node changes are frozen until Monday"
        )
    );
    assert_eq!(plan.items[1].verb, Verb::Created, "the other item is shown all the same");
    webhook.lift(&platform, &protected).await;
}

/// A policy refuses in words like those of a webhook.
#[tokio::test]
async fn an_admission_policy_that_says_no_is_not_called_a_webhook() {
    let platform = Platform::shared().await;
    let version = "admissionregistration.k8s.io/v1";
    let rule = json!({
        "apiGroups": ["machineconfiguration.openshift.io"], "apiVersions": ["*"], "resources": ["machineconfigs"],
        "operations": ["CREATE", "UPDATE"],
    });
    let validation = json!({"expression": "false", "message": "node changes are frozen until Monday"});
    let policy = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]});
    let binding = json!({"policyName": "frozen.example.com", "validationActions": ["Deny"]});
    let collection = |plural: &str| format!("/apis/{version}/{plural}");
    let (policies, bindings) =
        (collection("validatingadmissionpolicies"), collection("validatingadmissionpolicybindings"));
    for (kind, collection, spec) in
        [("ValidatingAdmissionPolicy", &policies, policy), ("ValidatingAdmissionPolicyBinding", &bindings, binding)]
    {
        let object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "frozen.example.com"}, "spec": spec});
        platform.request("POST", collection, Some("application/json"), object).await;
    }
    let plan = refused_plan(&platform, LOAD_AWARE).await;
    assert_eq!(plan.items[0].refusal.as_ref().unwrap().reason(), "PolicyRefused");
    let message = plan.items[0].item.message.as_deref().unwrap();
    assert!(message.starts_with("MachineConfig 99-worker-psi-karg was refused by an admission policy: "), "{message}");
    assert!(message.ends_with("denied request: node changes are frozen until Monday"), "{message}");
    assert_eq!(plan.items[1].verb, Verb::Created, "the other item is shown all the same");

    for collection in [&bindings, &policies] {
        platform.request("DELETE", &format!("{collection}/frozen.example.com"), None, Value::Null).await;
    }
    let accepted = async || (platform.plan(LOAD_AWARE).await.refusals().count() == 0).then_some(());
    eventually("the API server has forgotten the policy", accepted).await;
}

/// An object with a finalizer keeps the definition, and with it the kind, from going.
#[tokio::test]
async fn a_kind_whose_definition_is_being_deleted_is_not_a_missing_right() {
    let platform = Platform::at_rest().await;
    let mut other = descheduler(json!({}));
    other["metadata"]["namespace"] = "openshift-cnv".into();
    other["metadata"]["finalizers"] = json!(["example.com/stays"]);
    platform.apply("admin", &other, "").await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kubedeschedulers.operator.openshift.io";
    platform.request("DELETE", definition, None, Value::Null).await;
    let plan = refused_plan(&platform, LOAD_AWARE).await;
    let planned = &plan.items[1];
    assert_eq!((planned.verb, planned.refusal.as_ref().unwrap().reason()), (Verb::Refused, "KindTerminating"));
    assert_eq!(
        planned.item.message.as_deref(),
        Some(
            "KubeDescheduler openshift-kube-descheduler-operator/cluster cannot be created: the definition of its kind is being \
             deleted. When it is gone, install the component that owns it; if it stays, look for objects of the kind that have finalizers"
        )
    );
    assert_eq!(plan.items[0].verb, Verb::Created, "the other item is shown all the same");
}

#[tokio::test]
async fn a_webhook_without_dry_run_support_makes_an_item_that_cannot_be_previewed() {
    let platform = Platform::at_rest().await;
    // The API server no longer accepts such a webhook. One that was stored earlier is still called.
    let webhook = Webhook::start("never asked").await;
    let mut stored = webhook.configuration("hyperconvergeds", "hco.kubevirt.io");
    stored["metadata"]["uid"] = "00000000-0000-0000-0000-000000000001".into();
    stored["webhooks"][0]["sideEffects"] = "Some".into();
    let key = "/registry/validatingwebhookconfigurations/frozen";
    platform.cluster.store(key, stored.to_string().as_bytes()).await.unwrap();
    let plan = refused_plan(&platform, DENSITY).await;
    let planned = &plan.items[1];
    assert_eq!(planned.refusal.as_ref().unwrap().reason(), "DryRunUnsupported");
    let message = planned.item.message.as_deref().unwrap();
    assert!(
        message.starts_with("HyperConverged openshift-cnv/kubevirt-hyperconverged cannot be previewed: "),
        "{message}"
    );
    assert!(message.contains("frozen.example.com"), "{message}");
}

#[tokio::test]
async fn a_field_that_the_schema_lacks_is_a_refusal_and_not_a_fault_of_the_server() {
    // A definition that has the profile but not its customizations.
    let platform = Platform::at_rest().await;
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kubedeschedulers.operator.openshift.io";
    let patch = json!([{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/profileCustomizations"}]);
    platform.request("PATCH", crd, Some("application/json-patch+json"), patch).await;
    let plan = refused_plan(&platform, LOAD_AWARE).await;
    assert_eq!(plan.items[1].refusal.as_ref().unwrap().reason(), "UnknownField");
    let message = plan.items[1].item.message.as_deref().unwrap();
    assert!(message.contains("profileCustomizations"), "{message}");
}

#[tokio::test]
async fn invalid_values_and_invalid_options_are_told_apart() {
    let platform = Platform::shared().await;
    let error =
        platform.try_plan(LOAD_AWARE, json!({"loadAware": {"deschedulingIntervalSeconds": 5}})).await.unwrap_err();
    assert_eq!(error.to_string(), "spec.options.loadAware.deschedulingIntervalSeconds is 5: must be from 60 to 86400");
    assert_eq!(error.reason(), "InvalidOptions");
}

/// W16 (hidden reboots): no second argument, no reboot.
#[tokio::test]
async fn psi_that_is_effective_already_needs_no_item() {
    let platform = Platform::shared().await;
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    let pool = platform.get(&pool).await;
    let rendered = pool.pointer("/status/configuration/name").and_then(Value::as_str).unwrap();
    platform.patch("mco", &machine_config(rendered, json!({"kernelArguments": ["psi=1"]}))).await;
    let plan = platform.plan(LOAD_AWARE).await;
    assert_eq!(plan.items.len(), 1);
    assert_eq!(
        plan.notes[..1],
        [
            "PSI metrics already effective in MachineConfigPool 'worker' through another MachineConfig: '99-worker-psi-karg' is not needed"
        ]
    );
}

#[tokio::test]
async fn hyper_converged_is_used_in_the_version_that_is_served() {
    let platform = Platform::with(&["kubedescheduler-5.1.yaml", "hyperconverged-v1.yaml"]).await;
    for name in ["openshift-cnv", "openshift-kube-descheduler-operator"] {
        platform
            .apply("admin", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}), "")
            .await;
    }
    let mut hco =
        hyper_converged(json!({"virtualization": {"liveMigrationConfig": {"parallelMigrationsPerCluster": 20}}}));
    hco["apiVersion"] = "hco.kubevirt.io/v1".into();
    platform.apply("admin", &hco, "").await;
    let plan = platform.plan_with(LOAD_AWARE, json!({"loadAware": {"enablePSIMetrics": false}})).await;
    assert_eq!(plan.items[0].item.desired_state.as_ref().unwrap()["spec"]["evictionLimits"]["total"], 18);
    assert_eq!(plan.inputs[0].path, "spec.virtualization.liveMigrationConfig.parallelMigrationsPerCluster");

    let plan = platform.plan_with(DENSITY, json!({"virtHigherDensity": {"enableSwap": false}})).await;
    assert_eq!(plan.items[0].item.target_ref.api_version, "hco.kubevirt.io/v1");
    assert_eq!(
        plan.items[0].item.managed_fields,
        ["spec.virtualization.higherWorkloadDensity.memoryOvercommitPercentage"]
    );
    assert_eq!(plan.items[0].verb, Verb::Configured);
}

#[tokio::test]
async fn the_digest_does_not_depend_on_the_order_in_which_the_api_server_names_managers() {
    let platform = Platform::shared().await;
    platform.apply("argocd", &descheduler(json!({"profiles": ["AffinityAndTaints"]})), "").await;
    platform
        .apply("platform-team", &descheduler(json!({"deschedulingIntervalSeconds": 600, "mode": "Predictive"})), "")
        .await;
    let first = platform.plan(LOAD_AWARE).await;
    assert_eq!(first.items[1].item.takes_over.len(), 2);
    for _ in 0..12 {
        assert_eq!(platform.plan(LOAD_AWARE).await.digest, first.digest);
    }
}

#[tokio::test]
async fn what_others_write_while_a_plan_is_made_is_never_shown_as_ours() {
    let platform = Platform::shared().await;
    let options = json!({"virtHigherDensity": {"enableSwap": false}});
    platform.apply("somebody", &hyper_converged(json!({"ksmConfiguration": {"nodeLabelSelector": {}}})), "").await;
    let expected = platform.plan_with(DENSITY, options.clone()).await.digest;
    let heart_beats = async {
        for beat in 0.. {
            let mut hco = hyper_converged(json!({}));
            hco["metadata"]["annotations"] = json!({"beat": beat.to_string()});
            platform.patch("busybody", &hco).await;
        }
    };
    let plans = async {
        for _ in 0..20 {
            // If the object changes all the time, the result is an error and never a wrong plan.
            match platform.try_plan(DENSITY, options.clone()).await {
                Ok(plan) => {
                    assert_eq!(plan.refusals().count(), 0, "{:?}", plan.refusals().collect::<Vec<_>>());
                    assert_eq!(plan.digest, expected);
                    assert!(!plan.items[0].readable_diff.contains("+    beat: "), "{}", plan.items[0].readable_diff);
                }
                Err(PlanError::Request(error)) => assert_eq!(error.class, Class::Conflict, "{error}"),
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::select! { () = plans => {}, () = heart_beats => {} }
}

#[tokio::test]
async fn arguments_that_come_while_a_plan_is_made_are_kept() {
    let platform = Platform::shared().await;
    let config = |arguments: &[&str]| machine_config("99-worker-psi-karg", json!({"kernelArguments": arguments}));
    platform.apply("somebody", &config(&["quiet"]), "").await;
    let changes = async {
        loop {
            platform.apply("somebody", &config(&["quiet", "nosmt"]), "").await;
            platform.apply("somebody", &config(&["quiet"]), "").await;
        }
    };
    let plans = async {
        for _ in 0..30 {
            match platform.try_plan(LOAD_AWARE, serde_json::Value::Null).await {
                Ok(plan) => {
                    let diff = plan.items[0].item.diff.as_deref().unwrap_or_default();
                    assert!(!diff.contains("\n-  - nosmt"), "derived from an object that was no longer there:\n{diff}");
                }
                Err(PlanError::Request(error)) => assert_eq!(error.class, Class::Conflict, "{error}"),
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::select! { () = plans => {}, () = changes => {} }
}
