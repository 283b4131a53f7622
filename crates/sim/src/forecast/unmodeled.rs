//! What a forecast does not model, in sentences.

use super::PlannedSettings;
use crate::scenario::Scenario;

pub(super) fn not_modeled(scenario: &Scenario, plan: &PlannedSettings) -> Vec<String> {
    let always = [
        "The rollout of the plan: where it reboots nodes, each is drained first, and the VMs are elsewhere before the \
         descheduler begins.",
        "VMs that are created, stopped or resized, and nodes that come, go or fail, beyond what the scenario says.",
        "What people migrate by hand, and what upgrades and drains migrate.",
        "Load that follows from the placement: a VM uses what the scenario says, wherever it runs.",
        "Pods other than VMs: the descheduler of the plan moves VMs only here, and other pods are a part of the nodes.",
        "Pod disruption budgets, topology spread, and scheduler plugins other than the default ones.",
        "Failures of Prometheus, of the API server and of migrations, beyond the failure rate of the scenario.",
    ];
    let mut texts: Vec<String> = always.map(str::to_owned).to_vec();
    match plan.migration_aware {
        _ if !plan.evicts => {}
        None => {
            texts.push("A cool-down after migrations, which this release of the descheduler does not have.".to_owned());
        }
        Some(_) => texts.push("Migrations before the forecast begins, which the descheduler may remember.".to_owned()),
    }
    if !scenario.events.is_empty() {
        texts.push("Surprise: the events of nodes in the scenario happen at the same time in every run.".to_owned());
    }
    texts
}
