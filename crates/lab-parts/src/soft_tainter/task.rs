//! The task of the soft-tainter, read from a KubeDescheduler or a policy, and the nodes that it classifies.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;
use serde_json::Value;
use standins::descheduler::{Mode, Policy, PolicyContext, Spec};

use super::{LowNodeUtilization, NodeUtilization, SoftTainterSettings};

/// How to classify nodes, and how often.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub(super) plugin: LowNodeUtilization,
    pub(super) interval: Duration,
}

impl Task {
    /// The task of a policy. Taints are of use only if the descheduler evicts.
    pub(super) fn of(policy: &Policy) -> Option<Task> {
        let plugin = LowNodeUtilization::of(&policy.text).filter(|_| policy.mode == Mode::Automatic)?;
        Some(Task { plugin, interval: policy.interval })
    }

    /// The task of a KubeDescheduler that is new or has changed.
    pub(super) fn of_spec(spec: &Value, settings: &SoftTainterSettings, before: Option<Task>) -> Option<Task> {
        let spec = Spec::read(spec).ok()?;
        let included = spec.profile_customizations.namespaces.included.iter().map(String::as_str);
        let context = PolicyContext {
            release: settings.release,
            // Taints do not depend on it.
            prometheus_url: String::new(),
            protected: PolicyContext::protected_among(included),
            time_scale: settings.time_scale,
        };
        match Policy::of(&spec, &context) {
            Ok(policy) => Task::of(&policy).filter(|_| spec.wants_soft_tainter(settings.release)),
            Err(error) if error.scales_down() => None,
            // The policy before stays in effect.
            Err(_) => before,
        }
    }
}

/// The parts of a node that it reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ObservedNode {
    pub(super) version: String,
    labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    takes_pods: bool,
}

impl ObservedNode {
    pub(super) fn of(node: &Node) -> ObservedNode {
        let spec = node.spec.clone().unwrap_or_default();
        ObservedNode {
            version: node.resource_version().unwrap_or_default(),
            labels: node.labels().clone(),
            taints: spec.taints.unwrap_or_default(),
            takes_pods: !spec.unschedulable.unwrap_or(false),
        }
    }

    fn is_selected(&self, plugin: &LowNodeUtilization) -> bool {
        plugin.node_selector.as_ref().is_none_or(|(label, value)| self.labels.get(label) == Some(value))
    }
}

/// The utilization of each selected node. One without a sample makes the whole result an error.
/// Unlike for the descheduler, a node that is not ready counts, too.
pub(super) fn utilizations(
    nodes: &BTreeMap<String, ObservedNode>,
    percents: &BTreeMap<String, i64>,
    plugin: &LowNodeUtilization,
) -> Result<BTreeMap<String, NodeUtilization>, String> {
    let selected = nodes.iter().filter(|(_, node)| node.is_selected(plugin));
    let utilization = |(name, node): (&String, &ObservedNode)| match percents.get(name) {
        Some(&percent) => Ok((name.clone(), NodeUtilization { percent, takes_pods: node.takes_pods })),
        None => Err(format!("the query {:?} gives no sample for node {name}", plugin.query)),
    };
    selected.map(utilization).collect()
}

#[cfg(test)]
mod tests {
    use advisor::kube_descheduler::Release;
    use serde_json::json;

    use super::*;

    fn settings(release: Release) -> SoftTainterSettings {
        let prometheus_url = "http://127.0.0.1:9090".to_owned();
        SoftTainterSettings { release, prometheus_url, time_scale: 1.0, policy_source: Default::default() }
    }

    /// The spec that the profile writes, with these customizations.
    fn spec(release: Release, customizations: Value) -> Value {
        json!({
            "profiles": [release.profile()], "mode": "Automatic", "deschedulingIntervalSeconds": 60,
            "profileCustomizations": customizations,
        })
    }

    #[test]
    fn an_error_that_is_only_logged_leaves_the_task_and_one_that_scales_down_ends_it() {
        let settings = settings(Release::NEWEST);
        let task = Task::of_spec(&spec(Release::NEWEST, json!({})), &settings, None);
        assert!(task.is_some());
        for customizations in [
            json!({"devActualUtilizationProfile": "X"}),
            json!({"namespaces": {"included": ["openshift-cnv"]}}),
            json!({"devDeviationThresholds": "Low", "devLowNodeUtilizationThresholds": "Low"}),
        ] {
            let refused = spec(Release::NEWEST, customizations);
            assert_eq!(Task::of_spec(&refused, &settings, task.clone()), task, "{refused}");
            assert_eq!(Task::of_spec(&refused, &settings, None), None, "{refused}");
        }
        for (field, value) in [("deschedulingIntervalSeconds", json!(0)), ("mode", json!("Predictive"))] {
            let mut ended = spec(Release::NEWEST, json!({}));
            ended[field] = value;
            assert_eq!(Task::of_spec(&ended, &settings, task.clone()), None, "{ended}");
        }
    }

    #[test]
    fn there_is_nothing_to_do_without_the_profile_or_without_a_soft_tainter() {
        let metric = "PrometheusCPUCombined";
        let is_needed = |release, soft_tainter: bool| {
            let customizations = json!({"devActualUtilizationProfile": metric, "devEnableSoftTainter": soft_tainter});
            Task::of_spec(&spec(release, customizations), &settings(release), None).is_some()
        };
        assert_eq!((is_needed(Release::V4_18, false), is_needed(Release::V4_18, true)), (false, true));
        assert_eq!((is_needed(Release::V4_19, false), is_needed(Release::V4_19, true)), (true, true));
        let mut long = spec(Release::NEWEST, json!({"devActualUtilizationProfile": metric}));
        long["profiles"] = json!(["LongLifecycle"]);
        assert_eq!(Task::of_spec(&long, &settings(Release::NEWEST), None), None);
    }

    #[test]
    fn a_node_counts_whether_it_is_ready_or_not_and_must_have_a_sample() {
        let node = |name: &str, ready: &str, label: &str| {
            let node = json!({
                "metadata": {"name": name, "labels": {"kubevirt.io/schedulable": label}},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            (name.to_owned(), ObservedNode::of(&serde_json::from_value(node).unwrap()))
        };
        let nodes = BTreeMap::from([node("a", "True", "true"), node("b", "False", "true"), node("c", "True", "false")]);
        let task = Task::of_spec(&spec(Release::NEWEST, json!({})), &settings(Release::NEWEST), None).unwrap();
        let mut percents = BTreeMap::from([("a".to_owned(), 10), ("b".to_owned(), 20)]);
        let found: Vec<String> = utilizations(&nodes, &percents, &task.plugin).unwrap().into_keys().collect();
        assert_eq!(found, ["a", "b"]);
        percents.remove("b");
        let problem = utilizations(&nodes, &percents, &task.plugin).unwrap_err();
        assert!(problem.ends_with("gives no sample for node b"), "{problem}");
    }
}
