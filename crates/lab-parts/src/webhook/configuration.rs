//! The ValidatingWebhookConfiguration: which requests the API server sends to the webhook, and what it does without an answer. These
//! are requests about pods whose names begin with `virt-launcher-`; while the webhook is down, VMs cannot be migrated or lost, but VMs
//! and namespaces can be deleted, and other pods are not affected.

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration,
        WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta},
};

use super::Endpoint;
use crate::launcher;

/// The name of the ValidatingWebhookConfiguration.
pub const NAME: &str = "eviction-webhook";
const EVICTIONS: &str = "virt-launcher-eviction-interceptor.kubevirt.io";
const DELETIONS: &str = "virt-launcher-deletion-interceptor.kubevirt.io";
/// How long the API server waits for an answer, in seconds.
pub(super) const TIMEOUT: u8 = 10;
pub(super) const PATH: &str = "/validate";
const SYSTEM_NAMESPACES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// The object to apply. `port` is used with [`Endpoint::Host`]. Deletions by `exempt_users` are not sent to the webhook.
pub fn configuration(
    endpoint: &Endpoint,
    port: u16,
    authorities: Option<&str>,
    exempt_users: &[String],
) -> ValidatingWebhookConfiguration {
    let webhook = |name: &str, operation: &str, resource: &str, conditions: Vec<(&str, String)>| ValidatingWebhook {
        name: name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client_config(endpoint, port, authorities),
        failure_policy: Some("Fail".to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        match_conditions: Some(
            conditions
                .into_iter()
                .map(|(name, expression)| MatchCondition { name: name.to_owned(), expression })
                .collect(),
        ),
        namespace_selector: Some(outside_of_system_namespaces()),
        object_selector: None,
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec![String::new()]),
            api_versions: Some(vec!["v1".to_owned()]),
            operations: Some(vec![operation.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            scope: Some("Namespaced".to_owned()),
        }]),
        side_effects: "NoneOnDryRun".to_owned(),
        timeout_seconds: Some(TIMEOUT.into()),
    };
    let mut deletions = webhook(DELETIONS, "DELETE", "pods", deletion_conditions(exempt_users));
    deletions.object_selector = Some(LabelSelector {
        match_labels: Some([(launcher::APP.0.to_owned(), launcher::APP.1.to_owned())].into()),
        match_expressions: None,
    });
    // An object selector would match the Eviction, which has no labels.
    let is_launcher = format!("object.metadata.name.startsWith('{}')", launcher::PREFIX);
    let evictions = webhook(EVICTIONS, "CREATE", "pods/eviction", vec![("only-vms", is_launcher)]);
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            labels: Some([("app".to_owned(), "eviction-webhook".to_owned())].into()),
            ..ObjectMeta::default()
        },
        webhooks: Some(vec![evictions, deletions]),
    }
}

fn deletion_conditions(exempt_users: &[String]) -> Vec<(&'static str, String)> {
    let users: Vec<String> = exempt_users.iter().map(|user| quoted(user)).collect();
    vec![
        ("only-vms", format!("oldObject.metadata.name.startsWith('{}')", launcher::PREFIX)),
        (
            "only-protected",
            format!("has(oldObject.metadata.finalizers) && '{}' in oldObject.metadata.finalizers", launcher::FINALIZER),
        ),
        ("only-staying", "!has(oldObject.metadata.deletionTimestamp)".to_owned()),
        ("only-by-others", format!("!(request.userInfo.username in [{}])", users.join(", "))),
    ]
}

/// A string literal of CEL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

fn client_config(endpoint: &Endpoint, port: u16, authorities: Option<&str>) -> WebhookClientConfig {
    let ca_bundle = authorities.map(|pem| ByteString(pem.as_bytes().to_vec()));
    match endpoint {
        Endpoint::Host(host) => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            WebhookClientConfig { ca_bundle, service: None, url: Some(format!("https://{host}:{port}{PATH}")) }
        }
        Endpoint::Service { namespace, name } => {
            let service = ServiceReference {
                namespace: namespace.clone(),
                name: name.clone(),
                path: Some(PATH.to_owned()),
                port: Some(443),
            };
            WebhookClientConfig { ca_bundle, service: Some(service), url: None }
        }
    }
}

fn outside_of_system_namespaces() -> LabelSelector {
    LabelSelector {
        match_labels: None,
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: "kubernetes.io/metadata.name".to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(SYSTEM_NAMESPACES.map(str::to_owned).to_vec()),
        }]),
    }
}
