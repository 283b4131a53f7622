//! Compares the API model with the real API server: the same requests in the same order get the same answers.
//! What the model does not know (defaults, times, uids, managed fields of a status) is left out of the comparison; a field
//! that only the real answer has must be a default of its schema.

mod difference;
mod refusals;
mod replay;

use std::time::Duration;

use devcluster::Cluster;
use http::Method;
use kube_io::ApiServer;
use operator::{OperatorSettings, run_on};
use serde_json::{Value, json};
use testkit::{
    configs::is_waiting_for_nodes,
    eventually,
    rollout::{NODES, pool_spec, pool_status, rendered_config},
};
use tokio::sync::oneshot;

use crate::{
    api::kinds::resources,
    client::{APPLY, MERGE},
    recorder::{Exchange, Recorder},
    samples,
};
use replay::Replay;

const CONFIGS: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs";
const DESCHEDULERS: &str =
    "/apis/operator.openshift.io/v1/namespaces/openshift-kube-descheduler-operator/kubedeschedulers";
const MACHINE_CONFIGS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";
const POOL: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker";
const HCO: &str = "/apis/hco.kubevirt.io/v1beta1/namespaces/openshift-cnv/hyperconvergeds/kubevirt-hyperconverged";
const RECORDS: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords";
const LOAD_AWARE: &str = "load-aware-rebalancing";
const DENSITY: &str = "virt-higher-density";

/// The collections whose watch events are compared at the end.
const WATCHED: [&str; 5] =
    [CONFIGS, RECORDS, DESCHEDULERS, MACHINE_CONFIGS, "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"];

#[tokio::test(flavor = "multi_thread")]
async fn the_model_answers_as_the_real_api_server_does() {
    let cluster = Cluster::builder().start().await.unwrap();
    let definitions: Vec<_> = resources().iter().filter_map(|resource| resource.definition.clone()).collect();
    let definitions: Vec<_> =
        definitions.into_iter().map(|definition| serde_json::from_value(definition).unwrap()).collect();
    cluster.access().install_crds(&definitions).await.unwrap();
    let recorder = Recorder::new(cluster.access().client().await.unwrap());
    for (uri, object) in samples::objects() {
        let manager = if uri.ends_with("/status") { "controllers" } else { "installer" };
        recorder.send(Method::PATCH, &format!("{uri}?fieldManager={manager}&force=true"), APPLY, object).await;
    }
    for uri in WATCHED {
        recorder.send(Method::GET, uri, "", &Value::Null).await;
    }
    lifecycle(&recorder).await;
    refusals::refusals(&recorder).await;
    refusals::records(&recorder).await;
    let exchanges = recorder.exchanges().await;
    let mut replay = Replay::new();
    for exchange in &exchanges {
        replay.compare(exchange);
    }
    for uri in WATCHED {
        replay.watch(&recorder, uri).await;
    }
    println!(
        "{} requests answered alike, {} of them refused",
        exchanges.len() - replay.failed.len(),
        refused(&exchanges)
    );
    assert!(replay.failed.is_empty(), "{} differ:\n{}", replay.failed.len(), replay.failed.join("\n"));
}

fn refused(exchanges: &[Exchange]) -> usize {
    exchanges.iter().filter(|exchange| exchange.code >= 400).count()
}

