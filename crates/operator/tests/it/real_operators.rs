//! Findings with the real operators, one test each, with their texts, definitions and files.

use serde_json::{Value, json};
use testkit::{
    configs::{condition, is_waiting_for_nodes, item, phase, reason},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, machine_config},
    rollout::{PSI, SWAP},
    running_operator::RunningOperator,
};

use crate::lifecycle::no_psi;

const DESCHEDULER: &str = "enable-load-aware-descheduling";
const PSI_ITEM: &str = "enable-psi-metrics";
const NAMESPACE: &str = "openshift-kube-descheduler-operator";
const LOW: &str = "spec.profileCustomizations.devLowNodeUtilizationThresholds";

fn message(config: &Value, name: &str) -> String {
    item(config, name)["message"].as_str().unwrap_or_default().to_owned()
}

// --- swap ---

/// What the templates of OpenShift 4.20 render for workers: neither `failSwapOn` nor `--config-dir`.
async fn of_4_20(platform: &Platform, name: &str) -> Value {
    let path =
        "/apis/machineconfiguration.openshift.io/v1/machineconfigs/rendered-worker-d9366560000b5d89c5825f832fda0bd6";
    let mut config = platform.request("GET", path, None, Value::Null).await["spec"].take();
    for file in config["config"]["storage"]["files"].as_array_mut().unwrap() {
        if file["path"] == "/etc/kubernetes/kubelet.conf" {
            file["contents"]["source"] = "data:,kind%3A%20KubeletConfiguration%0AmaxPods%3A%20250%0A".into();
        }
    }
    for unit in config["config"]["systemd"]["units"].as_array_mut().unwrap() {
        let contents = unit["contents"].as_str().unwrap().replace(" --config-dir=/etc/openshift/kubelet.conf.d", "");
        unit["contents"] = contents.into();
    }
    let mut rendered = machine_config(name, config);
    rendered["metadata"]["labels"] = json!({});
    rendered
}

/// The nodes of the worker pool run a config of this name.
async fn runs(platform: &Platform, name: &str) {
    let configuration = json!({"name": name, "source": [{"name": "00-worker"}]});
    platform.set_pool(json!({"configuration": configuration}), json!({"configuration": configuration})).await;
}

/// First in rank: swap stops the kubelet on OpenShift 4.20 and older.
#[tokio::test(flavor = "multi_thread")]
async fn swap_is_refused_where_it_would_cost_nodes_and_told_where_it_was_applied() {
    let platform = Platform::at_rest().await;
    platform.install().await;
    platform.define("clusterversion.yaml").await;
    let old = of_4_20(&platform, "rendered-worker-4-20").await;
    platform.apply("mco", &old, "").await;
    runs(&platform, "rendered-worker-4-20").await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(DENSITY, json!({"action": "Apply"})).await;
    let refused = platform.until_phase(DENSITY, "PrerequisiteFailed").await;
    let told = condition(&refused, "PrerequisiteFailed")["message"].as_str().unwrap();
    for part in ["MachineConfigPool 'worker'", "failSwapOn: false", "Upgrade to OpenShift 4.21", "enableSwap: false"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(platform.find(&machine_config(SWAP, json!({}))).await, None, "although the action is Apply");

    // The pool is updated to 4.21: the plan continues without an edit.
    runs(&platform, "rendered-worker-d9366560000b5d89c5825f832fda0bd6").await;
    platform.until(DENSITY, "waiting for nodes", is_waiting_for_nodes).await;
    platform.roll(&[SWAP], 3).await;
    platform.until_phase(DENSITY, "Completed").await;

    // An applied plan of an older version on such a cluster: the old kubelet, with swap.
    runs(&platform, "rendered-worker-4-20").await;
    let unsafe_now = platform.until_phase(DENSITY, "PrerequisiteFailed").await;
    let told = condition(&unsafe_now, "PrerequisiteFailed")["message"].as_str().unwrap();
    assert!(
        told.contains("'90-worker-kubelet-swap' is there already") && told.contains("Take it out at once"),
        "{told}"
    );
    platform.configure(DENSITY, json!({"action": "DryRun", "options": crate::lifecycle::no_swap()})).await;
    let review = platform.until_phase(DENSITY, "ReviewRequired").await;
    assert_eq!(item(&review, "enable-kubelet-swap")["operation"], "Delete");
    operator.stop().await;

    // If the config does not tell, the version decides; without both, the plan names the risk.
    let risks = |plan: &advisor::Plan| plan.risks.iter().map(|risk| risk.name.clone()).collect::<Vec<_>>();
    runs(&platform, "rendered-worker-unknown").await;
    assert_eq!(risks(&platform.plan(DENSITY).await), ["SwapSupportUnknown"]);
    let version = |version: &str| {
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"},
            "spec": {"clusterID": "x"}, "status": {"history": [{"state": "Completed", "version": version}]},
        })
    };
    for (number, is_refused) in [("4.20.11", true), ("4.21.2", false)] {
        platform.apply("cvo", &version(number), "").await;
        platform.apply("cvo", &version(number), "/status").await;
        let plan = platform.try_plan(DENSITY, Value::Null).await;
        assert_eq!(plan.is_err(), is_refused, "{number}");
        assert!(plan.map_or(true, |plan| plan.risks.is_empty()), "{number}");
    }
}

