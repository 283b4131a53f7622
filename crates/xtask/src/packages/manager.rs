//! The files in `config/manager`: the kustomize base of what runs.

use advisor::object_text;
use serde_json::Value;

use super::{
    MARK,
    project::{Project, VERSION},
    workload,
};

/// What kustomize replaces by the image.
const PLACEHOLDER: &str = "virt-advisor-operator";

const DEPLOYMENT: &str = "\
# The operator. One replica works; the other one waits for its lease, and takes over within seconds when a node goes. OpenShift makes
# the Secret for the Service; without it, the operator signs a certificate of its own.
";

const SERVICE: &str = "\
# Where Prometheus finds the metrics. On OpenShift the annotation has a certificate made for it, which the operator serves.
";

const PRIORITY_CLASS: &str = "\
# The operator is scheduled early and evicted late, but no other pod has to go for it: that pod may be a guest, and the cluster works
# without the operator. system-cluster-critical would preempt guests, and some clusters refuse it outside of kube-system.
";

const DISRUPTION_BUDGET: &str = "\
# A drain takes one replica at a time. It never waits for a replica that is not ready: plans of the operator drain nodes themselves.
";

const NETWORK_POLICY: &str = "\
# In: probes and metrics, which ask every client who it is. Out: the API server, on the ports that clusters use, and DNS. Whose API
# server listens on another port adds it here.
";

/// The generated files: path from the root of the repository, and content.
pub(super) fn files(project: &Project) -> Vec<(String, String)> {
    let image = &project.images.operator;
    let kustomization = format!(
        "{MARK}resources:\n- priority_class.yaml\n- metrics_service.yaml\n- disruption_budget.yaml\n- network_policy.yaml\n\
         - manager.yaml\nimages:\n- name: {PLACEHOLDER}\n  newName: {image}\n  newTag: {VERSION}\n"
    );
    let object = |head: &str, object: Value| format!("{MARK}{head}{}", object_text::yaml(Some(&object)));
    [
        ("kustomization", kustomization),
        ("priority_class", object(PRIORITY_CLASS, workload::priority_class())),
        ("metrics_service", object(SERVICE, workload::metrics_service())),
        ("disruption_budget", object(DISRUPTION_BUDGET, workload::disruption_budget())),
        ("network_policy", object(NETWORK_POLICY, workload::network_policy())),
        ("manager", object(DEPLOYMENT, workload::deployment(PLACEHOLDER))),
    ]
    .map(|(name, text)| (format!("config/manager/{name}.yaml"), text))
    .to_vec()
}