/// The operator goes through a whole life cycle: offer, apply, rollout, drift, takeover, removal, the way back and the profile again.
async fn lifecycle(recorder: &Recorder) {
    let (stop, stopped) = oneshot::channel::<()>();
    let kubernetes = ApiServer::over(recorder.client());
    let shutdown = async {
        let _ = stopped.await;
    };
    let operator = tokio::spawn(run_on(kubernetes, OperatorSettings::default(), shutdown));
    until(recorder, LOAD_AWARE, "Ignored").await;
    until(recorder, DENSITY, "Ignored").await;
    configure(recorder, LOAD_AWARE, json!({"action": "DryRun"})).await;
    until(recorder, LOAD_AWARE, "ReviewRequired").await;
    configure(recorder, LOAD_AWARE, json!({"action": "Apply"})).await;
    roll(recorder, LOAD_AWARE, &["99-worker-psi-karg"]).await;
    until(recorder, LOAD_AWARE, "Completed").await;
    let edit = format!("{DESCHEDULERS}/cluster?fieldManager=kubectl-edit");
    for (seconds, phase) in [(180, "Drifted"), (60, "Completed"), (300, "Drifted")] {
        recorder.send(Method::PATCH, &edit, MERGE, &json!({"spec": {"deschedulingIntervalSeconds": seconds}})).await;
        until(recorder, LOAD_AWARE, phase).await;
    }
    // The operator takes over fields that somebody else owns now.
    configure(recorder, LOAD_AWARE, json!({"action": "DryRun"})).await;
    until(recorder, LOAD_AWARE, "ReviewRequired").await;
    configure(recorder, LOAD_AWARE, json!({"action": "Apply"})).await;
    until(recorder, LOAD_AWARE, "Completed").await;
    let ksm = json!({"spec": {"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"ksm": "yes"}}}}});
    recorder.send(Method::PATCH, &format!("{HCO}?fieldManager=kubectl-edit"), MERGE, &ksm).await;
    let density = json!({"virtHigherDensity": {"enableSwap": true, "ksmConfiguration": {"enabled": false}}});
    configure(recorder, DENSITY, json!({"action": "Apply", "options": density})).await;
    roll(recorder, DENSITY, &["90-worker-kubelet-swap", "99-worker-psi-karg"]).await;
    until(recorder, DENSITY, "Completed").await;
    let without = json!({"loadAware": {"enablePSIMetrics": false}});
    configure(recorder, LOAD_AWARE, json!({"action": "Apply", "options": without})).await;
    roll(recorder, LOAD_AWARE, &["90-worker-kubelet-swap"]).await;
    until(recorder, LOAD_AWARE, "Completed").await;
    there_and_back(recorder).await;
    // A stored change may not have been answered yet.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _ = stop.send(());
    operator.await.unwrap().unwrap();
}

/// Both profiles are taken back and applied again.
async fn there_and_back(recorder: &Recorder) {
    const SWAP: &str = "90-worker-kubelet-swap";
    let steps: [(&str, Value, Option<&[&str]>); 4] = [
        (LOAD_AWARE, json!({"record": "original"}), None),
        (DENSITY, json!({"record": "original"}), Some(&[])),
        (LOAD_AWARE, Value::Null, None),
        (DENSITY, Value::Null, Some(&[SWAP])),
    ];
    for (profile, restore, rolled) in steps {
        configure(recorder, profile, json!({"restore": restore})).await;
        until(recorder, profile, "ReviewRequired").await;
        configure(recorder, profile, json!({"action": "DryRun"})).await;
        until(recorder, profile, "ReviewRequired").await;
        configure(recorder, profile, json!({"action": "Apply"})).await;
        if let Some(configs) = rolled {
            roll(recorder, profile, configs).await;
        }
        until(recorder, profile, "Completed").await;
    }
}

async fn configure(recorder: &Recorder, profile: &str, spec: Value) {
    recorder
        .send(Method::PATCH, &format!("{CONFIGS}/{profile}?fieldManager=admin"), MERGE, &json!({"spec": spec}))
        .await;
}

async fn until(recorder: &Recorder, profile: &str, phase: &str) {
    wait(recorder, profile, phase, |config| {
        config["status"]["phase"] == phase && config["status"]["observedGeneration"] == config["metadata"]["generation"]
    })
    .await;
}

async fn wait(recorder: &Recorder, profile: &str, what: &str, holds: impl Fn(&Value) -> bool) {
    let check = async || holds(&recorder.peek(&format!("{CONFIGS}/{profile}")).await).then_some(());
    eventually(format!("{profile} is {what}"), check).await;
}

/// Waits until all items are written, and rolls these configs out to all nodes.
async fn roll(recorder: &Recorder, profile: &str, configs: &[&str]) {
    wait(recorder, profile, "waiting for nodes", is_waiting_for_nodes).await;
    let mut specs = Vec::new();
    for config in configs {
        specs.push(recorder.peek(&format!("{MACHINE_CONFIGS}/{config}")).await["spec"].clone());
    }
    let (name, rendered) = rendered_config(&specs);
    recorder
        .send(Method::PATCH, &format!("{MACHINE_CONFIGS}/{name}?fieldManager=mco&force=true"), APPLY, &rendered)
        .await;
    let spec = json!({"spec": pool_spec(&name, configs)});
    let (_, pool) = recorder.send(Method::PATCH, &format!("{POOL}?fieldManager=mco"), MERGE, &spec).await;
    let status = json!({"status": pool_status(&pool, NODES)});
    recorder.send(Method::PATCH, &format!("{POOL}/status?fieldManager=mco"), MERGE, &status).await;
}
