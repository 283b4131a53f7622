//! Where a VM may run, in the words of a scenario: labels that a node must have, and keys of taints that are tolerated.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};
use sim::scenario::{Effect, NodeGroup};

use super::{objects::FoundNode, requirements::demand};

type Rules = (BTreeMap<String, String>, Vec<String>);

/// A label of nodes that a scenario could not select otherwise.
const ALLOWED: &str = "import.rebalance-lab/allowed-by";

/// Constraints that were translated, by their text.
#[derive(Debug, Default)]
pub(super) struct Constraints {
    known: HashMap<String, Rules>,
    own_labels: usize,
    depend_on_pods: usize,
}

impl Constraints {
    /// Labels and tolerations for this spec. They allow exactly the nodes that the scheduler would allow.
    pub(super) fn of(&mut self, spec: &Value, nodes: &mut [FoundNode]) -> Rules {
        let text = spec.to_string();
        if let Some(rules) = self.known.get(&text) {
            return rules.clone();
        }
        let demand = demand(spec);
        self.depend_on_pods += usize::from(demand.depends_on_pods);
        let allowed: Vec<bool> = nodes.iter().map(|node| node.candidate.is_allowed_by(&demand)).collect();
        let mut rules = plain(spec);
        let is_same = nodes.iter().zip(&allowed).all(|(node, allowed)| permits(&rules, &node.group) == *allowed);
        if !is_same {
            self.own_labels += 1;
            let label = format!("{ALLOWED}-{}", self.own_labels);
            let mut tolerated = BTreeSet::new();
            for (node, _) in nodes.iter_mut().zip(&allowed).filter(|(_, allowed)| **allowed) {
                node.group.labels.insert(label.clone(), "true".to_owned());
                tolerated.extend(node.group.taints.iter().map(|taint| taint.key.clone()));
            }
            rules = (BTreeMap::from([(label, "true".to_owned())]), tolerated.into_iter().collect());
        }
        self.known.insert(text, rules.clone());
        rules
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.own_labels > 0 {
            notes.push(format!(
                "{} constraints on nodes are more than labels and keys of taints: nodes that they allow have a label {ALLOWED}-<n>",
                self.own_labels
            ));
        }
        if self.depend_on_pods > 0 {
            notes.push(format!(
                "{} constraints depend on other pods: of these, a scenario only knows VMs that keep apart by host",
                self.depend_on_pods
            ));
        }
        notes
    }
}

/// The node selector, and the keys of the taints that are tolerated.
fn plain(spec: &Value) -> Rules {
    let labels = serde_json::from_value(spec["nodeSelector"].clone()).unwrap_or_default();
    let tolerations = spec["tolerations"].as_array().into_iter().flatten();
    let key = |toleration: &Value| match toleration["key"].as_str() {
        Some(key) if !key.is_empty() => key.to_owned(),
        _ => "*".to_owned(),
    };
    (labels, tolerations.map(key).collect::<BTreeSet<_>>().into_iter().collect())
}

/// Whether a scenario with these rules allows the node.
fn permits((labels, tolerations): &Rules, node: &NodeGroup) -> bool {
    let tolerates = |key: &str| tolerations.iter().any(|tolerated| tolerated == key || tolerated == "*");
    labels.iter().all(|(key, value)| node.labels.get(key) == Some(value))
        && node.taints.iter().all(|taint| taint.effect == Effect::PreferNoSchedule || tolerates(&taint.key))
}

/// The word for VMs that keep apart: the selector of a required anti-affinity by host that matches the object itself.
pub(super) fn apart(object: &Value) -> Option<String> {
    let required = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let terms = object.pointer(required)?.as_array()?;
    let labels = object.pointer("/metadata/labels").unwrap_or(&Value::Null);
    let matches = |selector: &Value| {
        let wanted = selector["matchLabels"].as_object();
        let exact = wanted.is_some_and(|wanted| {
            !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
        });
        exact && selector["matchExpressions"].as_array().is_none_or(Vec::is_empty)
    };
    let term =
        terms.iter().find(|term| term["topologyKey"] == "kubernetes.io/hostname" && matches(&term["labelSelector"]))?;
    let namespace = object.pointer("/metadata/namespace").unwrap_or(&Value::Null);
    Some(json!([namespace, term["labelSelector"]["matchLabels"]]).to_string())
}
