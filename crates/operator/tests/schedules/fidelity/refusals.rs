//! Requests that the API server refuses, or that change nothing.

use ::api::names::{PROFILE_LABEL, field_manager};
use http::Method;
use serde_json::{Value, json};

use super::{CONFIGS, DENSITY, DESCHEDULERS, HCO, LOAD_AWARE, MACHINE_CONFIGS, RECORDS};
use crate::{
    client::{APPLY, JSON, MERGE},
    recorder::Recorder,
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/openshift-cnv/leases";

/// Requests that a life cycle makes seldom or never: conflicts, preconditions that fail, missing objects, the lease.
pub(super) async fn refusals(recorder: &Recorder) {
    let send =
        async |method: Method, uri: &str, content: &str, body: Value| recorder.send(method, uri, content, &body).await;
    let ours = |query: &str| {
        format!("{DESCHEDULERS}/cluster?{query}fieldManager={}&fieldValidation=Strict", field_manager(LOAD_AWARE))
    };
    let descheduler = |metadata: Value, spec: Value| {
        let mut all = json!({"name": "cluster", "namespace": "openshift-kube-descheduler-operator"});
        all.as_object_mut().unwrap().extend(metadata.as_object().cloned().unwrap_or_default());
        json!({"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "metadata": all, "spec": spec})
    };
    let (_, live) = send(Method::GET, &format!("{DESCHEDULERS}/cluster"), "", Value::Null).await;
    let (uid, version) = (live["metadata"]["uid"].clone(), live["metadata"]["resourceVersion"].clone());
    let here = json!({"uid": uid, "resourceVersion": version});
    let interval = |seconds: u64| json!({"deschedulingIntervalSeconds": seconds});
    // Somebody else takes a field: an apply conflicts, and one for the former version is refused.
    send(
        Method::PATCH,
        &format!("{DESCHEDULERS}/cluster?fieldManager=kubectl-edit"),
        MERGE,
        json!({"spec": interval(77)}),
    )
    .await;
    for query in ["dryRun=All&", "", "dryRun=All&force=true&"] {
        send(Method::PATCH, &ours(query), APPLY, descheduler(json!({}), interval(60))).await;
        send(Method::PATCH, &ours(query), APPLY, descheduler(here.clone(), interval(60))).await;
        send(Method::PATCH, &ours(query), APPLY, descheduler(json!({"resourceVersion": "1"}), interval(60))).await;
    }
    send(Method::PATCH, &ours("force=true&"), APPLY, descheduler(json!({}), interval(60))).await;
    send(Method::PATCH, &ours("force=true&"), APPLY, descheduler(json!({}), interval(60))).await;
    let other = json!({"uid": "00000000-0000-4000-8000-000000000000"});
    send(Method::PATCH, &ours("force=true&"), APPLY, descheduler(other.clone(), interval(60))).await;
    // The removal of a field, with a wrong and with the right version.
    let (_, live) = send(Method::GET, HCO, "", Value::Null).await;
    let patch = |version: &Value| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "remove", "path": "/spec/evictionStrategy"},
        ])
    };
    for (query, version) in [("", json!("1")), ("?dryRun=All", live["metadata"]["resourceVersion"].clone())] {
        send(Method::PATCH, &format!("{HCO}{query}"), "application/json-patch+json", patch(&version)).await;
    }
    // Deletions.
    let config = format!("{MACHINE_CONFIGS}/90-worker-kubelet-swap");
    let (_, live) = send(Method::GET, &config, "", Value::Null).await;
    let right = json!({"uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"]});
    let wrong = json!({"uid": live["metadata"]["uid"], "resourceVersion": "1"});
    let deletion = |preconditions: &Value, dry: bool| {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        if dry {
            options["dryRun"] = json!(["All"]);
        }
        options
    };
    for (preconditions, dry) in
        [(&wrong, true), (&wrong, false), (&other, false), (&right, true), (&right, false), (&right, false)]
    {
        send(Method::DELETE, &config, JSON, deletion(preconditions, dry)).await;
    }
    let swap = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "90-worker-kubelet-swap", "uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"]},
        "spec": {"kernelArguments": ["quiet"]},
    });
    let apply = format!("{config}?fieldManager={}&force=true", field_manager(DENSITY));
    send(Method::PATCH, &apply, APPLY, swap.clone()).await;
    let mut again = swap.clone();
    again["metadata"] = json!({"name": "90-worker-kubelet-swap", "resourceVersion": "1"});
    send(Method::PATCH, &format!("{apply}&dryRun=All"), APPLY, again.clone()).await;
    send(Method::PATCH, &apply, APPLY, again.clone()).await;
    send(Method::PATCH, &apply, APPLY, again).await;
    // Missing objects, and a missing namespace.
    send(Method::GET, &format!("{DESCHEDULERS}/none"), "", Value::Null).await;
    send(Method::GET, "/apis/hco.kubevirt.io/v1/namespaces/openshift-cnv/hyperconvergeds/x", "", Value::Null).await;
    let elsewhere = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "nowhere"}, "spec": {"mode": "Automatic"},
    });
    let nowhere =
        "/apis/operator.openshift.io/v1/namespaces/nowhere/kubedeschedulers/cluster?fieldManager=x&force=true";
    send(Method::PATCH, nowhere, APPLY, elsewhere).await;
    // A status update of an old version, and the creation of a configuration that exists.
    let (_, config) = send(Method::GET, &format!("{CONFIGS}/{LOAD_AWARE}"), "", Value::Null).await;
    let mut old = config.clone();
    old["metadata"]["resourceVersion"] = "1".into();
    old["metadata"]["managedFields"] = json!([]);
    send(Method::PUT, &format!("{CONFIGS}/{LOAD_AWARE}/status"), JSON, old).await;
    let offer = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": LOAD_AWARE}, "spec": {"profile": LOAD_AWARE, "action": "Ignore"},
    });
    send(Method::POST, CONFIGS, JSON, offer).await;
    // The lease.
    let lease = |holder: &str, version: Option<&Value>| {
        let mut metadata = json!({"name": "it", "namespace": "openshift-cnv"});
        if let Some(version) = version {
            metadata["resourceVersion"] = version.clone();
        }
        let spec = json!({"holderIdentity": holder, "leaseTransitions": 0, "leaseDurationSeconds": 15});
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    };
    send(Method::GET, &format!("{LEASES}/it"), "", Value::Null).await;
    let (_, created) = send(Method::POST, LEASES, JSON, lease("a", None)).await;
    send(Method::POST, LEASES, JSON, lease("b", None)).await;
    let version = &created["metadata"]["resourceVersion"];
    send(Method::PUT, &format!("{LEASES}/it"), JSON, lease("b", Some(version))).await;
    send(Method::PUT, &format!("{LEASES}/it"), JSON, lease("c", Some(version))).await;
}

