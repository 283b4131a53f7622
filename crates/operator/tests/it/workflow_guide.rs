//! The plans of the workflow guide, on a real API server. Intended differences are listed in [`DIFFERENCES`] and put into
//! the texts of the guide before the comparison.

use advisor::PlannedItem;
use api::virt_platform_config::Severity;
use serde_json::{Value, json};
use testkit::{
    files::sample_documents,
    platform::{DENSITY, LOAD_AWARE, Platform, hyper_converged, machine_config},
};

/// The text of the guide, our text, and the reason.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("@@ -0,0 +1,10 @@\n+apiVersion: machine", "@@ -0,0 +1,9 @@\n+apiVersion: machine", "nine lines are nine lines"),
    (
        "+  logLevel: Normal\n+  mode: Automatic\n",
        "+  logLevel: Normal\n+  managementState: Managed\n+  mode: Automatic\n",
        "without it the descheduler's operator cannot update the object that we create",
    ),
];

fn with_differences(guide: &str) -> String {
    DIFFERENCES.iter().fold(guide.to_owned(), |text, (theirs, ours, _)| text.replace(theirs, ours))
}

const PSI_DIFF: &str = "\
--- /dev/null
+++ 99-worker-psi-karg (MachineConfig)
@@ -0,0 +1,10 @@
+apiVersion: machineconfiguration.openshift.io/v1
+kind: MachineConfig
+metadata:
+  labels:
+    machineconfiguration.openshift.io/role: worker
+  name: 99-worker-psi-karg
+spec:
+  kernelArguments:
+  - psi=1
";

const DESCHEDULER_DIFF: &str = "\
--- /dev/null
+++ cluster (KubeDescheduler)
@@ -0,0 +1,20 @@
+apiVersion: operator.openshift.io/v1
+kind: KubeDescheduler
+metadata:
+  name: cluster
+  namespace: openshift-kube-descheduler-operator
+spec:
+  deschedulingIntervalSeconds: 60
+  evictionLimits:
+    node: 2
+    total: 5
+  logLevel: Normal
+  mode: Automatic
+  operatorLogLevel: Normal
+  profileCustomizations:
+    devDeviationThresholds: AsymmetricLow
+    devEnableEvictionsInBackground: true
+    devEnableSoftTainter: true
+  profiles:
+  - KubeVirtRelieveAndMigrate
";

const NO_PSI_CHANGES: &str =
    "--- 99-worker-psi-karg (MachineConfig)\n+++ 99-worker-psi-karg (MachineConfig)\n(no changes)\n";
const NO_DESCHEDULER_CHANGES: &str = "--- cluster (KubeDescheduler)\n+++ cluster (KubeDescheduler)\n(no changes)\n";

const DESCHEDULER_FIELDS: [&str; 5] = [
    "spec.deschedulingIntervalSeconds",
    "spec.mode",
    "spec.profiles",
    "spec.profileCustomizations",
    "spec.evictionLimits",
];

fn desired_descheduler(profiles: Value, total: i32, node: i32) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
        "spec": {
            "deschedulingIntervalSeconds": 60,
            "evictionLimits": {"node": node, "total": total},
            "mode": "Automatic",
            "profileCustomizations": {
                "devDeviationThresholds": "AsymmetricLow",
                "devEnableEvictionsInBackground": true,
                "devEnableSoftTainter": true,
            },
            "profiles": profiles,
        },
    })
}

/// One item as the guide prints it.
struct Expected<'a> {
    name: &'a str,
    severity: Severity,
    message: &'a str,
    managed: &'a [&'a str],
    desired: Value,
    diff: &'a str,
}

fn assert_item(planned: &PlannedItem, expected: &Expected<'_>) {
    let item = &planned.item;
    assert_eq!(item.name, expected.name);
    assert_eq!(item.impact_severity, Some(expected.severity), "{}", item.name);
    assert_eq!(item.message.as_deref(), Some(expected.message), "{}", item.name);
    assert_eq!(item.managed_fields, expected.managed, "{}", item.name);
    assert_eq!(json!(item.desired_state), expected.desired, "{}", item.name);
    let diff = item.diff.as_deref().unwrap();
    assert_eq!(diff, with_differences(expected.diff), "{}", item.name);
}

