//! The loop of the soft-tainter: classify all nodes in every cycle and write the taints that differ.

use std::{collections::BTreeMap, time::Duration};

use balance::Bucket;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    runtime::watcher::Config,
};
use kube_io::{Change, Class, ResilientWatch, answer_within, forward, prometheus::PrometheusClient};
use serde_json::json;
use standins::descheduler::{PolicySource, kube_descheduler_api, only_cluster_object};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::{debug, info, warn};

use super::{
    FIELD_MANAGER, Findings, LowNodeUtilization, SoftTainterSettings, classify,
    samples::percents,
    taints::{is_tainted, retainted, wanted},
    task::{ObservedNode, Task, utilizations},
};

const BACKLOG: usize = 256;
/// The timeout of one request.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
/// How many conflicts in a row a cycle resolves for one node.
const TRIES: u32 = 3;
/// When taints that could not be removed are tried again.
const CLEAN_AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
enum WatchedChange {
    Object(Change<DynamicObject>),
    Node(Change<Node>),
}

pub(super) struct Controller {
    client: Client,
    prometheus: PrometheusClient,
    settings: SoftTainterSettings,
    findings: watch::Sender<Findings>,
    changes: mpsc::Receiver<WatchedChange>,
    _watches: JoinSet<()>,
    /// Whether the KubeDescheduler and the nodes have been listed.
    synced: [bool; 2],
    task: Option<Task>,
    nodes: BTreeMap<String, ObservedNode>,
}

impl Controller {
    pub(super) fn new(
        client: Client,
        prometheus: PrometheusClient,
        settings: SoftTainterSettings,
        findings: watch::Sender<Findings>,
    ) -> Controller {
        let (send, changes) = mpsc::channel(BACKLOG);
        let mut watched = JoinSet::new();
        let mut task = None;
        match &settings.policy_source {
            PolicySource::KubeDescheduler => {
                let objects = ResilientWatch::local(kube_descheduler_api(&client), only_cluster_object());
                watched.spawn(forward(objects, WatchedChange::Object, send.clone()));
            }
            PolicySource::Fixed(policy) => task = Task::of(policy),
        }
        let nodes = ResilientWatch::local(Api::all(client.clone()), Config::default()).modify(trim);
        watched.spawn(forward(nodes, WatchedChange::Node, send));
        Controller {
            client,
            prometheus,
            synced: [settings.policy_source != PolicySource::KubeDescheduler, false],
            settings,
            findings,
            changes,
            _watches: watched,
            task,
            nodes: BTreeMap::new(),
        }
    }

    pub(super) async fn run(mut self) {
        info!(target: "lab", "soft-tainter: started");
        let mut next = Instant::now();
        loop {
            // Without a task only taints that are left have to be removed.
            let is_needed = self.task.is_some() || self.nodes.values().any(|node| is_tainted(&node.taints));
            let is_needed = is_needed && self.synced == [true; 2];
            tokio::select! {
                change = self.changes.recv() => match change {
                    Some(change) => {
                        if self.apply(change) {
                            next = Instant::now();
                        }
                    }
                    None => break,
                },
                () = sleep_until(next), if is_needed => {
                    self.cycle().await;
                    next = Instant::now() + self.task.as_ref().map_or(CLEAN_AGAIN, |task| task.interval);
                }
            }
        }
    }

    /// Returns whether the task has changed.
    fn apply(&mut self, change: WatchedChange) -> bool {
        let (before, was_synced) = (self.task.clone(), self.synced);
        match change {
            WatchedChange::Object(Change::Applied(object)) => {
                self.task = Task::of_spec(&object.data["spec"], &self.settings, self.task.take());
            }
            WatchedChange::Object(Change::Deleted(_)) => self.task = None,
            WatchedChange::Object(Change::Synced) => self.synced[0] = true,
            WatchedChange::Node(Change::Applied(node)) => {
                self.nodes.insert(node.name_any(), ObservedNode::of(&node));
            }
            WatchedChange::Node(Change::Deleted(key)) => {
                self.nodes.remove(&key.name);
            }
            WatchedChange::Node(Change::Synced) => self.synced[1] = true,
        }
        if was_synced != self.synced {
            let is_acting = self.synced == [true; 2];
            self.findings.send_modify(|findings| findings.is_acting = is_acting);
        }
        before != self.task || was_synced != self.synced
    }

    async fn cycle(&mut self) {
        let buckets = match self.task.clone() {
            Some(task) => self.classify(&task.plugin).await,
            None => Ok(BTreeMap::new()),
        };
        let (buckets, mut problem) = match buckets {
            Ok(buckets) => (buckets, None),
            Err(problem) => {
                warn!(target: "lab", "soft-tainter: this cycle is abandoned: {problem}");
                // The taints stay as they are.
                self.findings.send_modify(|findings| {
                    findings.cycles += 1;
                    findings.problem = Some(problem);
                });
                return;
            }
        };
        let wanted = wanted(&buckets);
        for name in self.nodes.keys().cloned().collect::<Vec<_>>() {
            let keys = wanted.get(&name).copied().unwrap_or_default();
            if let Err(trouble) = self.taint(&name, keys).await {
                warn!(target: "lab", "soft-tainter: {trouble}");
                problem = Some(trouble);
            }
        }
        self.findings.send_modify(|findings| {
            *findings = Findings { is_acting: true, cycles: findings.cycles + 1, buckets, problem };
        });
    }

    async fn classify(&self, plugin: &LowNodeUtilization) -> Result<BTreeMap<String, Bucket>, String> {
        let answer = self.prometheus.query(&plugin.query).await.map_err(|problem| problem.to_string())?;
        let percents = percents(&answer).map_err(|problem| problem.to_string())?;
        let buckets = classify(plugin.thresholds, &utilizations(&self.nodes, &percents, plugin)?);
        debug!(target: "lab", "soft-tainter: {buckets:?}");
        Ok(buckets)
    }

    async fn taint(&mut self, name: &str, keys: &[&str]) -> Result<(), String> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let doing = || format!("changing the taints of node {name}");
        for _ in 0..TRIES {
            let Some(node) = self.nodes.get(name) else { return Ok(()) };
            let Some(taints) = retainted(&node.taints, keys) else { return Ok(()) };
            // The patch replaces the whole list, so it carries the version that it was made from.
            let patch =
                Patch::Merge(json!({"metadata": {"resourceVersion": node.version}, "spec": {"taints": taints}}));
            match answer_within(DEADLINE, doing(), nodes.patch(name, &params, &patch)).await {
                Ok(node) => {
                    info!(target: "lab", "soft-tainter: node {name} now has {keys:?}");
                    self.nodes.insert(name.to_owned(), ObservedNode::of(&node));
                    return Ok(());
                }
                Err(error) if error.class.is_absent() => return Ok(()),
                Err(error) if error.class == Class::Conflict => {
                    let fresh = answer_within(DEADLINE, doing(), nodes.get(name)).await;
                    let fresh = fresh.map_err(|error| error.to_string())?;
                    self.nodes.insert(name.to_owned(), ObservedNode::of(&fresh));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("{}: it changed again and again; the next cycle tries again", doing()))
    }
}

/// Nothing here reads annotations and images.
fn trim(node: &mut Node) {
    node.metadata.annotations = None;
    if let Some(status) = &mut node.status {
        status.images = None;
    }
}
