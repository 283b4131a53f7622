//! PodDisruptionBudgets that allow no disruption: a drain waits for each of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Budget, DrainEffect, GuestOutcome, ObservedCluster, Pod};

/// A budget that allows no disruption now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetAtLimit {
    pub namespace: String,
    pub name: String,
    /// The nodes that reboot and have pods of it. Absent if pods could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    pub pods: usize,
}

/// A budget, the nodes with pods of it, and the number of these pods.
struct Covered<'a> {
    budget: &'a Budget,
    nodes: BTreeSet<&'a str>,
    pods: usize,
}

/// The positions of budgets by namespace and by a label that each of their pods has: a pod is compared with few of them.
#[derive(Default)]
struct Index<'a> {
    by_label: HashMap<(&'a str, &'a str, &'a str), Vec<usize>>,
    /// Those that name no label with its value.
    others: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Index<'a> {
    fn of(covered: &[Covered<'a>]) -> Self {
        let mut index = Index::default();
        for (position, Covered { budget, .. }) in covered.iter().enumerate() {
            let namespace = budget.namespace.as_str();
            match budget.required_label() {
                Some((key, values)) => {
                    for value in values.iter().map(String::as_str).collect::<BTreeSet<_>>() {
                        index.by_label.entry((namespace, key, value)).or_default().push(position);
                    }
                }
                None => index.others.entry(namespace).or_default().push(position),
            }
        }
        index
    }

    /// The positions of the budgets that may cover a pod.
    fn candidates<'b>(&'b self, pod: &'b Pod) -> impl Iterator<Item = usize> {
        let namespace = pod.namespace.as_str();
        let labels = pod.labels.iter().map(move |(key, value)| (namespace, key.as_str(), value.as_str()));
        let by_label = labels.filter_map(|label| self.by_label.get(&label));
        by_label.chain(self.others.get(namespace)).flatten().copied()
    }
}

/// The budgets at their limit that have pods on the nodes that reboot, or may have.
pub(super) fn at_limit(
    observed: &ObservedCluster,
    reboots: impl Fn(&str) -> bool,
    outcomes: &HashMap<&str, &GuestOutcome>,
) -> Vec<BudgetAtLimit> {
    let is_at_limit = |budget: &&Budget| budget.allowed.is_some_and(|allowed| allowed <= 0);
    let budgets = observed.budgets.items().iter().filter(is_at_limit);
    let limit = |budget: &Budget, nodes, pods| BudgetAtLimit {
        namespace: budget.namespace.clone(),
        name: budget.name.clone(),
        nodes,
        pods,
    };
    let Some(pods) = observed.pods.value() else {
        return budgets.map(|budget| limit(budget, None, 0)).collect();
    };
    let mut covered: Vec<Covered<'_>> =
        budgets.map(|budget| Covered { budget, nodes: BTreeSet::new(), pods: 0 }).collect();
    covered.sort_by_key(|covered| (&covered.budget.namespace, &covered.budget.name));
    let index = Index::of(&covered);
    for pod in pods.iter().filter(|pod| !pod.stays && reboots(&pod.node)) {
        // KubeVirt answers for what it moves or holds, before any budget is asked.
        let outcome = pod.instance.as_deref().and_then(|uid| outcomes.get(uid));
        if outcome.is_some_and(|outcome| matches!(outcome.effect, DrainEffect::MovesLive | DrainEffect::BlocksDrain)) {
            continue;
        }
        for position in index.candidates(pod) {
            let covered = &mut covered[position];
            if covered.budget.covers(pod) {
                covered.pods += 1;
                covered.nodes.insert(&pod.node);
            }
        }
    }
    let found = covered.into_iter().filter(|covered| covered.pods > 0);
    found
        .map(|Covered { budget, nodes, pods }| {
            limit(budget, Some(nodes.into_iter().map(str::to_owned).collect()), pods)
        })
        .collect()
}

/// The nodes whose drain waits for one of the budgets. None if it may be any node.
pub(super) fn nodes(budgets: &[BudgetAtLimit]) -> Option<HashSet<&str>> {
    let nodes: Option<Vec<&Vec<String>>> = budgets.iter().map(|budget| budget.nodes.as_ref()).collect();
    Some(nodes?.into_iter().flatten().map(String::as_str).collect())
}
