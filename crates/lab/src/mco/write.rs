//! Actions as requests. Each carries the version of the object that it was decided on, so that none is made on old news.

use std::{future::Future, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Action, Error, MachineConfig, MachineConfigPool, Rendered, State, kinds::machine_config_resource,
    machine::drain_for, names, world::World,
};

const DEADLINE: Duration = Duration::from_secs(10);

/// How the cluster answered.
#[derive(Debug)]
pub(super) enum Written {
    Config(Box<MachineConfig>),
    Pool(Box<MachineConfigPool>),
    Node(Box<Node>),
    /// The config is no more.
    Gone(String),
    /// There was nothing to do, or nothing to do it to.
    Nothing,
}

#[derive(Clone)]
pub(super) struct Writer {
    configs: Api<MachineConfig>,
    pools: Api<MachineConfigPool>,
    nodes: Api<Node>,
}

impl Writer {
    pub(super) fn new(client: &Client) -> Self {
        Writer {
            configs: Api::all_with(client.clone(), &machine_config_resource()),
            pools: Api::all(client.clone()),
            nodes: Api::all(client.clone()),
        }
    }

    pub(super) async fn perform(&self, action: &Action, world: &World, now: Timestamp) -> Result<Written, Error> {
        let doing = || action.to_string();
        let params = PatchParams { field_manager: Some(names::FIELD_MANAGER.into()), ..PatchParams::default() };
        match action {
            Action::Store { pool, rendered } => self.store(world.pools.get(pool), rendered, doing()).await,
            Action::Retire { config } => {
                match within(doing(), self.configs.delete(config, &DeleteParams::default())).await {
                    Ok(_) => Ok(Written::Gone(config.clone())),
                    Err(error) if error.code() == Some(404) => Ok(Written::Gone(config.clone())),
                    Err(error) => Err(error),
                }
            }
            Action::Point { pool, configuration } => {
                let Some(known) = world.pools.get(pool) else { return Ok(Written::Nothing) };
                let patch = versioned(known, json!({"spec": {"configuration": configuration}}));
                let answer = within(doing(), self.pools.patch(pool, &params, &Patch::Merge(patch))).await?;
                Ok(Written::Pool(Box::new(answer)))
            }
            Action::Report { pool, status } => {
                let Some(known) = world.pools.get(pool) else { return Ok(Written::Nothing) };
                let patch = versioned(known, json!({"status": status}));
                let answer = within(doing(), self.pools.patch_status(pool, &params, &Patch::Merge(patch))).await?;
                Ok(Written::Pool(Box::new(answer)))
            }
            Action::GoDown { node } | Action::ComeUp { node } => {
                let Some(known) = world.nodes.get(node) else { return Ok(Written::Nothing) };
                let status = ready_condition(matches!(action, Action::ComeUp { .. }), now);
                // Strategic, because only then the other conditions stay.
                let patch = Patch::Strategic(versioned(known, status));
                let answer = within(doing(), self.nodes.patch_status(node, &params, &patch)).await?;
                Ok(Written::Node(Box::new(answer)))
            }
            _ => {
                let (Some(node), Some(change)) = (node_of(action), node_change(action, now)) else {
                    return Ok(Written::Nothing);
                };
                let Some(known) = world.nodes.get(node) else { return Ok(Written::Nothing) };
                let patch = versioned(known, change);
                let answer = within(doing(), self.nodes.patch(node, &params, &Patch::Merge(patch))).await?;
                Ok(Written::Node(Box::new(answer)))
            }
        }
    }