// --- one threshold ---

/// Second in rank: two threshold fields at once are refused in a log that nobody reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_threshold_is_taken_out_with_its_owner_named_and_is_drift_when_it_comes_back() {
    let platform = Platform::at_rest().await;
    platform.install().await;
    for release in ["4.18", "4.19", "4.20", "4.21", "5.1"] {
        platform.tidy_up().await;
        platform.define(&format!("kubedescheduler-{release}.yaml")).await;
        platform.populate().await;
        let existing = json!({"managementState": "Managed", "deschedulingIntervalSeconds": 3600, "profiles": ["LongLifecycle"],
            "profileCustomizations": {"devLowNodeUtilizationThresholds": "High", "thresholdPriority": 7}});
        platform.apply("argocd", &descheduler(existing), "").await;
        let operator = RunningOperator::start(&platform).await;
        platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": no_psi()})).await;
        let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
        let planned = item(&review, DESCHEDULER);
        let diff = planned["diff"].as_str().unwrap();
        assert!(diff.contains("-    devLowNodeUtilizationThresholds: High\n"), "{release}: {diff}");
        let owner = planned["takesOver"].as_array().unwrap().iter().find(|taken| taken["manager"] == "argocd").unwrap();
        assert!(owner["fields"].as_array().unwrap().contains(&json!(LOW)), "{release}: {owner}");

        platform.complete(LOAD_AWARE, json!({}), &[]).await;
        let customizations = platform.get(&descheduler(Value::Null)).await["spec"]["profileCustomizations"].take();
        assert_eq!(customizations.get("devLowNodeUtilizationThresholds"), None, "{release}");
        assert_eq!(customizations["devDeviationThresholds"], "AsymmetricLow", "{release}");
        assert_eq!(customizations["thresholdPriority"], 7, "{release}: what is not refused stays");
        // Third in rank: without a metric 4.18 compares requests.
        let metric = if release == "4.18" { json!("PrometheusCPUCombined") } else { Value::Null };
        assert_eq!(customizations["devActualUtilizationProfile"], metric, "{release}");

        let back = json!({"profileCustomizations": {"devLowNodeUtilizationThresholds": "Low"}});
        platform.patch("argocd", &descheduler(back)).await;
        let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
        assert_eq!(item(&drifted, DESCHEDULER)["driftedBy"]["manager"], "argocd", "{release}");
        operator.stop().await;
    }
}

// --- in effect ---

fn deployment(name: &str, generation: &Value) -> Value {
    let labels = json!({"app": name});
    let annotations = json!({"kubedeschedulers.operator.openshift.io/cluster": generation.to_string()});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {"containers": [{"name": name, "image": "none"}]},
        }},
    })
}

/// The operator of the descheduler has deployed this generation, and the descheduler runs.
async fn deploys(platform: &Platform, generation: &Value) {
    let mut object = platform.apply("kdo", &deployment("descheduler", generation), "").await;
    object["status"] = json!({
        "observedGeneration": object["metadata"]["generation"], "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1,
    });
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    platform.apply("kdo", &object, "/status").await;
}

/// The operator reports on the KubeDescheduler: the whole sentence is in the reason.
async fn reports(platform: &Platform, degraded: Option<&str>) {
    let status = if degraded.is_some() { "True" } else { "False" };
    let condition = json!({"type": "TargetConfigControllerDegraded", "status": status, "reason": degraded.unwrap_or("AsExpected"),
        "lastTransitionTime": "2026-11-16T00:00:00Z", "message": ""});
    let mut object = descheduler(json!({}));
    object["status"] = json!({"conditions": [condition]});
    platform.apply("kdo", &object, "/status").await;
}

