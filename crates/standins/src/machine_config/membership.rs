//! Which pool a node belongs to, and how many nodes of a pool may be unavailable at a time.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::Node,
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use super::MachineConfigPool;

/// A parsed selector. One that is empty or invalid selects nothing.
#[derive(Debug)]
pub(super) struct Selection(Option<Selector>);

impl Selection {
    pub(super) fn of(selector: Option<&LabelSelector>) -> Self {
        let selector = selector.cloned().and_then(|selector| Selector::try_from(selector).ok());
        Selection(selector.filter(|selector| !selector.selects_all()))
    }

    pub(super) fn has(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.as_ref().is_some_and(|selector| selector.matches(labels))
    }
}

/// A node that gets no config.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node {node} belongs to {} custom pools ({}) and gets no configuration; leave it in one", .pools.len(), .pools.join(", "))]
pub struct TooManyPools {
    pub node: String,
    pub pools: Vec<String>,
}

/// All pools, with their parsed node selectors.
#[derive(Debug)]
pub struct Membership<'a>(Vec<(&'a MachineConfigPool, Selection)>);

impl<'a> Membership<'a> {
    pub fn of(pools: impl IntoIterator<Item = &'a MachineConfigPool>) -> Self {
        let selection = |pool: &'a MachineConfigPool| (pool, Selection::of(pool.spec.node_selector.as_ref()));
        Membership(pools.into_iter().map(selection).collect())
    }

    /// The pool that configures a node: `master` before a custom pool before `worker`.
    pub fn pool(&self, node: &Node) -> Result<Option<&'a MachineConfigPool>, TooManyPools> {
        let (mut master, mut worker, mut custom) = (None, None, Vec::new());
        for (pool, _) in self.0.iter().filter(|(_, selection)| selection.has(node.labels())) {
            match pool.metadata.name.as_deref() {
                Some("master") => master = Some(*pool),
                Some("worker") => worker = Some(*pool),
                _ => custom.push(*pool),
            }
        }
        match custom.as_slice() {
            [] | [_] => Ok(master.or(custom.pop()).or(worker)),
            [..] => {
                let pools = custom.into_iter().map(ResourceExt::name_any).collect();
                Err(TooManyPools { node: node.name_any(), pools })
            }
        }
    }
}

/// How many of a pool's nodes may be unavailable at a time. At least one, or no rollout would ever progress.
/// Not shared with `advisor::blast_radius` on purpose: tests compare what that expects with what this stand-in does.
pub fn max_unavailable(pool: &MachineConfigPool, nodes: usize) -> usize {
    let allowed = match &pool.spec.max_unavailable {
        None => 1,
        Some(IntOrString::Int(count)) => usize::try_from(*count).unwrap_or(0),
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<usize>().ok());
            percent.map_or(0, |percent| nodes.saturating_mul(percent) / 100)
        }
    };
    allowed.max(1)
}

#[cfg(test)]
mod tests {
    use advisor::{Answer, Facts, pools};
    use serde_json::json;

    use super::*;
    use crate::machine_config::test_objects::{node, pool};

    #[test]
    fn a_node_belongs_to_master_before_a_custom_pool_before_worker() {
        let pools = ["gpu", "infra", "master", "worker"].map(|name| pool(name, &[name]));
        let cases = [
            (&["worker"][..], Ok(Some("worker"))),
            (&["worker", "infra"], Ok(Some("infra"))),
            (&["infra"], Ok(Some("infra"))),
            (&["master", "worker"], Ok(Some("master"))),
            (&["master", "infra", "worker"], Ok(Some("master"))),
            (&["worker", "infra", "gpu"], Err(2)),
            (&["other"], Ok(None)),
            (&[], Ok(None)),
        ];
        for (roles, expected) in cases {
            let found = Membership::of(&pools).pool(&node("a", roles));
            let found = found.map(|pool| pool.map(ResourceExt::name_any)).map_err(|error| error.pools.len());
            assert_eq!(found, expected.map(|pool| pool.map(str::to_owned)), "{roles:?}");
        }
    }

    #[test]
    fn selectors_select_machine_configs_as_the_advisor_says() {
        let role = "machineconfiguration.openshift.io/role";
        let selectors = [
            json!({"matchLabels": {role: "worker"}}),
            json!({"matchLabels": {role: "master"}}),
            json!({"matchExpressions": [{"key": role, "operator": "In", "values": ["worker", "infra"]}]}),
            json!({"matchExpressions": [{"key": role, "operator": "NotIn", "values": ["infra"]}]}),
            json!({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["a"]}]}),
            json!({"matchExpressions": [{"key": role, "operator": "Exists"}]}),
            json!({"matchExpressions": [{"key": role, "operator": "DoesNotExist"}]}),
            json!({"matchExpressions": [{"key": role, "operator": "Near"}]}),
            json!({"matchLabels": {}, "matchExpressions": []}),
            json!({}),
        ];
        for selector in selectors {
            let items = vec![json!({"spec": {"machineConfigSelector": selector}})];
            let facts = Facts::of([(pools::all(), Answer::List { version: "v1", items })]);
            for labels in [BTreeMap::from([(role.to_owned(), "worker".to_owned())]), BTreeMap::new()] {
                let parsed: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
                let expected = !pools::reached(&facts, &json!(labels)).is_empty();
                assert_eq!(Selection::of(Some(&parsed)).has(&labels), expected, "{selector} on {labels:?}");
            }
        }
    }

    #[test]
    fn max_unavailable_is_a_number_or_a_share_rounded_down_and_at_least_one() {
        let (number, text) = (IntOrString::Int, |text: &str| IntOrString::String(text.into()));
        for (setting, nodes, expected) in [
            (None, 6, 1),
            (Some(number(2)), 6, 2),
            (Some(number(0)), 6, 1),
            (Some(number(-3)), 6, 1),
            (Some(number(9)), 6, 9),
            (Some(text("50%")), 6, 3),
            (Some(text("50%")), 3, 1),
            (Some(text("34%")), 6, 2),
            (Some(text("10%")), 6, 1),
            (Some(text("0%")), 6, 1),
            (Some(text("100%")), 6, 6),
            (Some(text("half")), 6, 1),
        ] {
            let mut pool = pool("worker", &["worker"]);
            pool.spec.max_unavailable = setting.clone();
            assert_eq!(max_unavailable(&pool, nodes), expected, "{setting:?} of {nodes}");
        }
    }
}
