//! Selectors of labels, as nodes, pods and pools are selected by them. By hand: kube's selector does not know `Gt` and
//! `Lt`, and one unknown operator makes all of it fail.

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) type Labels = BTreeMap<String, String>;

/// The labels of an object.
pub(crate) fn labels(object: &Value) -> Labels {
    texts(object.pointer("/metadata/labels"))
}

/// A map of texts. Other values are left out.
pub(crate) fn texts(map: Option<&Value>) -> Labels {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Requirement {
    fn of(expression: &Value) -> Self {
        let text = |name: &str| expression[name].as_str().unwrap_or_default().to_owned();
        let values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Requirement { key: text("key"), operator: text("operator"), values: values.map(str::to_owned).collect() }
    }

    fn equals(key: &str, value: &str) -> Self {
        Requirement { key: key.to_owned(), operator: "In".into(), values: vec![value.to_owned()] }
    }

    /// An operator that is not known holds for nothing.
    fn holds(&self, value: Option<&str>) -> bool {
        let is_listed = |value: &str| self.values.iter().any(|known| known == value);
        let compared = || Some((value?.parse::<i64>().ok()?, self.values.first()?.parse::<i64>().ok()?));
        match self.operator.as_str() {
            "In" => value.is_some_and(is_listed),
            "NotIn" => !value.is_some_and(is_listed),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => compared().is_some_and(|(value, limit)| value > limit),
            "Lt" => compared().is_some_and(|(value, limit)| value < limit),
            _ => false,
        }
    }
}

/// All of its requirements have to hold. An empty one holds for everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Requirement>);

impl Selector {
    /// A selector as pools and budgets have it. None if there is none.
    pub(crate) fn of(selector: Option<&Value>) -> Option<Self> {
        let selector = selector.filter(|selector| selector.is_object())?;
        let exact = texts(selector.get("matchLabels"));
        let exact = exact.iter().map(|(key, value)| Requirement::equals(key, value));
        Some(Selector(exact.chain(expressions(selector, "matchExpressions")).collect()))
    }

    /// The labels that an object must have, as in a node selector of a pod.
    pub(crate) fn exact(labels: &Labels) -> Self {
        Selector(labels.iter().map(|(key, value)| Requirement::equals(key, value)).collect())
    }

    /// The first label that has to have one of some values.
    pub(crate) fn required_label(&self) -> Option<(&str, &[String])> {
        let required = self.0.iter().find(|requirement| requirement.operator == "In")?;
        Some((&required.key, &required.values))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.holds(labels.get(&requirement.key).map(String::as_str)))
    }
}

fn expressions(object: &Value, field: &str) -> Vec<Requirement> {
    object[field].as_array().into_iter().flatten().map(Requirement::of).collect()
}

/// The required node affinity of a pod: one of the terms has to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeAffinity(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    labels: Selector,
    /// The only field that there is to match is the name.
    names: Vec<Requirement>,
}

impl NodeAffinity {
    /// Of `spec.affinity`. What is only preferred forbids nothing.
    pub(crate) fn of(affinity: &Value) -> Option<Self> {
        let required = affinity.pointer("/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution")?;
        let term = |term: &Value| Term {
            labels: Selector(expressions(term, "matchExpressions")),
            names: expressions(term, "matchFields"),
        };
        Some(NodeAffinity(required["nodeSelectorTerms"].as_array()?.iter().map(term).collect()))
    }

    /// A term without any requirement selects no node.
    pub(crate) fn allows(&self, name: &str, labels: &Labels) -> bool {
        let holds = |term: &Term| {
            let is_empty = term.labels.is_empty() && term.names.is_empty();
            !is_empty && term.labels.matches(labels) && term.names.iter().all(|field| field.holds(Some(name)))
        };
        self.0.iter().any(holds)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn worker() -> Labels {
        texts(Some(&json!({"role": "worker", "cpus": "16"})))
    }

    #[test]
    fn a_selector_selects_as_kubernetes_does() {
        for (selector, selects) in [
            (json!({}), true),
            (json!({"matchLabels": {"role": "worker"}}), true),
            (json!({"matchLabels": {"role": "infra"}}), false),
            (json!({"matchExpressions": [{"key": "role", "operator": "In", "values": ["a", "worker"]}]}), true),
            (json!({"matchExpressions": [{"key": "role", "operator": "NotIn", "values": ["worker"]}]}), false),
            (json!({"matchExpressions": [{"key": "gpu", "operator": "NotIn", "values": ["a"]}]}), true),
            (json!({"matchExpressions": [{"key": "role", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "role", "operator": "DoesNotExist"}]}), false),
            (json!({"matchExpressions": [{"key": "role", "operator": "Near"}]}), false),
            (
                json!({"matchLabels": {"role": "worker"}, "matchExpressions": [{"key": "gpu", "operator": "Exists"}]}),
                false,
            ),
        ] {
            let parsed = Selector::of(Some(&selector)).unwrap();
            assert_eq!(parsed.matches(&worker()), selects, "{selector}");
        }
        assert_eq!(Selector::of(None), None);
        assert_eq!(Selector::of(Some(&Value::Null)), None);
    }

    #[test]
    fn a_node_affinity_allows_a_node_by_one_of_its_terms() {
        let required = |terms: Value| {
            let required = json!({"nodeSelectorTerms": terms});
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
        };
        let expression =
            |key: &str, operator: &str, value: &str| json!({"key": key, "operator": operator, "values": [value]});
        for (terms, allows) in [
            (json!([{"matchExpressions": [expression("role", "In", "worker")]}]), true),
            (json!([{"matchExpressions": [expression("role", "In", "infra")]}]), false),
            (
                json!([{"matchExpressions": [expression("role", "In", "infra")]}, {"matchExpressions": [expression("cpus", "Gt", "8")]}]),
                true,
            ),
            (json!([{"matchExpressions": [expression("cpus", "Lt", "8")]}]), false),
            (json!([{"matchExpressions": [expression("role", "Gt", "8")]}]), false),
            (json!([{"matchFields": [expression("metadata.name", "In", "a")]}]), true),
            (json!([{"matchFields": [expression("metadata.name", "NotIn", "a")]}]), false),
            (json!([{}]), false),
        ] {
            let affinity = NodeAffinity::of(&required(terms.clone())).unwrap();
            assert_eq!(affinity.allows("a", &worker()), allows, "{terms}");
        }
        let preferred = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}});
        assert_eq!(NodeAffinity::of(&preferred), None);
    }
}