fn psi(severity: Severity, message: &'static str, diff: &'static str) -> Expected<'static> {
    Expected {
        name: "enable-psi-metrics",
        severity,
        message,
        managed: &["spec.kernelArguments"],
        desired: machine_config("99-worker-psi-karg", json!({"kernelArguments": ["psi=1"]})),
        diff,
    }
}

fn load_aware(severity: Severity, desired: Value, diff: &'static str) -> Expected<'static> {
    Expected {
        name: "enable-load-aware-descheduling",
        severity,
        message: "KubeDescheduler 'cluster' will be configured with profile 'KubeVirtRelieveAndMigrate'",
        managed: &DESCHEDULER_FIELDS,
        desired,
        diff,
    }
}

const ENABLE_PSI: &str = "MachineConfig '99-worker-psi-karg' will be configured to enable PSI metrics";

#[tokio::test]
async fn section_6_a_plan_for_a_cluster_without_a_descheduler() {
    let platform = Platform::shared().await;
    let plan = platform.plan(LOAD_AWARE).await;
    assert_eq!(plan.severity, Severity::High);
    assert_item(&plan.items[0], &psi(Severity::High, ENABLE_PSI, PSI_DIFF));
    let mut desired = desired_descheduler(json!(["KubeVirtRelieveAndMigrate"]), 5, 2);
    desired["spec"]["managementState"] = "Managed".into();
    assert_item(&plan.items[1], &load_aware(Severity::Medium, desired, DESCHEDULER_DIFF));
    assert_eq!(plan.items.len(), 2);
}

#[tokio::test]
async fn section_8_an_administrators_profile_is_kept_and_nothing_is_left_to_do_once_applied() {
    let platform = Platform::shared().await;
    platform.apply("admin", &sample_documents("kubedescheduler")[0], "").await;
    let plan = platform.plan(LOAD_AWARE).await;
    assert_eq!(plan.items[1].item.impact_severity, Some(Severity::Low), "an update of the descheduler is Low");
    platform.carry_out(&plan).await;

    let plan = platform.plan(LOAD_AWARE).await;
    // The pool has not rolled out the argument yet.
    assert_item(&plan.items[0], &psi(Severity::Low, ENABLE_PSI, NO_PSI_CHANGES));
    let desired = desired_descheduler(json!(["AffinityAndTaints", "KubeVirtRelieveAndMigrate"]), 5, 2);
    assert_item(&plan.items[1], &load_aware(Severity::Low, desired, NO_DESCHEDULER_CHANGES));
}

const EDITED_DIFF: &str = "\
--- cluster (KubeDescheduler)
+++ cluster (KubeDescheduler)
@@ -4,10 +4,10 @@
   name: cluster
   namespace: openshift-kube-descheduler-operator
 spec:
-  deschedulingIntervalSeconds: 180
+  deschedulingIntervalSeconds: 60
   evictionLimits:
-    node: 2
-    total: 5
+    node: 4
+    total: 10
   logLevel: Normal
   managementState: Managed
   mode: Automatic
@@ -28,7 +28,7 @@
   profileCustomizations:
     devDeviationThresholds: AsymmetricLow
     devEnableEvictionsInBackground: true
-    devEnableSoftTainter: false
+    devEnableSoftTainter: true
   profiles:
   - AffinityAndTaints
   - KubeVirtRelieveAndMigrate
";

#[tokio::test]
async fn section_10_new_migration_limits_and_a_manual_edit_show_in_one_plan() {
    let platform = Platform::shared().await;
    platform.apply("admin", &sample_documents("kubedescheduler")[0], "").await;
    platform.carry_out(&platform.plan(LOAD_AWARE).await).await;
    // The pool has rolled out: its nodes run a config with the argument.
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    let pool = platform.get(&pool).await;
    let rendered = pool.pointer("/status/configuration/name").and_then(Value::as_str).unwrap();
    platform.patch("mco", &machine_config(rendered, json!({"kernelArguments": ["psi=1"]}))).await;

    platform.apply("admin", &sample_documents("kubedescheduler-edited")[0], "").await;
    let limits = json!({"parallelMigrationsPerCluster": 10, "parallelOutboundMigrationsPerNode": 4});
    platform.apply("admin", &hyper_converged(json!({"liveMigrationConfig": limits})), "").await;

    let plan = platform.plan(LOAD_AWARE).await;
    assert_eq!(plan.severity, Severity::Low);
    let effective = "PSI metrics already effective in MachineConfigPool 'worker'";
    assert_item(&plan.items[0], &psi(Severity::Low, effective, NO_PSI_CHANGES));
    let desired = desired_descheduler(json!(["AffinityAndTaints", "KubeVirtRelieveAndMigrate"]), 10, 4);
    assert_item(&plan.items[1], &load_aware(Severity::Low, desired, EDITED_DIFF));
    let inputs: Vec<_> = plan.inputs.iter().map(|input| (input.path.as_str(), input.value.as_deref())).collect();
    assert_eq!(
        inputs,
        [
            ("spec.liveMigrationConfig.parallelMigrationsPerCluster", Some("10")),
            ("spec.liveMigrationConfig.parallelOutboundMigrationsPerNode", Some("4")),
        ]
    );
}

/// As in the appendix of the guide, with the line numbers of this cluster and one more line of context.
const DENSITY_DIFF: &str = "\
     enableMultiArchBootImageImport: false
     persistentReservation: false
   higherWorkloadDensity:
-    memoryOvercommitPercentage: 100
+    memoryOvercommitPercentage: 150
   infra: {}
+  ksmConfiguration:
+    nodeLabelSelector: {}
   liveMigrationConfig:
     allowAutoConverge: false
";

#[tokio::test]
async fn appendix_higher_density_with_its_defaults() {
    let platform = Platform::shared().await;
    let plan = platform.plan(DENSITY).await;
    assert_eq!(plan.severity, Severity::High);

    let swap = &plan.items[0].item;
    assert_eq!(swap.name, "enable-kubelet-swap");
    assert_eq!(swap.impact_severity, Some(Severity::High));
    assert_eq!(
        swap.message.as_deref(),
        Some("MachineConfig '90-worker-kubelet-swap' will be configured to enable kubelet swap")
    );
    assert_eq!(swap.managed_fields, ["spec.config"]);
    let desired = json!(swap.desired_state);
    assert_eq!(desired.pointer("/metadata/labels"), Some(&json!({"machineconfiguration.openshift.io/role": "worker"})));
    assert_eq!(desired.pointer("/spec/config/ignition/version"), Some(&json!("3.2.0")));
    let files = desired.pointer("/spec/config/storage/files").and_then(Value::as_array).unwrap();
    let files: Vec<_> = files.iter().map(|file| (file["path"].as_str().unwrap(), &file["mode"])).collect();
    assert_eq!(
        files,
        [("/etc/find-swap-partition", &json!(493)), ("/etc/openshift/kubelet.conf.d/90-swap.conf", &json!(420))]
    );

    let density = &plan.items[1].item;
    assert_eq!(density.name, "configure-higher-density");
    assert_eq!(density.impact_severity, Some(Severity::Medium));
    let message = "HyperConverged 'kubevirt-hyperconverged' will be configured with memoryOvercommitPercentage=150 and KSM enabled";
    assert_eq!(density.message.as_deref(), Some(message));
    assert_eq!(
        density.managed_fields,
        ["spec.higherWorkloadDensity.memoryOvercommitPercentage", "spec.ksmConfiguration"]
    );
    let spec = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 150}, "ksmConfiguration": {"nodeLabelSelector": {}}});
    assert_eq!(json!(density.desired_state), hyper_converged(spec));
    let diff = density.diff.as_deref().unwrap();
    assert!(diff.starts_with("--- kubevirt-hyperconverged (HyperConverged)\n+++ kubevirt-hyperconverged (HyperConverged)\n@@ -34,8 +34,10 @@\n"), "{diff}");
    assert!(diff.contains(DENSITY_DIFF), "{diff}");
}
