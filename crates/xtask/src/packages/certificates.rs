//! The certificate of the metrics from cert-manager, and the overlay `config/cert-manager` that asks for it.
//!
//! Without cert-manager nothing is needed: OpenShift makes a certificate for the Service, and elsewhere the operator signs its own.

use advisor::{access::NAMESPACE, monitoring::SERVICE, object_text};
use serde_json::{Value, json};

use super::{
    MARK,
    workload::{CERTIFICATE, LABEL, SERVING_CERTIFICATE},
};

const OVERLAY: &str = "\
# config/default with a certificate of cert-manager for the metrics. OpenShift would fill the same Secret, so its annotation goes.
resources:
- ../default
- certificate.yaml
patches:
- target:
    kind: Service
    name: virt-advisor-operator-metrics
  patch: |
    - op: remove
      path: /metadata/annotations/";

const OBJECTS: &str = "\
# The issuer signs the certificate with its own key. To be trusted by others, name an issuer of yours in issuerRef instead.
";

/// The issuer that signs by itself, and the certificate.
pub(super) fn objects() -> [Value; 2] {
    let metadata = json!({"name": SERVICE, "namespace": NAMESPACE, "labels": {LABEL.0: LABEL.1}});
    let name = format!("{SERVICE}.{NAMESPACE}.svc");
    let version = "cert-manager.io/v1";
    [
        json!({"apiVersion": version, "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}}),
        json!({
            "apiVersion": version,
            "kind": "Certificate",
            "metadata": metadata,
            "spec": {
                "secretName": CERTIFICATE,
                "dnsNames": [name, format!("{name}.cluster.local")],
                "issuerRef": {"kind": "Issuer", "name": SERVICE},
                "privateKey": {"algorithm": "ECDSA", "encoding": "PKCS8", "rotationPolicy": "Always"},
            },
        }),
    ]
}

/// The generated files: path from the root of the repository, and content.
pub(super) fn files() -> Vec<(String, String)> {
    let annotation = SERVING_CERTIFICATE.replace('/', "~1");
    let documents = objects().map(|object| object_text::yaml(Some(&object))).join("---\n");
    vec![
        ("config/cert-manager/kustomization.yaml".into(), format!("{MARK}{OVERLAY}{annotation}\n")),
        ("config/cert-manager/certificate.yaml".into(), format!("{MARK}{OBJECTS}{documents}")),
    ]
}
