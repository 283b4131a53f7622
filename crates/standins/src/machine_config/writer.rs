//! Sends requests. Each carries the version of the object that was decided on: a newer one is a conflict.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_io::{Class, RequestError};
use serde_json::{Value, json};

use super::{
    DaemonState, Machine, MachineConfig, MachineConfigPool, Rendered, Request, cache::Cache,
    kinds::machine_config_resource, machine::drain_for, names,
};
use crate::{STAND_IN_LABEL, Time};

/// The object as it is after a write.
#[derive(Debug)]
pub(super) enum Written {
    Config(Box<MachineConfig>),
    Pool(Box<MachineConfigPool>),
    Node(Box<Node>),
    /// The config does not exist any more.
    Deleted(String),
    /// Nothing was written: the object does not exist, or exists already.
    Nothing,
}

#[derive(Clone)]
pub(super) struct Writer {
    time: Time,
    configs: Api<MachineConfig>,
    pools: Api<MachineConfigPool>,
    nodes: Api<Node>,
}

impl Writer {
    pub(super) fn new(client: &Client, time: &Time) -> Self {
        Writer {
            time: time.clone(),
            configs: Api::all_with(client.clone(), &machine_config_resource()),
            pools: Api::all(client.clone()),
            nodes: Api::all(client.clone()),
        }
    }

    pub(super) async fn send(&self, request: &Request, cache: &Cache, now: Timestamp) -> Result<Written, RequestError> {
        let doing = || request.to_string();
        let params = PatchParams { field_manager: Some(names::FIELD_MANAGER.into()), ..PatchParams::default() };
        match request {
            Request::CreateRendered { pool, rendered } => self.store(cache.pools.get(pool), rendered, doing()).await,
            Request::DeleteRendered { config } => {
                match self.time.write(doing(), self.configs.delete(config, &DeleteParams::default())).await {
                    Ok(_) => Ok(Written::Deleted(config.clone())),
                    Err(error) if error.class.is_absent() => Ok(Written::Deleted(config.clone())),
                    Err(error) => Err(error),
                }
            }
            Request::SetPoolTarget { pool, configuration } => {
                let Some(known) = cache.pools.get(pool) else { return Ok(Written::Nothing) };
                let patch = versioned(known, json!({"spec": {"configuration": configuration}}));
                let written = self.time.write(doing(), self.pools.patch(pool, &params, &Patch::Merge(patch))).await?;
                Ok(Written::Pool(Box::new(written)))
            }
            Request::UpdatePoolStatus { pool, status } => {
                let Some(known) = cache.pools.get(pool) else { return Ok(Written::Nothing) };
                let patch = versioned(known, json!({"status": status}));
                let written =
                    self.time.write(doing(), self.pools.patch_status(pool, &params, &Patch::Merge(patch))).await?;
                Ok(Written::Pool(Box::new(written)))
            }
            Request::SetNotReady { node } | Request::SetReady { node } => {
                let Some(known) = cache.nodes.get(node) else { return Ok(Written::Nothing) };
                let status = ready_condition(matches!(request, Request::SetReady { .. }), now);
                // A merge patch would remove the other conditions.
                let patch = Patch::Strategic(versioned(known, status));
                let written = self.time.write(doing(), self.nodes.patch_status(node, &params, &patch)).await?;
                Ok(Written::Node(Box::new(written)))
            }
            Request::SetUpdateTaint { node, is_set } => {
                let Some(known) = cache.nodes.get(node) else { return Ok(Written::Nothing) };
                let patch = versioned(known, json!({"spec": {"taints": taints(known, *is_set)}}));
                let written = self.time.write(doing(), self.nodes.patch(node, &params, &Patch::Merge(patch))).await?;
                Ok(Written::Node(Box::new(written)))
            }
            _ => {
                let (Some(node), Some(change)) = (node_of(request), node_change(request, now)) else {
                    return Ok(Written::Nothing);
                };
                let Some(known) = cache.nodes.get(node) else { return Ok(Written::Nothing) };
                let patch = versioned(known, change);
                let written = self.time.write(doing(), self.nodes.patch(node, &params, &Patch::Merge(patch))).await?;
                Ok(Written::Node(Box::new(written)))
            }
        }
    }

