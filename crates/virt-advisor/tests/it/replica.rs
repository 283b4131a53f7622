//! The operator as a process of its own, under a user of its own, and what tests of it ask the API server.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    path::Path,
    process::ExitStatus,
    time::Duration,
};

use devcluster::{AuditedRequest, Cluster, Identity, Port, RunningProgram};
use kube::Client;
use serde_json::{Value, json};
use testkit::poll;

use crate::support::LIMIT;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(100);
pub(crate) const CONFIG: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/example-profile";
pub(crate) const TARGET: &str = "/api/v1/namespaces/openshift-cnv/configmaps/example-config";
pub(crate) const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/openshift-cnv/leases/virt-advisor-operator";

/// So that nobody has to wait long for another leader, and a leader on a busy machine does not lose its lease.
pub(crate) const SHORT_LEASE: [&str; 3] =
    ["--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=300ms"];

pub(crate) struct Replica {
    pub(crate) user: String,
    probes: Port,
    pub(crate) process: RunningProgram,
}

impl Replica {
    /// Starts an operator with a lease.
    pub(crate) async fn start(cluster: &Cluster, user: &str, more: &[&str]) -> Replica {
        let probes = Port::reserve().unwrap();
        let address = format!("--health-probe-bind-address={}", probes.address());
        let mut args = vec!["operator", "--leader-elect", "--leader-election-namespace=openshift-cnv", &address];
        args.extend(more);
        let who = Identity::user(user, &[]);
        let program = Path::new(env!("CARGO_BIN_EXE_virt-advisor"));
        let process = cluster.access().run(&who, "virt-advisor", program, &args).await.unwrap();
        Replica { user: user.to_owned(), probes, process }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = std::process::Command::new("kill").args([signal, &self.process.pid().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// What a probe is answered; nothing while the operator does not listen yet.
    pub(crate) fn answers(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.probes.address())?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

pub(crate) async fn request(client: &Client, method: &str, uri: &str, content: &str, body: Value) -> Option<Value> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(uri).header("content-type", content).body(body).unwrap();
    client.request(request).await.ok()
}

pub(crate) async fn get(client: &Client, uri: &str) -> Value {
    request(client, "GET", uri, "application/json", Value::Null).await.unwrap_or_default()
}

pub(crate) async fn until(client: &Client, uri: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let found = async || {
        let object = get(client, uri).await;
        if holds(&object) { Ok(object) } else { Err(object) }
    };
    poll(TIMEOUT, found).await.unwrap_or_else(|object| panic!("never {what}: {object:#}"))
}

/// Waits until a program has ended, and returns how.
pub(crate) async fn end(program: &RunningProgram) -> ExitStatus {
    let ended = poll(LIMIT, async || program.exit_status().ok_or(())).await;
    ended.unwrap_or_else(|()| panic!("it goes on:\n{}", program.log_tail()))
}

/// Gives users the roles that the operator is installed with, and nothing else. They have to be told apart, so they are not
/// its account.
pub(crate) async fn grant(client: &Client, users: &[&str]) {
    let subject = |user: &&str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user});
    for file in ["role.yaml", "role_binding.yaml", "metrics.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/rbac").join(file);
        let documents: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap();
        for mut object in documents {
            if object.get("subjects").is_some() {
                object["subjects"] = users.iter().map(subject).collect();
            }
            let namespace =
                object["metadata"]["namespace"].as_str().map(|namespace| format!("/namespaces/{namespace}"));
            let plural = object["kind"].as_str().unwrap().to_lowercase();
            let uri = format!("/apis/rbac.authorization.k8s.io/v1{}/{plural}s", namespace.unwrap_or_default());
            request(client, "POST", &uri, "application/json", object).await.unwrap();
        }
    }
    // The API server acts on roles a moment after it was told.
    let last = json!({"verb": "create", "group": "events.k8s.io", "resource": "events", "namespace": "default"});
    for user in users {
        let review = json!({"spec": {"user": user, "resourceAttributes": last}});
        let uri = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let granted = async || {
            let answer = request(client, "POST", uri, "application/json", review.clone()).await.unwrap();
            if answer["status"]["allowed"] == true { Ok(()) } else { Err(answer) }
        };
        poll(TIMEOUT, granted).await.unwrap_or_else(|answer| panic!("never granted to {user}: {answer:#}"));
    }
}

pub(crate) fn is_about_work(request: &&AuditedRequest) -> bool {
    request.is_write() && request.resource != "leases" && request.resource != "events"
}

/// Installs the definitions, and a configuration of the example profile.
pub(crate) async fn prepare(cluster: &Cluster, action: &str) -> Client {
    let client = cluster.access().client().await.unwrap();
    cluster.access().install_crds(&api::crd::crds()).await.unwrap();
    let namespace = json!({"metadata": {"name": "openshift-cnv"}});
    request(&client, "POST", "/api/v1/namespaces", "application/json", namespace).await.unwrap();
    let config = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1",
        "kind": "VirtPlatformConfig",
        "metadata": {"name": "example-profile"},
        "spec": {"profile": "example-profile", "action": action, "bypassOptimisticLock": true},
    });
    let collection = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs";
    request(&client, "POST", collection, "application/json", config).await.unwrap();
    client
}
