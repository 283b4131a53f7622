//! The requests of a plan, by the audit log: those for the objects it names, and no others.

use futures::{StreamExt, stream};
use serde_json::json;
use testkit::{
    platform::{LOAD_AWARE, Platform, machine_config},
    running_operator::OPERATOR,
};

async fn requests(platform: &Platform) -> Vec<String> {
    let mark = platform.mark().await;
    platform.plan(LOAD_AWARE).await;
    let all = platform.requests_since(mark).await;
    let mut lines: Vec<_> = all.iter().map(|request| request.to_string().replace(OPERATOR, "us")).collect();
    lines.sort();
    lines
}

/// W38 (cluster in memory), D13 (server-side diffs): every item is previewed by a dry run of the API server.
#[tokio::test]
async fn a_plan_reads_each_object_once_and_a_thousand_other_objects_cost_nothing() {
    let platform = Platform::shared().await;
    let before = requests(&platform).await;
    let pool = platform.get(&json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}})).await;
    let rendered = pool.pointer("/status/configuration/name").and_then(serde_json::Value::as_str).unwrap();
    assert_eq!(
        before,
        [
            "get customresourcedefinitions.apiextensions.k8s.io kubedeschedulers.operator.openshift.io by us: 200",
            "get deployments.apps openshift-kube-descheduler-operator/descheduler-operator by us: 404",
            "get hyperconvergeds.hco.kubevirt.io openshift-cnv/kubevirt-hyperconverged by us: 200",
            "get kubedeschedulers.operator.openshift.io openshift-kube-descheduler-operator/cluster by us: 404",
            "get machineconfigs.machineconfiguration.openshift.io 99-worker-psi-karg by us: 404",
            "get machineconfigs.machineconfiguration.openshift.io 99-worker-ssh by us: 200",
            &format!("get machineconfigs.machineconfiguration.openshift.io {rendered} by us: 200"),
            "list machineconfigpools.machineconfiguration.openshift.io by us: 200",
            "patch kubedeschedulers.operator.openshift.io openshift-kube-descheduler-operator/cluster (dry run) by us: 201",
            "patch machineconfigs.machineconfiguration.openshift.io 99-worker-psi-karg (dry run) by us: 201",
        ]
    );

    // As large as the machine configs of a real cluster: a few dozen kilobytes of files.
    let payload = "x".repeat(24 * 1024);
    let config = |number: usize| {
        let files = json!([{"path": "/etc/payload", "contents": {"source": format!("data:,{payload}")}}]);
        machine_config(
            &format!("50-other-{number}"),
            json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": files}}}),
        )
    };
    let created = stream::iter(0..1000).map(|number| {
        let (platform, config) = (&platform, config(number));
        async move { platform.apply("installer", &config, "").await }
    });
    created.buffer_unordered(8).for_each(|_| async {}).await;
    assert_eq!(requests(&platform).await, before);
}
