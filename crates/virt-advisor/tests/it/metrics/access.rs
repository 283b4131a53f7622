//! Who may read metrics and change the log level, with the real API server as the judge.

use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::within;

use super::{Credentials, Site, USER, new_ca, write_certificate};
use crate::replica::{TIMEOUT, request};

const PROMETHEUS: &str = "system:serviceaccount:openshift-monitoring:prometheus-k8s";

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_those_whom_the_api_server_lets() {
    let site = Site::start().await;
    let beginning = site.cluster.audit().position(&site.client).await.unwrap();
    let reader = Credentials::Token(site.token("reader").await);
    let text = site.metrics(&reader, "phase=\"ReviewRequired\"").await;
    assert!(text.contains("kubevirt_advisor_leader 1.0\n"), "{text}");
    assert!(text.contains("kubevirt_advisor_review_age_seconds{profile=\"example-profile\"}"), "{text}");
    assert!(text.contains("kubevirt_advisor_api_requests_total{verb=\"update\",code=\"200\"}"), "{text}");
    let types = site.get(&reader, "/metrics").await.content_type;
    assert_eq!(types.as_deref(), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    every_credential_is_judged(&site, &reader).await;
    scrapes_cost_no_requests(&site, &reader).await;
    the_log_level_is_changed_at_run_time(&site).await;
    let refused = site.cluster.audit().refusals_since(beginning, &site.client, USER).await.unwrap();
    assert!(refused.is_empty(), "the rights that it is shipped with do not suffice: {refused:?}");
    without_the_right_to_review_only_certificates_count(&site).await;
    certificates_are_read_again(&site).await;
}

async fn every_credential_is_judged(site: &Site, reader: &Credentials) {
    let stranger = Credentials::Token(site.token("stranger").await);
    let boss = Credentials::Token(site.token("boss").await);
    let certificate = |name: &str| Credentials::Certificate(site.cluster.client_certificate(name, "x").unwrap());
    let (prometheus, other) = (certificate(PROMETHEUS), certificate("system:node:n"));
    // Until the CA was read, no certificate is asked for.
    let is_known = async || (site.get(&prometheus, "/metrics").await.code == 200).then_some(());
    within(TIMEOUT, "a certificate is known", is_known).await;
    let garbage = Credentials::Token("garbage".into());
    let cases = [
        ("a reader", reader, "GET", "/metrics", 200),
        ("somebody without the right", &stranger, "GET", "/metrics", 403),
        ("a wrong token", &garbage, "GET", "/metrics", 401),
        ("nobody", &Credentials::Nothing, "GET", "/metrics", 401),
        ("prometheus by its certificate", &prometheus, "GET", "/metrics", 200),
        ("another certificate", &other, "GET", "/metrics", 401),
        ("prometheus at the log level", &prometheus, "GET", "/loglevel", 401),
        ("a reader at the log level", reader, "GET", "/loglevel", 403),
        ("a reader changes the log level", reader, "PUT", "/loglevel", 403),
        ("who may change the log level", &boss, "GET", "/loglevel", 200),
        ("who may change the log level reads metrics", &boss, "GET", "/metrics", 403),
        ("a path that there is not", reader, "GET", "/secrets", 404),
    ];
    for (case, who, method, path, code) in cases {
        let answer = site.ask(&site.ca.pem(), who, method, path, "trace").await.unwrap();
        assert_eq!(answer.code, code, "{case}: {answer:?}");
        assert!(code != 403 || answer.text.starts_with("Authorization denied for user "), "{case}: {answer:?}");
    }
    // Who trusts another CA does not talk to it, and a certificate of another CA is no certificate.
    assert!(site.ask(&new_ca("other").pem(), reader, "GET", "/metrics", "").await.is_err());
}

/// By a certificate none at all; by a token one review each at most, while the answers are kept.
async fn scrapes_cost_no_requests(site: &Site, reader: &Credentials) {
    let prometheus = Credentials::Certificate(site.cluster.client_certificate(PROMETHEUS, "x").unwrap());
    for (who, most) in [(&prometheus, 0), (reader, 1)] {
        let position = site.cluster.audit().position(&site.client).await.unwrap();
        for _ in 0..10 {
            assert_eq!(site.get(who, "/metrics").await.code, 200);
        }
        let requests = site.cluster.audit().since(position, &site.client).await.unwrap();
        for resource in ["tokenreviews", "subjectaccessreviews"] {
            let count = requests.iter().filter(|request| request.resource == resource && request.code > 0).count();
            // Requests that change something are logged when they arrive and when they are answered.
            assert!(count <= 2 * most, "{count} {resource}");
        }
    }
}

async fn the_log_level_is_changed_at_run_time(site: &Site) {
    let boss = Credentials::Token(site.token("boss").await);
    let put = async |filter: &str| site.ask(&site.ca.pem(), &boss, "PUT", "/loglevel", filter).await.unwrap();
    assert_eq!(site.get(&boss, "/loglevel").await.text, "info\n");
    let log = || std::fs::read_to_string(site.replica.process.log()).unwrap();
    let told = |log: &str| -> Vec<Value> {
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["message"] == "request").collect()
    };
    assert!(log().lines().all(|line| line.starts_with('{')), "JSON, because that is no terminal: {}", log());
    assert!(told(&log()).is_empty());
    assert_eq!(put("info,=x=").await.code, 400);
    assert_eq!(put("warning").await.code, 400, "a mistyped level would silence the log");
    assert_eq!(put(&"x".repeat(2000)).await.code, 413);
    assert_eq!(put("info,kube_io=debug").await.text, "info,kube_io=debug\n");
    // The lease is renewed several times a second.
    let request = within(TIMEOUT, "a request is in the log", async || told(&log()).into_iter().next()).await;
    assert!(request["verb"].is_string() && request["path"].is_string(), "{request}");
    assert!(request["code"].is_u64() && request["took"].is_string(), "{request}");
    assert_eq!(put("error").await.code, 200);
    let is_told = async || log().contains("\"to\":\"error\"").then_some(());
    within(TIMEOUT, "what hides lines of the log is in the log, too", is_told).await;
    assert_eq!(put("info").await.code, 200);
    assert!(!log().contains("eyJ"), "no token is in the log");
}

