//! The files in `config/admission`, `config/admission-audit` and `config/approval-policy`.

use serde_json::Value;

use super::{PolicyMode, bindings, installed_operator, policies};
use crate::access::{self, MARK};

const POLICIES: &str = "\
# What the API server refuses, and in which words. Without a binding a policy does nothing: see bindings.yaml.
# Another user name of the operator goes into the variable `operator` of the second policy.

";

const BINDINGS: &str = "\
# The switch: with these the policies are in effect. Deleting them switches them off.

";

const KUSTOMIZATION: &str = "\
# The API server refuses to have a plan applied that nobody approved by its digest. Not part of config/default.
# How to switch it on and off: docs/approvals.md.
resources:
- policies.yaml
- bindings.yaml
";

const AUDIT: &str = "\
# config/admission without refusals: what would be refused is written down in the audit log of the API server.
resources:
- ../admission
patches:
- target:
    kind: ValidatingAdmissionPolicyBinding
  patch: |
    - op: replace
      path: /spec/validationActions
      value: [Audit]
";

const OVERLAY: &str = "\
# config/default with an operator that keeps the policies of config/admission itself, for installations that cannot ship them.
# Off instead of Enforce removes them again; Audit only writes down what would be refused.
resources:
- ../default
- role.yaml
patches:
- target:
    kind: Deployment
    name: virt-advisor-operator-controller-manager
  patch: |
    - op: add
      path: /spec/template/spec/containers/0/args/-
      value: --approval-policy=Enforce
";

/// The generated files: path from the root of the repository, and content.
pub fn files() -> Vec<(&'static str, String)> {
    let marked = |text: &str| format!("{MARK}{text}");
    vec![
        ("config/admission/policies.yaml", documents(POLICIES, &policies(&installed_operator()))),
        ("config/admission/bindings.yaml", documents(BINDINGS, &bindings(PolicyMode::Enforce))),
        ("config/admission/kustomization.yaml", marked(KUSTOMIZATION)),
        ("config/admission-audit/kustomization.yaml", marked(AUDIT)),
        ("config/approval-policy/kustomization.yaml", marked(OVERLAY)),
        ("config/approval-policy/role.yaml", marked(&access::policy_manager_file())),
    ]
}

fn documents(head: &str, objects: &[Value]) -> String {
    // Serializing a JSON value cannot fail; as a fallback, JSON is valid YAML. Long texts are folded, which adds no line breaks.
    let yaml = |object: &Value| serde_saphyr::to_string(object).unwrap_or_else(|_| format!("{object:#}\n"));
    let documents: Vec<_> = objects.iter().map(yaml).collect();
    format!("{MARK}{head}{}", documents.join("---\n"))
}