    async fn store(
        &self,
        pool: Option<&MachineConfigPool>,
        rendered: &Rendered,
        doing: String,
    ) -> Result<Written, RequestError> {
        let owner = pool.and_then(|pool| pool.controller_owner_ref(&()));
        let mut config = MachineConfig::new(&rendered.name, &machine_config_resource());
        config.metadata.owner_references = owner.map(|owner| vec![owner]);
        config.labels_mut().insert(STAND_IN_LABEL.into(), "true".into());
        config.annotations_mut().insert(names::GENERATED_BY.into(), names::FIELD_MANAGER.into());
        config.data = json!({"spec": rendered.spec});
        let params = PostParams { field_manager: Some(names::FIELD_MANAGER.into()), ..PostParams::default() };
        match self.time.write(doing, self.configs.create(&params, &config)).await {
            Ok(config) => Ok(Written::Config(Box::new(config))),
            // The watch will report it.
            Err(error) if error.class == Class::Conflict => Ok(Written::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// The patch of an object that must still have the known version.
fn versioned<K: ResourceExt>(known: &K, mut patch: Value) -> Value {
    patch["metadata"]["resourceVersion"] = json!(known.resource_version());
    patch
}

/// The taints of a node, with or without the one of nodes that are to be updated.
fn taints(node: &Node, is_set: bool) -> Vec<Taint> {
    let others = Machine::of(node).taints().iter().filter(|taint| taint.key != names::UPDATE_IN_PROGRESS).cloned();
    let own = Taint { key: names::UPDATE_IN_PROGRESS.into(), effect: "PreferNoSchedule".into(), ..Taint::default() };
    others.chain(is_set.then_some(own)).collect()
}

fn node_of(request: &Request) -> Option<&str> {
    match request {
        Request::Adopt { node, .. }
        | Request::SetDesiredConfig { node, .. }
        | Request::Cordon { node, .. }
        | Request::MarkDrained { node, .. }
        | Request::MarkDegraded { node, .. }
        | Request::StartReboot { node }
        | Request::Uncordon { node, .. } => Some(node),
        _ => None,
    }
}

/// The change of a node's metadata and spec, as a merge patch.
fn node_change(request: &Request, now: Timestamp) -> Option<Value> {
    // Milliseconds, because a simulated reboot may take less than a second.
    let since = json!(Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string());
    let annotations = match request {
        Request::Adopt { config, .. } => json!({
            names::CURRENT_CONFIG: config, names::DESIRED_CONFIG: config,
            names::STATE: DaemonState::Done.as_str(), names::REASON: "",
        }),
        Request::SetDesiredConfig { config, .. } => json!({names::DESIRED_CONFIG: config}),
        Request::Cordon { config, .. } => json!({
            names::STATE: DaemonState::Working.as_str(), names::REASON: "",
            names::DESIRED_DRAIN: drain_for(config), names::SINCE: since,
        }),
        Request::MarkDrained { config, .. } => {
            json!({names::LAST_APPLIED_DRAIN: drain_for(config), names::SINCE: since})
        }
        Request::MarkDegraded { reason, .. } => {
            json!({names::STATE: DaemonState::Degraded.as_str(), names::REASON: reason})
        }
        Request::StartReboot { .. } => json!({
            names::STATE: DaemonState::Rebooting.as_str(), names::REASON: "", names::SINCE: since,
        }),
        Request::Uncordon { config, .. } => {
            let uncordon = format!("uncordon-{config}");
            json!({
                names::CURRENT_CONFIG: config, names::STATE: DaemonState::Done.as_str(), names::REASON: "",
                names::DESIRED_DRAIN: uncordon, names::LAST_APPLIED_DRAIN: uncordon, names::SINCE: null,
            })
        }
        _ => return None,
    };
    let mut change = json!({"metadata": {"annotations": annotations}});
    match request {
        Request::Cordon { .. } => change["spec"]["unschedulable"] = true.into(),
        Request::Uncordon { .. } => change["spec"]["unschedulable"] = Value::Null,
        _ => {}
    }
    Some(change)
}

fn ready_condition(is_ready: bool, now: Timestamp) -> Value {
    let (status, reason, message) = match is_ready {
        true => ("True", "KubeletReady", "mco-stand-in plays the kubelet of this node"),
        false => ("False", "KubeletNotReady", "mco-stand-in pretends that this node reboots"),
    };
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    json!({"status": {"conditions": [{
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    }]}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::{at, node};

    #[test]
    fn a_node_that_is_to_be_updated_keeps_its_other_taints() {
        let mut node = node("a", &["worker"]);
        assert!(taints(&node, false).is_empty());
        let own = Taint { key: "gpu".into(), effect: "NoSchedule".into(), ..Taint::default() };
        node.spec.get_or_insert_default().taints = Some(vec![own.clone()]);
        let tainted = taints(&node, true);
        assert_eq!(tainted[0], own);
        assert_eq!(json!(tainted[1]), json!({"key": "UpdateInProgress", "effect": "PreferNoSchedule"}));
        node.spec.get_or_insert_default().taints = Some(tainted.clone());
        assert!(Machine::of(&node).is_update_in_progress());
        assert_eq!((taints(&node, true), taints(&node, false)), (tainted, vec![own]));
    }

    #[test]
    fn a_node_carries_the_annotations_of_the_real_operator_at_every_step() {
        let (node, config) = (String::from("a"), String::from("rendered-y"));
        let prefix = "machineconfiguration.openshift.io/";
        let cases = [
            (
                Request::Adopt { node: node.clone(), config: config.clone() },
                json!({"currentConfig": "rendered-y", "desiredConfig": "rendered-y", "state": "Done", "reason": ""}),
                json!(null),
            ),
            (
                Request::SetDesiredConfig { node: node.clone(), config: config.clone() },
                json!({"desiredConfig": "rendered-y"}),
                json!(null),
            ),
            (
                Request::Cordon { node: node.clone(), config: config.clone() },
                json!({"state": "Working", "reason": "", "desiredDrain": "drain-rendered-y"}),
                json!({"unschedulable": true}),
            ),
            (
                Request::MarkDrained { node: node.clone(), config: config.clone() },
                json!({"lastAppliedDrain": "drain-rendered-y"}),
                json!(null),
            ),
            (
                Request::MarkDegraded { node: node.clone(), reason: "why".into() },
                json!({"state": "Degraded", "reason": "why"}),
                json!(null),
            ),
            (Request::StartReboot { node: node.clone() }, json!({"state": "Rebooting", "reason": ""}), json!(null)),
            (
                Request::Uncordon { node, config },
                json!({
                    "currentConfig": "rendered-y", "state": "Done", "reason": "",
                    "desiredDrain": "uncordon-rendered-y", "lastAppliedDrain": "uncordon-rendered-y",
                }),
                json!({"unschedulable": null}),
            ),
        ];
        for (request, annotations, spec) in cases {
            let change = node_change(&request, at(0)).unwrap();
            let found = change["metadata"]["annotations"].as_object().unwrap().iter();
            let found: Value = found
                .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone())))
                .collect::<serde_json::Map<_, _>>()
                .into();
            assert_eq!(found, annotations, "{request}");
            assert_eq!(change["spec"], spec, "{request}");
        }
        assert_eq!(node_change(&Request::SetReady { node: "a".into() }, at(0)), None);
    }
}
