//! Two operators, as processes of their own: one leads, and when it is stopped the other one does, and never both.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    time::{Duration, Instant},
};

use devcluster::{Cluster, Identity, Request, RunningProgram};
use kube::Client;
use serde_json::{Value, json};

const TIMES: [&str; 3] =
    ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=300ms"];
const TIMEOUT: Duration = Duration::from_secs(30);
const CONFIG: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/example-profile";
const TARGET: &str = "/api/v1/namespaces/openshift-cnv/configmaps/example-config";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/openshift-cnv/leases/virt-advisor-operator";

struct Replica {
    user: String,
    probes: SocketAddr,
    process: RunningProgram,
}

impl Replica {
    async fn start(cluster: &Cluster, user: &str) -> Replica {
        let probes = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let address = format!("--health-probe-bind-address={probes}");
        let mut args = vec!["operator", "--leader-elect", "--leader-election-namespace=openshift-cnv", &address];
        args.extend(TIMES);
        let who = Identity::user(user, &[]);
        let program = Path::new(env!("CARGO_BIN_EXE_virt-advisor"));
        let process = cluster.access().run(&who, "virt-advisor", program, &args).await.unwrap();
        Replica { user: user.to_owned(), probes, process }
    }

    fn signal(&self, signal: &str) {
        let status = std::process::Command::new("kill").args([signal, &self.process.pid().to_string()]).status();
        assert!(status.unwrap().success());
    }

    fn answers(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.probes).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

async fn request(client: &Client, method: &str, uri: &str, content: &str, body: Value) -> Option<Value> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(uri).header("content-type", content).body(body).unwrap();
    client.request(request).await.ok()
}

async fn get(client: &Client, uri: &str) -> Value {
    request(client, "GET", uri, "application/json", Value::Null).await.unwrap_or_default()
}

async fn until(client: &Client, uri: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let object = get(client, uri).await;
        if holds(&object) {
            return object;
        }
        assert!(start.elapsed() < TIMEOUT, "never {what}: {object:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Gives users the roles that the operator is installed with, and nothing else. They have to be told apart, so they are not
/// its account.
async fn grant(client: &Client, users: &[&str]) {
    let subject = |user: &&str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user});
    for file in ["role.yaml", "role_binding.yaml"] {
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
        let start = Instant::now();
        loop {
            let uri = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let answer = request(client, "POST", uri, "application/json", review.clone()).await.unwrap();
            if answer["status"]["allowed"] == true {
                break;
            }
            assert!(start.elapsed() < TIMEOUT, "never granted: {answer:#}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn is_about_work(request: &&Request) -> bool {
    request.is_write() && request.resource != "leases" && request.resource != "events"
}

/// One leads and writes, both answer probes; a leader that is stopped is followed, and when it wakes up it has nothing to
/// say any more.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_leads_and_a_leader_that_was_stopped_writes_nothing_when_it_wakes_up() {
    let cluster = Cluster::builder().start().await.unwrap();
    let client = cluster.access().client().await.unwrap();
    cluster.access().install_crds(&api::crd::crds()).await.unwrap();
    let namespace = json!({"metadata": {"name": "openshift-cnv"}});
    request(&client, "POST", "/api/v1/namespaces", "application/json", namespace).await.unwrap();
    let config = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1",
        "kind": "VirtPlatformConfig",
        "metadata": {"name": "example-profile"},
        "spec": {"profile": "example-profile", "action": "Apply", "bypassOptimisticLock": true},
    });
    let collection = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs";
    request(&client, "POST", collection, "application/json", config).await.unwrap();

    grant(&client, &["replica-a", "replica-b"]).await;
    let position = cluster.audit().position(&client).await.unwrap();
    let beginning = position;
    let replicas = [Replica::start(&cluster, "replica-a").await, Replica::start(&cluster, "replica-b").await];
    let completed = |config: &Value| config["status"]["phase"] == "Completed";
    let first = until(&client, CONFIG, "completed", completed).await;
    assert_eq!(first["status"]["leaderEpoch"], 0);
    for replica in &replicas {
        for path in ["/healthz", "/readyz"] {
            let answer = replica.answers(path);
            assert!(answer.starts_with("HTTP/1.1 200"), "{}: {path}: {answer}", replica.user);
        }
    }
    let seen = cluster.audit().since(position, &client).await.unwrap();
    let writers: Vec<&str> = seen.iter().filter(is_about_work).map(|request| request.user.as_str()).collect();
    let [leader, follower] = if writers.contains(&"replica-a") { [0, 1] } else { [1, 0] }.map(|at| &replicas[at]);
    assert!(writers.iter().all(|writer| *writer == leader.user || *writer == "admin"), "{writers:?}");

    let position = cluster.audit().position(&client).await.unwrap();
    leader.signal("-STOP");
    // Something to do for whoever leads.
    let edit = json!({"data": {"example-key": "somebody else's"}});
    request(&client, "PATCH", TARGET, "application/merge-patch+json", edit).await.unwrap();
    until(&client, CONFIG, "taken over", |config| config["status"]["leaderEpoch"] == 1 && completed(config)).await;
    until(&client, TARGET, "reverted", |target| target["data"]["example-key"] == "example-value").await;

    leader.signal("-CONT");
    let start = Instant::now();
    while leader.process.exit_status().is_none() {
        assert!(start.elapsed() < TIMEOUT, "it goes on: {}", leader.process.log_tail());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!leader.process.exit_status().unwrap().success(), "so that it is started again");
    let seen = cluster.audit().since(position, &client).await.unwrap();
    let late: Vec<_> = seen.iter().filter(is_about_work).filter(|request| request.user == leader.user).collect();
    assert!(late.iter().all(|request| !request.succeeded()), "{late:?}");

    follower.process.stop(Duration::from_secs(5)).await.unwrap();
    let lease = get(&client, LEASE).await;
    assert_eq!(lease["spec"]["holderIdentity"], "", "given up, so that the next one need not wait");
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    for replica in &replicas {
        let refused = cluster.audit().refusals_since(beginning, &client, &replica.user).await.unwrap();
        assert!(refused.is_empty(), "the rights that it is shipped with do not suffice: {refused:?}");
    }
}
