//! `virt-advisor gather` in a pod: it reads the metrics of every replica with its own token, and tells nobody else that token.

use devcluster::Identity;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Credentials, NAMESPACE, Site, create, new_ca};
use crate::{
    replica::request,
    support::{program, run_as, text},
};

const POD: &str = "virt-advisor-operator-0";

/// A pod of the operator, at the address where the operator of the test serves its metrics.
async fn add_pod(site: &Site) {
    let port: u16 = site.address.rsplit(':').next().unwrap().parse().unwrap();
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let ports = json!([{"name": "metrics", "containerPort": port}]);
    let pod = json!({
        "metadata": {"name": POD, "labels": {"app.kubernetes.io/name": "virt-advisor-operator"}},
        "spec": {"containers": [{"name": "manager", "image": "x", "ports": ports}], "automountServiceAccountToken": false},
    });
    request(&site.client, "POST", &pods, "application/json", pod).await.unwrap();
    let status = json!({"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}});
    let uri = format!("{pods}/{POD}/status");
    request(&site.client, "PATCH", &uri, "application/merge-patch+json", status).await.unwrap();
}

/// Lets an account see pods. `view` would not do: nobody here fills it with the rules of other roles.
async fn let_view(site: &Site, account: &str) {
    let name = format!("{account}-views");
    let rule = json!({"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list"]});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    create(&site.client, roles, &name, json!({"rules": [rule]})).await;
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    create(&site.client, bindings, &name, binding).await;
}

/// Collects with the token of an account, and with a CA for the operator's certificate.
async fn gather(site: &Site, account: &str, ca: &str) -> (TempDir, Value) {
    gather_with(site, account, ca, &[]).await
}

async fn gather_with(site: &Site, account: &str, ca: &str, more: &[&str]) -> (TempDir, Value) {
    let folder = tempfile::tempdir().unwrap();
    let (ca_file, out) = (folder.path().join("ca.crt"), folder.path().join("out"));
    std::fs::write(&ca_file, ca).unwrap();
    let args = ["gather", "--metrics-ca", ca_file.to_str().unwrap(), "-o", out.to_str().unwrap()];
    let who = Identity::service_account(NAMESPACE, account);
    let output = run_as(site.cluster.access(), &who, &program(), &[&args[..], more].concat(), &[]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let index = serde_json::from_str(&std::fs::read_to_string(out.join("index.json")).unwrap()).unwrap();
    (folder, index)
}

fn entry<'a>(index: &'a Value, what: &str) -> &'a Value {
    let entries = index["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["what"] == what).unwrap_or_else(|| panic!("{what} is not in {index:#}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn gather_reads_the_metrics_of_a_secured_operator() {
    let site = Site::start().await;
    add_pod(&site).await;
    let reader = Credentials::Token(site.token("reader").await);
    site.metrics(&reader, "phase=\"ReviewRequired\"").await;
    let_view(&site, "reader").await;
    let_view(&site, "stranger").await;
    they_are_read_from_the_pod(&site).await;
    they_are_read_through_a_forwarded_port(&site).await;
}

async fn they_are_read_from_the_pod(site: &Site) {
    let (folder, index) = gather(site, "reader", &site.ca.pem()).await;
    let metrics = format!("metrics of pod {POD}");
    assert_eq!(entry(&index, &metrics)["state"], "collected", "{index:#}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out/virt-advisor/metrics").join(name)).unwrap();
    assert!(read(&format!("{POD}.txt")).contains("kubevirt_advisor_leader 1"));
    assert!(read(&format!("{POD}-requests.txt")).contains("kubevirt_advisor_api_requests_total{verb=\"update\""));

    let (_, index) = gather(site, "stranger", &site.ca.pem()).await;
    assert_eq!(entry(&index, &metrics)["reason"], "forbidden (403)");

    // Whoever answers there without the right certificate does not get the token.
    let (_, index) = gather(site, "reader", &new_ca("other").pem()).await;
    assert_eq!(entry(&index, &metrics)["reason"], "no answer", "{index:#}");
}

/// What is forwarded ends at the operator's own port, so its address stands for the forwarded one.
async fn they_are_read_through_a_forwarded_port(site: &Site) {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, site.token("reader").await).unwrap();
    let url = format!("https://{}", site.address);
    let args = ["--metrics-url", &url, "--metrics-token-file", token.to_str().unwrap()];
    let (out, index) = gather_with(site, "stranger", &site.ca.pem(), &args).await;
    assert_eq!(entry(&index, "metrics of the operator")["state"], "collected", "{index:#}");
    let read = out.path().join("out/virt-advisor/metrics/virt-advisor-operator-metrics.txt");
    assert!(std::fs::read_to_string(read).unwrap().contains("kubevirt_advisor_leader 1"));

    let (_, index) = gather_with(site, "stranger", &site.ca.pem(), &args[..2]).await;
    assert_eq!(entry(&index, &format!("metrics of the operator, from {url}"))["reason"], "forbidden (403)");
}
