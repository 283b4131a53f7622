//! PodDisruptionBudgets that allow no disruption: a drain waits for each of them.

use std::collections::HashMap;

use serde::Serialize;

use super::{Budget, Fate, Observed, Outcome};

/// A budget that allows no disruption now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetAtLimit {
    pub namespace: String,
    pub name: String,
    /// The nodes that reboot and have pods of it. None if pods could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    pub pods: usize,
}

/// A budget, the nodes with pods of it, and the number of these pods.
type Covered<'a> = (&'a Budget, Vec<String>, usize);

/// The budgets at their limit that have pods on the nodes that reboot, or may have.
pub(super) fn at_limit(
    observed: &Observed,
    reboots: impl Fn(&str) -> bool,
    outcomes: &HashMap<&str, &Outcome>,
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
    let mut by_namespace: HashMap<&str, Vec<Covered<'_>>> = HashMap::new();
    for budget in budgets {
        by_namespace.entry(&budget.namespace).or_default().push((budget, Vec::new(), 0));
    }
    for pod in pods.iter().filter(|pod| !pod.stays && reboots(&pod.node)) {
        // KubeVirt answers for what it moves or holds, before any budget is asked.
        let outcome = pod.instance.as_deref().and_then(|uid| outcomes.get(uid));
        if outcome.is_some_and(|outcome| matches!(outcome.fate, Fate::MovesLive | Fate::BlocksDrain)) {
            continue;
        }
        for (budget, nodes, count) in by_namespace.get_mut(pod.namespace.as_str()).into_iter().flatten() {
            if budget.covers(pod) {
                *count += 1;
                if !nodes.contains(&pod.node) {
                    nodes.push(pod.node.clone());
                }
            }
        }
    }
    let covered = by_namespace.into_values().flatten().filter(|(_, _, count)| *count > 0);
    let mut found: Vec<BudgetAtLimit> = covered
        .map(|(budget, mut nodes, count)| {
            nodes.sort();
            limit(budget, Some(nodes), count)
        })
        .collect();
    found.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    found
}