async fn generation(platform: &Platform) -> Value {
    platform.get(&descheduler(Value::Null)).await["metadata"]["generation"].clone()
}

/// Fourth in rank: Completed although the target's owner refuses.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_deschedulers_operator_is_told_and_never_completed() {
    let platform = Platform::shared().await;
    platform.apply("olm", &deployment("descheduler-operator", &json!(0)), "").await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "options": no_psi()})).await;
    let waits = |part: &'static str| {
        move |config: &Value| phase(config) == "InProgress" && message(config, DESCHEDULER).contains(part)
    };
    platform.until(LOAD_AWARE, "waiting for the operator", waits("has not deployed a descheduler yet")).await;

    // 4.20 without PSI, and the newest without a node for virtual machines.
    for sentence in [
        "profile KubeVirtRelieveAndMigrate can only be used when PSI metrics are enabled for the worker nodes",
        "profile KubeVirtRelieveAndMigrate can only be used when KubeVirt is properly deployed",
    ] {
        reports(&platform, Some(sentence)).await;
        let told =
            platform.until(LOAD_AWARE, "refused", |config| message(config, DESCHEDULER).contains(sentence)).await;
        assert_eq!(
            message(&told, DESCHEDULER),
            format!("KubeDescheduler 'cluster' is refused by its operator: {sentence}")
        );
        assert_eq!((phase(&told), reason(&told, "InProgress")), ("InProgress", "InProgress"));
    }
    reports(&platform, None).await;
    platform.until(LOAD_AWARE, "waiting again", waits("has not deployed a descheduler yet")).await;
    deploys(&platform, &generation(&platform).await).await;
    let completed = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(message(&completed, DESCHEDULER), "Applied successfully");
    assert_eq!(completed.pointer("/status/notes"), None, "somebody confirmed it");

    // The refusal is only in a log, and the former descheduler runs. The next plan waits, and names the log.
    platform
        .configure(
            LOAD_AWARE,
            json!({"options": {"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": 120}}}),
        )
        .await;
    let told = platform
        .until(LOAD_AWARE, "not deployed", waits("If that lasts, the operator refuses the configuration"))
        .await;
    assert!(message(&told, DESCHEDULER).contains("see the log of Deployment"), "{told:#}");
    deploys(&platform, &generation(&platform).await).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;

    // A later refusal ends Completed, until it is gone.
    let mark = platform.mark().await;
    reports(&platform, Some("unable to get route")).await;
    platform.until(LOAD_AWARE, "no longer in effect", waits("unable to get route")).await;
    reports(&platform, None).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.changes_since(mark).await, [""; 0], "and nothing was written for it");
    operator.stop().await;
}

/// Fourth in rank, of machine configs: rendered arguments that end in `psi=0` are no pressure metrics.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_config_that_is_merged_later_is_named_before_and_after_the_reboots() {
    let platform = Platform::shared().await;
    let later = "99-worker-zzz";
    platform.apply("admin", &machine_config(later, json!({"kernelArguments": ["audit=0 psi=0"]})), "").await;
    let source = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    let mut rendered = machine_config("rendered-worker-before", json!({"kernelArguments": ["psi=0", "audit=0 psi=0"]}));
    rendered["metadata"]["labels"] = json!({});
    platform.apply("mco", &rendered, "").await;
    let before = json!({"name": "rendered-worker-before", "source": source(&["00-worker", later])});
    platform.set_pool(json!({"configuration": before}), json!({"configuration": before})).await;

    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(review.pointer("/status/risks/0/name"), Some(&json!("PsiOverruled")));
    let risk = review.pointer("/status/risks/0/message").and_then(Value::as_str).unwrap();
    assert!(risk.contains("MachineConfig '99-worker-zzz' is merged after '99-worker-psi-karg'"), "{risk}");

    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    let merged = json!({"kernelArguments": ["psi=0", "psi=1", "audit=0 psi=0"]});
    rendered = machine_config("rendered-worker-after", merged);
    rendered["metadata"]["labels"] = json!({});
    platform.apply("mco", &rendered, "").await;
    let after = json!({"name": "rendered-worker-after", "source": source(&["00-worker", PSI, later])});
    platform.set_pool(json!({"configuration": after}), json!({"configuration": after})).await;
    let told = |config: &Value| message(config, PSI_ITEM).contains("'99-worker-zzz' is merged after");
    let waiting = platform.until(LOAD_AWARE, "told who overrules", told).await;
    assert_eq!(phase(&waiting), "InProgress");
    assert!(message(&waiting, PSI_ITEM).contains("MachineConfigPool 'worker' runs without PSI metrics"), "{waiting:#}");

    // The other argument is removed there.
    let mut rendered = machine_config("rendered-worker-on", json!({"kernelArguments": ["psi=0", "psi=1", "audit=0"]}));
    rendered["metadata"]["labels"] = json!({});
    platform.apply("mco", &rendered, "").await;
    let on = json!({"name": "rendered-worker-on", "source": source(&["00-worker", PSI, later])});
    platform.set_pool(json!({"configuration": on}), json!({"configuration": on})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}

