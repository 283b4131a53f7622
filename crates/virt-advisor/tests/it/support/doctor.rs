//! `virt-advisor doctor`: what it says about a healthy cluster, and about what may be wrong with one.

use std::time::Instant;

use devcluster::{Cluster, Identity};
use serde_json::Value;

use crate::published;

use super::{LIMIT, VERSION, kubectl, program, run_as, settled, site, text};

const NOBODY: &str = "nobody";

async fn doctor(cluster: &Cluster, who: &Identity, args: &[&str]) -> (Option<i32>, String) {
    let args: Vec<&str> = [&["doctor"], args].concat();
    let output = run_as(cluster.access(), who, &program(), &args, &[]).await;
    assert_eq!(text(&output.stderr), "", "{args:?}");
    (output.status.code(), text(&output.stdout))
}

async fn report(cluster: &Cluster, who: &Identity) -> (Option<i32>, Value) {
    let output = run_as(cluster.access(), who, &program(), &["doctor", "-o", "json"], &[]).await;
    (output.status.code(), published::document(&output))
}

/// `level message` of the first finding of a check.
fn told(report: &Value, check: &str) -> String {
    let findings = report["findings"].as_array().unwrap();
    let finding =
        findings.iter().find(|finding| finding["check"] == check).unwrap_or_else(|| panic!("{check}: {report:#}"));
    format!("{} {}", finding["level"].as_str().unwrap(), finding["message"].as_str().unwrap())
}

#[tokio::test]
async fn a_healthy_cluster_is_told_in_one_screen() {
    let (code, text) = doctor(&site().await.cluster, &Identity::Admin, &[]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 24, "one screen: {text}");
    assert!(!text.contains('\u{1b}'), "no colors where nobody looks: {text:?}");
    insta::assert_snapshot!("doctor", settled(&text));
}

#[tokio::test]
async fn the_result_for_programs_has_a_stable_shape() {
    let (code, report) = report(&site().await.cluster, &Identity::Admin).await;
    assert_eq!((code, &report["healthy"], &report["kind"]), (Some(0), &Value::Bool(true), &"DoctorReport".into()));
    let checks: Vec<_> =
        report["findings"].as_array().unwrap().iter().map(|finding| finding["check"].as_str().unwrap()).collect();
    for check in [
        "API server",
        "definitions",
        "version",
        "operator",
        "leader",
        "your rights",
        "its rights",
        "its watches",
        "clock",
        "webhooks",
        "prerequisites",
        "other managers",
        "configurations",
    ] {
        assert!(checks.contains(&check), "{check} is not in {checks:?}");
    }
}

#[tokio::test]
async fn a_viewer_is_told_what_could_not_be_checked_and_it_is_no_problem() {
    let (code, report) = report(&site().await.cluster, &Identity::user("victor", &[])).await;
    assert_eq!(code, Some(0), "{report:#}");
    for (check, expected) in [
        ("definitions", "ok served; their schemas may not be compared: forbidden (403)"),
        ("your rights", "ok you may see configurations"),
        ("its rights", "unknown the operator's rights may not be asked for: forbidden (403)"),
        ("operator", "unknown Deployments in openshift-cnv: forbidden (403)"),
        ("leader", "unknown its lease: forbidden (403)"),
        ("webhooks", "unknown they may not be listed: forbidden (403)"),
        ("clock", "ok this machine and the API server agree"),
    ] {
        assert_eq!(told(&report, check), expected);
    }
}

#[tokio::test]
async fn without_any_right_the_first_thing_to_do_is_to_ask_for_one() {
    let (code, report) = report(&site().await.cluster, &Identity::user(NOBODY, &[])).await;
    assert_eq!((code, &report["healthy"]), (Some(1), &Value::Bool(false)));
    assert_eq!(told(&report, "your rights"), "problem you may not see configurations");
    let every_problem_has_a_remedy = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .all(|finding| finding["level"] != "problem" || finding["remedy"].is_string());
    assert!(every_problem_has_a_remedy, "{report:#}");
}

#[tokio::test]
async fn a_doctor_changes_nothing() {
    let cluster = &site().await.cluster;
    let client = cluster.access().client().await.unwrap();
    let start = cluster.audit().position(&client).await.unwrap();
    doctor(cluster, &Identity::Admin, &[]).await;
    let all = cluster.audit().since(start, &client).await.unwrap();
    let own: Vec<_> = all.iter().filter(|request| request.user_agent == api::user_agent("doctor")).collect();
    assert!(!own.is_empty(), "the requests were seen");
    let writes: Vec<_> = own
        .iter()
        .filter(|request| request.verb != "get" && request.verb != "list")
        .map(|request| request.resource.as_str())
        .collect();
    let is_review = |resource: &&str| resource.ends_with("subjectaccessreviews");
    assert!(writes.iter().all(is_review), "{writes:?}");
}

#[tokio::test]
async fn what_is_missing_is_told_one_after_the_other_with_what_to_do() {
    let cluster = Cluster::builder().start().await.unwrap();
    let access = cluster.access();
    let (code, nothing) = report(&cluster, &Identity::Admin).await;
    assert_eq!(code, Some(1));
    assert_eq!(told(&nothing, "definitions"), "problem virtplatformconfigs.advisor.kubevirt.io is not installed");
    assert_eq!(told(&nothing, "operator"), "problem there is no Deployment of it in openshift-cnv");

    kubectl(access, &["create", "namespace", "openshift-cnv"]).await;
    kubectl(access, &["apply", "--server-side", "-k", "config/default"]).await;
    kubectl(access, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await;
    let (code, installed) = report(&cluster, &Identity::Admin).await;
    assert_eq!(code, Some(1));
    assert_eq!(told(&installed, "definitions"), format!("ok installed, as version {VERSION} has them"));
    let deployment = "openshift-cnv/virt-advisor-operator-controller-manager";
    assert_eq!(
        told(&installed, "operator"),
        format!("problem 0 of 2 replicas of Deployment {deployment} are available")
    );
    assert_eq!(told(&installed, "leader"), "warning there is no lease openshift-cnv/virt-advisor-operator");
    assert!(told(&installed, "its rights").starts_with("ok "), "{installed:#}");
    assert!(
        told(&installed, "prerequisites").starts_with("ok load-aware-rebalancing is not in use; it would need "),
        "{installed:#}"
    );

    kubectl(access, &["delete", "clusterrolebinding", "virt-advisor-operator-manager-rolebinding"]).await;
    kubectl(access, &["patch", "crd", "virtplatformconfigs.advisor.kubevirt.io", "--type=json", "-p",
        r#"[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/notes"}]"#]).await;
    let start = Instant::now();
    let broken = loop {
        let (_, broken) = report(&cluster, &Identity::Admin).await;
        // The API server acts on roles a moment after it was told.
        if told(&broken, "its rights").starts_with("problem the operator may not create virtplatformconfigs") {
            break broken;
        }
        assert!(start.elapsed() < LIMIT, "{broken:#}");
    };
    assert!(told(&broken, "its watches").starts_with("problem the operator may not "), "{broken:#}");
    assert!(
        told(&broken, "definitions").starts_with("warning virtplatformconfigs.advisor.kubevirt.io is not as version"),
        "{broken:#}"
    );
}

#[test]
fn an_api_server_that_does_not_answer_is_the_only_finding() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {}}],
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    });
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let output = std::process::Command::new(program())
        .arg("doctor")
        .env("KUBECONFIG", path)
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output.stdout);
    assert!(text.starts_with("x problem  API server: http://127.0.0.1:1/ does not answer: "), "{text}");
    assert!(text.ends_with("\n1 problem.\n"), "{text}");
}
