//! Which nodes a pod or a VirtualMachineInstance may run on, as the advisor reads it, and what it requests there.

use std::collections::BTreeMap;

use advisor::demand::{Demand, Resources, Taint, requests_while_running};
use serde_json::Value;

/// A node as the scheduler sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
}

impl Candidate {
    /// Whatever room it has.
    pub(super) fn is_allowed_by(&self, demand: &Demand) -> bool {
        demand.allows(&self.name, &self.labels, &self.taints)
    }
}

/// What has to hold for a node, apart from its room.
pub(super) fn demand(spec: &Value) -> Demand {
    Demand::of(spec, Resources::default())
}

/// Thousandths of a core, and bytes, that a running pod requests.
pub(super) fn requests(spec: &Value) -> [u64; 2] {
    let Resources { cpu, memory, .. } = requests_while_running(spec);
    [cpu, memory]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node() -> Candidate {
        let labels = [("zone", "a"), ("generation", "7")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let taint = json!({"key": "gpu", "value": "x", "effect": "NoSchedule"});
        Candidate { name: "n1".into(), labels: labels.into(), taints: vec![Taint::of(&taint)] }
    }

    #[test]
    fn affinity_is_read_as_the_scheduler_reads_it() {
        let expression =
            |operator: &str, key: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        let term = |field: &str, expression: Value| json!({field: [expression]});
        for (terms, allowed) in [
            (json!([term("matchExpressions", expression("In", "zone", &["a", "b"]))]), true),
            (json!([term("matchExpressions", expression("NotIn", "zone", &["a"]))]), false),
            (json!([term("matchExpressions", expression("Gt", "generation", &["6"]))]), true),
            (json!([term("matchExpressions", expression("Lt", "generation", &["6"]))]), false),
            (json!([term("matchExpressions", expression("Near", "zone", &["a"]))]), false),
            (json!([term("matchFields", expression("In", "metadata.name", &["n1"]))]), true),
            (json!([term("matchFields", expression("NotIn", "metadata.name", &["n1"]))]), false),
            (json!([{}]), false),
            (json!([{}, term("matchExpressions", expression("Exists", "zone", &[]))]), true),
        ] {
            let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
            let spec = json!({"affinity": affinity, "tolerations": [{"operator": "Exists"}]});
            assert_eq!(node().is_allowed_by(&demand(&spec)), allowed, "{terms}");
        }
    }

    #[test]
    fn requests_of_any_size_are_added_up() {
        let huge = json!({"resources": {"requests": {"cpu": "9E", "memory": "9E"}}});
        let spec = json!({"containers": [huge.clone(), huge.clone(), huge]});
        assert_eq!(requests(&spec), [u64::MAX; 2]);
    }

    #[test]
    fn selectors_and_tolerations_are_read_as_the_scheduler_reads_them() {
        for (spec, allowed) in [
            (json!({}), false),
            (json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]}), true),
            (json!({"tolerations": [{"key": "gpu", "value": "x"}]}), true),
            (json!({"tolerations": [{"key": "gpu", "value": "y"}]}), false),
            (json!({"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]}), false),
            (json!({"nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}]}), true),
            (json!({"nodeSelector": {"zone": "b"}, "tolerations": [{"operator": "Exists"}]}), false),
        ] {
            assert_eq!(node().is_allowed_by(&demand(&spec)), allowed, "{spec}");
        }
    }
}
