//! One configuration from its first plan to drift: with the operator, and without.

use std::time::{Duration, Instant};

use anyhow::Context;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    discovery::ApiResource,
    runtime::watcher,
};
use kube_io::{Change, ResilientWatch, WatchEvent};
use serde_json::{Value, json};
use testkit::rollout::{NODES, PSI, Rollout};
use tokio::sync::mpsc;

use super::PROFILE;

const LIMIT: Duration = Duration::from_secs(20);

pub(super) fn phase(object: &Value) -> &str {
    object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

/// Makes the edits of a person and of the machine config operator, and watches what becomes of them.
pub(super) struct Lifecycle {
    client: Client,
    events: mpsc::UnboundedReceiver<(&'static str, Value, Instant)>,
    /// The configuration as it was seen last.
    config: Value,
    /// The states with a changed status, for each step of the last lifecycle.
    states: [Vec<Value>; 4],
    step: usize,
}

pub(super) fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: format!("{group}/{version}"),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
    }
}

pub(super) const MCO: &str = "machineconfiguration.openshift.io";

impl Lifecycle {
    pub(super) async fn new(client: Client) -> anyhow::Result<Self> {
        let (sender, events) = mpsc::unbounded_channel();
        let watched = [
            ("VirtPlatformConfig", resource("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig"), PROFILE),
            ("MachineConfig", resource(MCO, "v1", "MachineConfig"), PSI),
            ("KubeDescheduler", resource("operator.openshift.io", "v1", "KubeDescheduler"), "cluster"),
        ];
        for (kind, resource, name) in watched {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut watch = ResilientWatch::local(api, config);
                while !sender.is_closed() {
                    if let WatchEvent::Change(Change::Applied(object)) = watch.next().await {
                        let _ = sender.send((kind, json!(object), Instant::now()));
                    }
                }
            });
        }
        Ok(Lifecycle { client, events, config: Value::Null, states: Default::default(), step: 0 })
    }

    pub(super) async fn until(&mut self, what: &str, holds: impl Fn(&str, &Value) -> bool) -> anyhow::Result<Instant> {
        let wait = async {
            loop {
                let (kind, object, time) = self.events.recv().await.context("the watches have ended")?;
                let found = holds(kind, &object);
                if kind == "VirtPlatformConfig" {
                    if object["status"] != self.config["status"] {
                        self.states[self.step].push(object.clone());
                    }
                    self.config = object;
                }
                if found {
                    return anyhow::Ok(time);
                }
            }
        };
        tokio::time::timeout(LIMIT, wait).await.with_context(|| format!("never: {what}"))?
    }

    /// Waits until the configuration contains a text. It may contain it already.
    async fn until_contains(&mut self, message: &str) -> anyhow::Result<()> {
        let contains = |object: &Value| object.to_string().contains(message);
        if !contains(&self.config) {
            self.until(message, |_, object| contains(object)).await?;
        }
        Ok(())
    }

    fn api(&self, group: &str, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = resource(group, version, kind);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn configs(&self) -> Api<DynamicObject> {
        self.api("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig", None)
    }

    fn descheduler(&self) -> Api<DynamicObject> {
        self.api("operator.openshift.io", "v1", "KubeDescheduler", Some("openshift-kube-descheduler-operator"))
    }

    async fn patch(&self, api: &Api<DynamicObject>, name: &str, patch: Value) -> anyhow::Result<DynamicObject> {
        Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// From the first plan to drift. Returns how long each step took.
    pub(super) async fn run(&mut self) -> anyhow::Result<[Duration; 4]> {
        let configs = self.configs();
        let arrived = |wanted: &'static str| {
            move |kind: &str, object: &Value| kind == "VirtPlatformConfig" && phase(object) == wanted
        };

        self.states = Default::default();
        self.step = 0;
        let start = Instant::now();
        self.patch(&configs, PROFILE, json!({"spec": {"action": "DryRun"}})).await?;
        let planned = self.until("ReviewRequired", arrived("ReviewRequired")).await? - start;

        self.step = 1;
        let start = Instant::now();
        self.patch(&configs, PROFILE, json!({"spec": {"action": "Apply"}})).await?;
        let first = self.until("an object", |kind, _| kind != "VirtPlatformConfig").await?;
        let second = self.until("both objects", |kind, _| kind != "VirtPlatformConfig").await?;
        let written = first.max(second) - start;

        self.until_contains("is processing changes").await?;
        self.roll(1).await?;
        self.until_contains("Updated: 1/3").await?;
        self.step = 2;
        let start = Instant::now();
        self.roll(3).await?;
        let completed = self.until("Completed", arrived("Completed")).await? - start;

        self.step = 3;
        let start = Instant::now();
        self.patch(&self.descheduler(), "cluster", json!({"spec": {"deschedulingIntervalSeconds": 180}})).await?;
        let drifted = self.until("Drifted", arrived("Drifted")).await? - start;
        Ok([planned, written, completed, drifted])
    }

    /// The last lifecycle again, without an operator: the same edits, and right after each the writes that the requirements
    /// ask for, one after the other. Nothing can be faster on this API server.
    pub(super) async fn run_bare(&mut self) -> anyhow::Result<[Duration; 4]> {
        let configs = self.configs();
        let [planned, written, completed, drifted] = self.states.clone();
        let action = |action: &str| json!({"spec": {"action": action}});
        self.patch(&configs, PROFILE, action("Ignore")).await?;

        let start = Instant::now();
        let mut config = self.patch(&configs, PROFILE, action("DryRun")).await?;
        let until_planned = self.record_all(&mut config, &planned).await? - start;

        let items = planned.last().and_then(|config| config.pointer("/status/items")).context("a plan")?;
        let (first, second) = (&items[0], &items[1]);
        let start = Instant::now();
        let mut config = self.patch(&configs, PROFILE, action("Apply")).await?;
        tokio::try_join!(self.apply(first, true), self.apply(second, true))?;
        self.record_all(&mut config, &written[..1]).await?;
        self.apply(first, false).await?;
        self.record_all(&mut config, &written[1..2]).await?;
        self.apply(second, false).await?;
        let until_written = start.elapsed();

        self.roll(1).await?;
        let start = Instant::now();
        self.roll(3).await?;
        let until_completed = self.record_all(&mut config, &completed).await? - start;

        let start = Instant::now();
        self.patch(&self.descheduler(), "cluster", json!({"spec": {"deschedulingIntervalSeconds": 180}})).await?;
        let until_drifted = self.record_all(&mut config, &drifted).await? - start;
        self.delete_objects().await?;
        Ok([until_planned, until_written, until_completed, until_drifted])
    }

    /// Writes the statuses that the operator wrote in a step. Returns when that was done.
    async fn record_all(&self, config: &mut DynamicObject, states: &[Value]) -> anyhow::Result<Instant> {
        let configs = self.configs();
        for state in states {
            config.data["status"] = state["status"].clone();
            config.metadata.managed_fields = None;
            *config = configs.replace_status(PROFILE, &Default::default(), config).await?;
        }
        Ok(Instant::now())
    }

    async fn apply(&self, item: &Value, dry_run: bool) -> anyhow::Result<()> {
        let target = &item["targetRef"];
        let text = |field: &str| target[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').context("a group")?;
        let params = PatchParams { dry_run, ..PatchParams::apply("bench").force() };
        let api = self.api(group, version, text("kind"), target["namespace"].as_str());
        api.patch(text("name"), &params, &Patch::Apply(&item["desiredState"])).await?;
        Ok(())
    }

    /// Resets everything: the profile ignored, nothing applied, the pool at rest.
    pub(super) async fn reset(&mut self) -> anyhow::Result<()> {
        self.ignore().await?;
        self.delete_objects().await
    }

    pub(super) async fn ignore(&mut self) -> anyhow::Result<()> {
        self.patch(&self.configs(), PROFILE, json!({"spec": {"action": "Ignore"}})).await?;
        self.until("Ignored", |kind, object| kind == "VirtPlatformConfig" && phase(object) == "Ignored").await?;
        Ok(())
    }

    async fn delete_objects(&self) -> anyhow::Result<()> {
        self.descheduler().delete("cluster", &Default::default()).await?;
        self.api(MCO, "v1", "MachineConfig", None).delete(PSI, &Default::default()).await?;
        self.roll(0).await
    }

    /// Writes the worker pool as if so many of its nodes ran our config. With none, the pool is as in the samples.
    async fn roll(&self, updated: i64) -> anyhow::Result<()> {
        let pools = self.api(MCO, "v1", "MachineConfigPool", None);
        let rollout = match updated {
            0 => Rollout { configs: &[], updated: NODES },
            updated => Rollout { configs: &[PSI], updated },
        };
        let patch = Patch::Merge(json!({"spec": rollout.pool_spec()}));
        let pool = pools.patch("worker", &PatchParams::default(), &patch).await?;
        let status = rollout.pool_status(&json!(pool.metadata.generation));
        pools.patch_status("worker", &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
        Ok(())
    }
}
