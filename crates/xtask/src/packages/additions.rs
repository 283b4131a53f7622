//! What an administrator adds to an installation, each in one file: admission policies, and monitoring.

use advisor::{
    admission::{PolicyMode, bindings, installed_operator, policies},
    object_text,
};
use serde_json::Value;

use super::{
    MARK, Source,
    installation::{Settings, monitoring},
};

const DENY: &str = "\
# The API server refuses to have a plan applied that nobody approved by its digest: docs/approvals.md.
";

const AUDIT: &str = "\
# The same policies without refusals: what would be refused is written down in the audit log of the API server.
";

const MONITORING: &str = "\
# Alerts, and what the Prometheus of OpenShift needs to read the metrics. Needs the kinds of the Prometheus operator.
";

const USE: &str = "\
#
#   install   kubectl apply --server-side -f {file}
#   remove    kubectl delete -f {file}
";

/// The generated files: path from the root of the repository, and content.
pub(super) fn files(source: &Source) -> anyhow::Result<Vec<(String, String)>> {
    let policy = |mode| [policies(&installed_operator()).to_vec(), bindings(mode)].concat();
    let monitoring = monitoring(&source.alerts, &Settings::with_image(&source.image.to_string()))?;
    let text = |name: &str, purpose: &str, objects: Vec<Value>| {
        let documents: Vec<String> = objects.iter().map(|object| object_text::yaml(Some(object))).collect();
        let head = format!("{MARK}{purpose}{}", USE.replace("{file}", name));
        (format!("dist/{name}"), format!("{head}---\n{}", documents.join("---\n")))
    };
    Ok(vec![
        text("admission-policy.yaml", DENY, policy(PolicyMode::Enforce)),
        text("admission-policy-audit.yaml", AUDIT, policy(PolicyMode::Audit)),
        text("monitoring.yaml", MONITORING, monitoring),
    ])
}
