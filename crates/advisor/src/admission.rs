//! The ValidatingAdmissionPolicies that let the API server refuse unread plans and forged statuses, and their bindings.
//! `config/admission` is generated from here, and with `--approval-policy` the operator keeps the same objects itself. A policy
//! without a binding does nothing, so the bindings are the switch.

mod approval;
mod yaml;

use api::names::{ADVISOR_GROUP, FIELD_MANAGER};
use serde_json::{Value, json};

use crate::access::{NAMESPACE, SERVICE_ACCOUNT};

pub use yaml::files;

/// The policy on edits of configurations, and its binding. Keys of its audit annotations begin with this name.
pub const APPROVAL: &str = "approval.advisor.kubevirt.io";

/// The policy on writes of their status, and its binding.
pub const STATUS: &str = "status.advisor.kubevirt.io";

/// The definition that the objects of the operator belong to: they are deleted with it.
pub const DEFINITION: &str = "virtplatformconfigs.advisor.kubevirt.io";

/// What `config/default` puts before all names.
pub const NAME_PREFIX: &str = "virt-advisor-operator-";

const GROUP: &str = "admissionregistration.k8s.io";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// What happens to a request that a policy is against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyMode {
    /// There is no policy.
    Off,
    /// It is written down in the audit log of the API server.
    Audit,
    /// It is refused.
    Enforce,
}

/// The user name of the operator that `config/default` installs.
pub fn installed_operator() -> String {
    format!("system:serviceaccount:{NAMESPACE}:{NAME_PREFIX}{SERVICE_ACCOUNT}")
}

/// The two policies. `operator` is the user name of the one who writes statuses.
pub fn policies(operator: &str) -> [Value; 2] {
    [approval::policy(), status(operator)]
}

/// The bindings that put the policies into force.
pub fn bindings(mode: PolicyMode) -> Vec<Value> {
    let action = match mode {
        PolicyMode::Off => return Vec::new(),
        PolicyMode::Audit => "Audit",
        PolicyMode::Enforce => "Deny",
    };
    let binding = |name: &str| {
        let spec = json!({"policyName": name, "validationActions": [action]});
        object("ValidatingAdmissionPolicyBinding", name, spec)
    };
    [APPROVAL, STATUS].map(binding).to_vec()
}

/// What the operator keeps: policies, then bindings, all belonging to the definition with this uid. Nothing if the mode is Off.
pub fn kept(mode: PolicyMode, operator: &str, definition_uid: &str) -> Vec<Value> {
    let bindings = bindings(mode);
    let policies = if bindings.is_empty() { Vec::new() } else { policies(operator).to_vec() };
    let owned = |mut object: Value| {
        object["metadata"]["labels"] = json!({MANAGED_BY: FIELD_MANAGER});
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "name": DEFINITION,
            "uid": definition_uid,
        }]);
        object
    };
    policies.into_iter().chain(bindings).map(owned).collect()
}

/// The paths of everything that the operator may keep, bindings first: without them the policies do nothing.
pub fn paths() -> [String; 4] {
    let path = |plural: &str, name: &str| format!("/apis/{GROUP}/v1/{plural}/{name}");
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    [path(bindings, APPROVAL), path(bindings, STATUS), path(policies, APPROVAL), path(policies, STATUS)]
}

/// The path of a policy or a binding.
pub fn path(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let plural = match object["kind"].as_str() {
        Some("ValidatingAdmissionPolicy") => "validatingadmissionpolicies",
        _ => "validatingadmissionpolicybindings",
    };
    format!("/apis/{GROUP}/v1/{plural}/{}", text(&object["metadata"]["name"]))
}

/// Whether the operator keeps this object, and not somebody who installed `config/admission`.
pub fn is_kept(found: &Value) -> bool {
    found["metadata"]["labels"][MANAGED_BY] == FIELD_MANAGER
}

/// What replaces an object to which somebody added a field: an apply changes only the fields that it names. Every default is named,
/// so an object that is as it should be has the same spec.
pub fn replacement(found: &Value, wanted: &Value) -> Option<Value> {
    if found["spec"] == wanted["spec"] {
        return None;
    }
    let mut replacement = wanted.clone();
    replacement["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
    Some(replacement)
}

/// The policy on the status, which holds the digest that approvals are compared with.
fn status(operator: &str) -> Value {
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": matched("virtplatformconfigs/status", &["UPDATE"]),
        "variables": [variable("operator", &text(operator))],
        "validations": [{
            "expression": "request.userInfo.username == variables.operator",
            "reason": "Forbidden",
            "message": "Only the operator writes the status of a configuration.",
            "messageExpression": "'Only the operator, user ' + variables.operator + ', writes the status of a \
                                  configuration. This request is of user ' + request.userInfo.username + '.'",
        }],
    });
    object("ValidatingAdmissionPolicy", STATUS, spec)
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn matched(resource: &str, operations: &[&str]) -> Value {
    json!({
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{
            "apiGroups": [ADVISOR_GROUP],
            "apiVersions": ["*"],
            "operations": operations,
            "resources": [resource],
            "scope": "*",
        }],
    })
}

fn variable(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

/// A text as a CEL literal.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests;