async fn without_the_right_to_review_only_certificates_count(site: &Site) {
    let prometheus = Credentials::Certificate(site.cluster.client_certificate(PROMETHEUS, "x").unwrap());
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/metrics-auth-rolebinding";
    request(&site.client, "DELETE", binding, "application/json", Value::Null).await.unwrap();
    let start = Instant::now();
    loop {
        // Nobody knows this token yet.
        let code = site.get(&Credentials::Token(site.token("reader").await), "/metrics").await.code;
        if code == 500 {
            break;
        }
        assert!(code == 200 && start.elapsed() < TIMEOUT, "{code}");
        // So that the next token is another one: it holds its time in seconds.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(site.get(&prometheus, "/metrics").await.code, 200);
    let is_told = async || {
        let log = site.replica.process.log_tail();
        (log.contains("cannot find out who asks") && log.contains("tokenreviews")).then_some(())
    };
    within(TIMEOUT, "the log tells why", is_told).await;
}

async fn certificates_are_read_again(site: &Site) {
    let prometheus = Credentials::Certificate(site.cluster.client_certificate(PROMETHEUS, "x").unwrap());
    let second = new_ca("second");
    write_certificate(site.certificates.path(), &second);
    let is_served = async || {
        let answer = site.ask(&second.pem(), &prometheus, "GET", "/metrics", "").await;
        answer.is_ok_and(|answer| answer.code == 200).then_some(())
    };
    within(TIMEOUT, "the new certificate is served", is_served).await;
    assert!(site.ask(&site.ca.pem(), &prometheus, "GET", "/metrics", "").await.is_err(), "the old one is not served");
}