/// Fourth in rank: a compact cluster, where no machine is reached.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_reaches_no_machine_says_so() {
    let platform = Platform::shared().await;
    platform.set_pool(json!({}), json!({"machineCount": 0, "updatedMachineCount": 0, "readyMachineCount": 0})).await;
    for profile in [LOAD_AWARE, DENSITY] {
        let plan = platform.plan(profile).await;
        let names: Vec<_> = plan.risks.iter().map(|risk| risk.name.as_str()).collect();
        assert_eq!(names, ["NoMachineReached"], "{profile}");
        assert!(plan.risks[0].message.contains("MachineConfigPool 'worker' has no machines"), "{:?}", plan.risks);
    }
}

// --- arguments ---

/// Fifth in rank: entries with several arguments.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_share_an_entry_are_read_and_kept_one_by_one() {
    let platform = Platform::shared().await;
    let mut on = machine_config("rendered-worker-on", json!({"kernelArguments": ["psi=0", "audit=0 psi=1"]}));
    on["metadata"]["labels"] = json!({});
    platform.apply("mco", &on, "").await;
    runs(&platform, "rendered-worker-on").await;
    let plan = platform.plan(LOAD_AWARE).await;
    assert!(
        plan.notes[0].starts_with("PSI metrics already effective in MachineConfigPool 'worker'"),
        "{:?}",
        plan.notes
    );
    assert_eq!(plan.items.len(), 1, "nobody reboots for it");

    runs(&platform, "rendered-worker-d9366560000b5d89c5825f832fda0bd6").await;
    platform.apply("admin", &machine_config(PSI, json!({"kernelArguments": ["psi=0 audit=0"]})), "").await;
    platform.carry_out(&platform.plan(LOAD_AWARE).await).await;
    let arguments = async || platform.get(&machine_config(PSI, json!({}))).await["spec"]["kernelArguments"].take();
    assert_eq!(arguments().await, json!(["audit=0", "psi=1"]));
    platform.carry_out(&platform.plan_with(LOAD_AWARE, no_psi()).await).await;
    assert_eq!(arguments().await, json!(["audit=0"]));
}

/// Seventh in rank: policies for folders with a slash behind, and without actions.
#[tokio::test(flavor = "multi_thread")]
async fn a_disruption_policy_spares_the_reboot_as_the_daemon_reads_it() {
    let platform = Platform::shared().await;
    let reboots = async || {
        let plan = platform.plan(DENSITY).await;
        plan.items[0].item.impact_detail.as_ref().unwrap().reboot
    };
    assert!(reboots().await, "no policy covers swap");
    let restart = json!([{"type": "Restart", "restart": {"serviceName": "kubelet.service"}}]);
    let status = json!({"observedGeneration": 1, "nodeDisruptionPolicyStatus": {"clusterPolicies": {
        "files": [
            {"path": "/etc/find-swap-partition", "actions": []},
            {"path": "/etc/openshift/kubelet.conf.d/", "actions": restart},
        ],
        "units": [
            {"name": "swap-provision.service", "actions": [{"type": "DaemonReload"}]},
            {"name": "cgroup-system-slice-config.service", "actions": [{"type": "None"}]},
        ],
    }}});
    let policy = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": {"name": "cluster"},
        "status": status,
    });
    platform.apply("mco", &policy, "/status").await;
    eventually("the policy counts", async || (!reboots().await).then_some(())).await;
}
