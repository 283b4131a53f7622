//! Certificates are replaced while requests are answered.

use std::{collections::BTreeSet, path::Path, time::Duration};

use futures::future::join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{Api, ResourceExt, api::DeleteParams};
use lab_parts::webhook::{Certificates, NAME};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::{EVICTIONS, Lab, triggered};
use testkit::eventually;

/// L36 (certificates not renewed): no rotation, and every call failed between the installation and the first
/// `caBundle`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_renewed_and_read_again_while_requests_go_on() {
    let lab = Lab::start().await;
    let pod = lab.add("a").await;
    let expected = Some(triggered(EVICTIONS, "default/a"));
    let webhook = lab.webhook(Certificates::Own { lifetime: Duration::from_secs(12) }).await;
    lab.is_asked(&pod).await;
    let (mut bundles, mut requests) = (BTreeSet::new(), 0);
    eventually("three renewals", async || {
        bundles.insert(lab.bundle().await);
        let all = join_all((0..8).map(|_| lab.try_eviction(&pod))).await;
        requests += all.len();
        all.into_iter().for_each(|answer| assert_eq!(answer, expected, "after {} bundles", bundles.len()));
        (bundles.len() > 3).then_some(())
    })
    .await;
    assert!(requests > 50, "{requests}");
    drop(webhook);

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (_, old) = write_certificates(folder.path());
    let files = Certificates::Files {
        certificate: path("tls.crt"),
        key: path("tls.key"),
        authority: Some(path("ca.crt")),
        interval: Duration::from_millis(5),
    };
    let _webhook = lab.webhook(files).await;
    assert_eq!(lab.bundle().await, old.as_bytes());
    lab.is_asked(&pod).await;
    // A certificate that does not match its key is not used.
    let other = tempfile::tempdir().unwrap();
    let (certificate, new) = write_certificates(other.path());
    std::fs::write(path("tls.crt"), certificate).unwrap();
    for _ in 0..20 {
        assert_eq!(lab.try_eviction(&pod).await, expected);
    }
    for name in ["ca.crt", "tls.key"] {
        std::fs::copy(other.path().join(name), path(name)).unwrap();
    }
    eventually("the new CA is written", async || (lab.bundle().await == new.as_bytes()).then_some(())).await;
    lab.is_asked(&pod).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_somebody_deletes_is_written_again_at_once() {
    let lab = Lab::start().await;
    let pod = lab.add("a").await;
    // These certificates are not renewed during the test.
    let _webhook = lab.webhook(Certificates::default()).await;
    lab.is_asked(&pod).await;
    let bundle = lab.bundle().await;
    let all: Api<ValidatingWebhookConfiguration> = Api::all(lab.client.clone());
    for _ in 0..2 {
        let before = all.get(NAME).await.unwrap().uid();
        all.delete(NAME, &DeleteParams::default()).await.unwrap();
        let is_back = async || all.get_opt(NAME).await.unwrap().filter(|found| found.uid() != before);
        eventually("the configuration is back", is_back).await;
        assert_eq!(lab.bundle().await, bundle);
        lab.is_asked(&pod).await;
    }
}

/// Writes a CA, a certificate and its key. Returns certificate and CA.
fn write_certificates(folder: &Path) -> (String, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap().pem();
    std::fs::write(folder.join("ca.crt"), authority.pem()).unwrap();
    std::fs::write(folder.join("tls.crt"), &certificate).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    (certificate, authority.pem())
}