/// Nobody changes what a record says, nor a record that is finished.
pub(super) async fn records(recorder: &Recorder) {
    let send =
        async |method: Method, uri: &str, content: &str, body: Value| recorder.send(method, uri, content, &body).await;
    for profile in [LOAD_AWARE, DENSITY, "none"] {
        send(Method::GET, &format!("{RECORDS}?labelSelector={PROFILE_LABEL}%3D{profile}"), "", Value::Null).await;
    }
    let first = format!("{RECORDS}/{LOAD_AWARE}-1");
    let (_, record) = send(Method::GET, &first, "", Value::Null).await;
    let edits = [json!({"spec": {"operatorVersion": "x"}}), json!({"metadata": {"labels": {"team": "a"}}})];
    for edit in edits {
        send(Method::PATCH, &format!("{first}?fieldManager=kubectl-edit"), MERGE, edit).await;
    }
    let status = format!("{first}/status?fieldManager=kubectl-edit");
    for outcome in [record["status"]["outcome"].clone(), json!("Failed")] {
        send(Method::PATCH, &status, MERGE, json!({"status": {"outcome": outcome}})).await;
    }
    let mut new = json!({"apiVersion": record["apiVersion"], "kind": record["kind"], "spec": record["spec"]});
    for name in [format!("{LOAD_AWARE}-1"), format!("{LOAD_AWARE}-x"), format!("{LOAD_AWARE}-99")] {
        new["metadata"] = json!({"name": name, "labels": {PROFILE_LABEL: LOAD_AWARE}});
        send(Method::POST, &format!("{RECORDS}?fieldManager=kubectl-create"), JSON, new.clone()).await;
    }
    let last = format!("{RECORDS}/{LOAD_AWARE}-99");
    for finished in [false, true, true] {
        let time = finished.then_some("2026-01-01T00:00:00Z");
        let status = json!({"status": {"outcome": "Superseded", "message": "it was stopped", "finishedAt": time}});
        send(Method::PATCH, &format!("{last}/status?fieldManager=kubectl-edit"), MERGE, status).await;
    }
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    for _ in 0..2 {
        send(Method::DELETE, &last, JSON, options.clone()).await;
    }
    send(Method::PATCH, &format!("{last}/status"), MERGE, json!({"status": {"outcome": "Failed"}})).await;
}
