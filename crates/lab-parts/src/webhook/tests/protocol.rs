//! Admission requests, certificates and the registration.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::case::{deletion, parse};
use crate::webhook::{
    Endpoint, Operation,
    certificates::{CertificatePair, Rotation, read},
    configuration,
};

#[test]
fn a_request_that_leaves_out_what_it_may_is_read() {
    let request = parse(json!({"uid": "1"})).unwrap();
    assert_eq!(request.operation, Operation::Other);
    // The deletion of a collection sends requests without a name.
    let mut unnamed = deletion();
    unnamed["name"] = json!("");
    assert_eq!(parse(unnamed).unwrap().pod, "virt-launcher-a-1");
    let mut broken = deletion();
    broken["oldObject"] = json!({"metadata": "broken"});
    assert_eq!(parse(broken).unwrap().deleted_pod, None);
    let problem = parse(json!({"uid": "1", "userInfo": "jane"})).unwrap_err().to_string();
    assert!(problem.starts_with("this is no AdmissionReview of admission.k8s.io/v1: "), "{problem}");
}

#[test]
fn a_certificate_is_trusted_for_a_period_before_it_is_used_and_for_one_after() {
    let mut rotation = Rotation::start(vec!["127.0.0.1".into()], Timestamp::now(), Duration::from_secs(90)).unwrap();
    assert_eq!(rotation.period(), Duration::from_secs(30));
    let parts = |rotation: &Rotation| -> Vec<String> {
        rotation.authorities().split_inclusive("-----END CERTIFICATE-----").map(|part| part.trim().to_owned()).collect()
    };
    let before = parts(&rotation);
    rotation.rotate(Timestamp::now()).unwrap();
    let after = parts(&rotation);
    assert_eq!(before[1], after[0], "what comes into use was trusted before");
    assert!(!before.contains(&after[1]));
}

#[test]
fn files_that_do_not_fit_together_are_rejected_with_a_reason() {
    let pair = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    };
    let ((certificate, key), (_, other_key)) = (pair("a"), pair("b"));
    assert!(read(certificate.as_bytes(), key.as_bytes()).is_ok());
    for (certificate, key) in [(&*certificate, &*other_key), ("", &*key), (&*certificate, ""), ("x", "y")] {
        let problem = read(certificate.as_bytes(), key.as_bytes()).unwrap_err().to_string();
        assert!(problem.starts_with("the certificate and its key cannot be used: "), "{problem}");
    }
    assert!(CertificatePair::make(&["not\u{e4}scii".into()], Timestamp::now(), Duration::from_secs(1)).is_err());
}

/// L35 (webhook blocks the cluster): every eviction in the cluster went through the webhook, and failed when it was
/// down.
#[test]
fn the_api_server_asks_about_virt_launchers_only() {
    let exempt_users = ["it's me".to_owned()];
    let service = Endpoint::Service { namespace: "monitoring".into(), name: "eviction-webhook".into() };
    let object = serde_json::to_value(configuration(&service, 1, None, &exempt_users)).unwrap();
    let [evictions, deletions] = &object["webhooks"].as_array().unwrap()[..] else { panic!("{object}") };
    for webhook in [evictions, deletions] {
        assert_eq!(webhook["failurePolicy"], "Fail");
        assert_eq!(webhook["sideEffects"], "NoneOnDryRun");
        assert_eq!(webhook["timeoutSeconds"], 10);
        assert_eq!(webhook["clientConfig"]["service"]["path"], "/validate");
        assert!(webhook["clientConfig"].get("caBundle").is_none(), "left to others");
        let selector = &webhook["namespaceSelector"]["matchExpressions"][0];
        assert_eq!(selector["values"], json!(["kube-node-lease", "kube-public", "kube-system"]));
    }
    assert_eq!(evictions["rules"][0]["resources"], json!(["pods/eviction"]));
    assert_eq!(evictions["matchConditions"][0]["expression"], "object.metadata.name.startsWith('virt-launcher-')");
    assert_eq!(deletions["rules"][0]["operations"], json!(["DELETE"]));
    assert_eq!(deletions["objectSelector"]["matchLabels"], json!({"app": "virt-launcher"}));
    assert_eq!(deletions["matchConditions"][3]["expression"], r"!(request.userInfo.username in ['it\'s me'])");

    let host = configuration(&Endpoint::Host("::1".into()), 8443, Some("PEM"), &[]);
    let config = &host.webhooks.unwrap()[0].client_config;
    assert_eq!(config.url.as_deref(), Some("https://[::1]:8443/validate"));
    assert_eq!(config.ca_bundle.as_ref().unwrap().0, b"PEM");
}
