//! The port of the metrics as it is deployed: the Service, and the roles for those who ask.

use devcluster::Identity;
use serde_json::{Value, json};
use testkit::eventually;

use super::{NAMESPACE, can, cluster};
use crate::commands::{kubectl, printed};

/// Who reads metrics does not change the log level, and the other way round.
#[tokio::test]
async fn metrics_and_the_log_level_have_a_role_each() {
    let access = cluster().await;
    let at = access.kubeconfig(&Identity::Admin).await.unwrap();
    for role in ["metrics-reader", "log-level-editor"] {
        let name = format!("--clusterrole=virt-advisor-operator-{role}");
        printed(&kubectl(&at, &["create", "clusterrolebinding", role, &name, &format!("--user={role}")]));
    }
    let cases = [
        ("metrics-reader", [("get", "/metrics", true), ("get", "/loglevel", false), ("put", "/loglevel", false)]),
        ("log-level-editor", [("get", "/metrics", false), ("get", "/loglevel", true), ("put", "/loglevel", true)]),
        ("nobody", [("get", "/metrics", false), ("get", "/loglevel", false), ("put", "/loglevel", false)]),
    ];
    for (name, questions) in cases {
        let who = Identity::user(name, &[]);
        for (verb, path, expected) in questions {
            let is_so = async || (can(access, &who, &[verb, path]).await == expected).then_some(());
            eventually(format!("{name} {verb} {path}: {expected}"), is_so).await;
        }
    }
}

/// What is served behind the Service is what the Deployment listens on, with the certificate that OpenShift makes for it.
#[tokio::test]
async fn the_service_of_the_metrics_leads_to_the_operator() {
    let access = cluster().await;
    let at = access.kubeconfig(&Identity::Admin).await.unwrap();
    let get = |what: &str, name: &str| -> Value {
        serde_json::from_str(&printed(&kubectl(&at, &["get", what, name, "-n", NAMESPACE, "-o", "json"]))).unwrap()
    };
    let service = get("service", "virt-advisor-operator-metrics");
    let template = get("deployment", "virt-advisor-operator-controller-manager")["spec"]["template"].clone();
    for (label, value) in service["spec"]["selector"].as_object().unwrap() {
        assert_eq!(template["metadata"]["labels"][label], *value, "{label}");
    }
    let container = &template["spec"]["containers"][0];
    let port = &service["spec"]["ports"][0];
    let mut ports = container["ports"].as_array().unwrap().iter();
    let listening = ports.find(|found| found["name"] == port["targetPort"]).unwrap();
    let flag = format!("--metrics-bind-address=:{}", listening["containerPort"]);
    assert!(container["args"].as_array().unwrap().contains(&flag.into()), "{container:#}");
    let secret = &service["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"];
    let volume = &template["spec"]["volumes"][0];
    assert_eq!((&volume["secret"]["secretName"], &volume["secret"]["optional"]), (secret, &json!(true)));
    let mount = &container["volumeMounts"][0];
    let flag = format!("--metrics-cert-dir={}", mount["mountPath"].as_str().unwrap());
    assert!(mount["name"] == volume["name"] && container["args"].as_array().unwrap().contains(&flag.into()));
}