    async fn store(
        &self,
        pool: Option<&MachineConfigPool>,
        rendered: &Rendered,
        doing: String,
    ) -> Result<Written, Error> {
        let owner = pool.and_then(|pool| pool.controller_owner_ref(&()));
        let mut config = MachineConfig::new(&rendered.name, &machine_config_resource());
        config.metadata.owner_references = owner.map(|owner| vec![owner]);
        config.labels_mut().insert(names::STAND_IN_LABEL.into(), "true".into());
        config.annotations_mut().insert(names::GENERATED_BY.into(), names::FIELD_MANAGER.into());
        config.data = json!({"spec": rendered.spec});
        let params = PostParams { field_manager: Some(names::FIELD_MANAGER.into()), ..PostParams::default() };
        match within(doing, self.configs.create(&params, &config)).await {
            Ok(config) => Ok(Written::Config(Box::new(config))),
            // The watch will bring it.
            Err(error) if error.code() == Some(409) => Ok(Written::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// A request with a deadline, whose error says what was being done.
pub(super) async fn within<T>(doing: String, request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match timeout(DEADLINE, request).await {
        Ok(answer) => answer.map_err(|error| Error::new(doing, error)),
        Err(_) => Err(Error::TimedOut { doing, limit: DEADLINE }),
    }
}

fn versioned<K: ResourceExt>(known: &K, mut patch: Value) -> Value {
    patch["metadata"]["resourceVersion"] = json!(known.resource_version());
    patch
}

fn node_of(action: &Action) -> Option<&str> {
    match action {
        Action::Adopt { node, .. }
        | Action::Target { node, .. }
        | Action::Cordon { node, .. }
        | Action::Drained { node, .. }
        | Action::Degrade { node, .. }
        | Action::StartReboot { node }
        | Action::Uncordon { node, .. } => Some(node),
        _ => None,
    }
}

/// What an action changes on a node's metadata and spec.
fn node_change(action: &Action, now: Timestamp) -> Option<Value> {
    // As precise as a pretended reboot needs it.
    let since = json!(Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string());
    let annotations = match action {
        Action::Adopt { config, .. } => json!({
            names::CURRENT_CONFIG: config, names::DESIRED_CONFIG: config,
            names::STATE: State::Done.as_str(), names::REASON: "",
        }),
        Action::Target { config, .. } => json!({names::DESIRED_CONFIG: config}),
        Action::Cordon { config, .. } => json!({
            names::STATE: State::Working.as_str(), names::REASON: "",
            names::DESIRED_DRAIN: drain_for(config), names::SINCE: since,
        }),
        Action::Drained { config, .. } => json!({names::LAST_APPLIED_DRAIN: drain_for(config)}),
        Action::Degrade { reason, .. } => json!({names::STATE: State::Degraded.as_str(), names::REASON: reason}),
        Action::StartReboot { .. } => json!({
            names::STATE: State::Rebooting.as_str(), names::REASON: "", names::SINCE: since,
        }),
        Action::Uncordon { config, .. } => {
            let uncordon = format!("uncordon-{config}");
            json!({
                names::CURRENT_CONFIG: config, names::STATE: State::Done.as_str(), names::REASON: "",
                names::DESIRED_DRAIN: uncordon, names::LAST_APPLIED_DRAIN: uncordon, names::SINCE: null,
            })
        }
        _ => return None,
    };
    let mut change = json!({"metadata": {"annotations": annotations}});
    match action {
        Action::Cordon { .. } => change["spec"]["unschedulable"] = true.into(),
        Action::Uncordon { .. } => change["spec"]["unschedulable"] = Value::Null,
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
    use crate::mco::test_objects::at;

    #[test]
    fn a_node_carries_the_annotations_of_the_real_operator_at_every_step() {
        let (node, config) = (String::from("a"), String::from("rendered-y"));
        let prefix = "machineconfiguration.openshift.io/";
        let cases = [
            (
                Action::Adopt { node: node.clone(), config: config.clone() },
                json!({"currentConfig": "rendered-y", "desiredConfig": "rendered-y", "state": "Done", "reason": ""}),
                json!(null),
            ),
            (
                Action::Target { node: node.clone(), config: config.clone() },
                json!({"desiredConfig": "rendered-y"}),
                json!(null),
            ),
            (
                Action::Cordon { node: node.clone(), config: config.clone() },
                json!({"state": "Working", "reason": "", "desiredDrain": "drain-rendered-y"}),
                json!({"unschedulable": true}),
            ),
            (
                Action::Drained { node: node.clone(), config: config.clone() },
                json!({"lastAppliedDrain": "drain-rendered-y"}),
                json!(null),
            ),
            (
                Action::Degrade { node: node.clone(), reason: "why".into() },
                json!({"state": "Degraded", "reason": "why"}),
                json!(null),
            ),
            (Action::StartReboot { node: node.clone() }, json!({"state": "Rebooting", "reason": ""}), json!(null)),
            (
                Action::Uncordon { node, config },
                json!({
                    "currentConfig": "rendered-y", "state": "Done", "reason": "",
                    "desiredDrain": "uncordon-rendered-y", "lastAppliedDrain": "uncordon-rendered-y",
                }),
                json!({"unschedulable": null}),
            ),
        ];
        for (action, annotations, spec) in cases {
            let change = node_change(&action, at(0)).unwrap();
            let found = change["metadata"]["annotations"].as_object().unwrap().iter();
            let found: Value = found
                .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone())))
                .collect::<serde_json::Map<_, _>>()
                .into();
            assert_eq!(found, annotations, "{action}");
            assert_eq!(change["spec"], spec, "{action}");
        }
        assert_eq!(node_change(&Action::WakeAt(at(0)), at(0)), None);
    }
}
