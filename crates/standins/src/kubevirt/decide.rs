//! The next actions: guests get their pods and are shut down here, are created in `owners`, and moved in `migrations`.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use kube_io::ObjectKey;
use serde_json::{Value, json};

use super::{
    Cluster, KubeVirtSettings, Request, Write,
    cluster::Kind,
    instance_view::{InstanceView, is_ending, precise},
    launcher::{Launcher, pod},
    migrations::{active_jobs, migrate},
    owners::run_owners,
};
use crate::machine_config::names::SINCE;

/// What to do next.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Actions {
    /// In the order in which they are sent.
    pub(super) requests: Vec<Request>,
    /// Decide again at this time, even if nothing changes before.
    pub(super) wake_at: Option<Timestamp>,
}

impl Actions {
    pub(super) fn request(&mut self, doing: &str, kind: Kind, key: ObjectKey, write: Write) {
        let doing = format!("{doing} {}/{}", key.namespace, key.name);
        self.requests.push(Request { doing, kind, key, write });
    }

    pub(super) fn wake_at(&mut self, time: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(time, |known| known.min(time)));
    }
}

pub(super) fn decide(cluster: &Cluster, now: Timestamp, settings: &KubeVirtSettings) -> Actions {
    let mut actions = Actions::default();
    let mut pods: HashMap<&str, Vec<Launcher<'_>>> = HashMap::new();
    for pod in cluster.objects(Kind::Pod).iter().map(Launcher) {
        pods.entry(pod.guest().unwrap_or_default()).or_default().push(pod);
    }
    run_owners(cluster, &mut actions);
    let jobs: HashSet<&str> = active_jobs(cluster).collect();
    for guest in cluster.objects(Kind::Instance).iter().map(InstanceView) {
        let own = pods.remove(guest.uid()).unwrap_or_default();
        if is_ending(guest.0) {
            // Its pods follow when it is gone.
        } else if guest.is_final() {
            release(&own, &mut actions);
        } else if guest.node().is_none() {
            start(guest, &own, &mut actions);
        } else {
            look_after(guest, &own, &jobs, now, settings, &mut actions);
        }
    }
    // Their guests are gone.
    pods.values().for_each(|orphans| release(orphans, &mut actions));
    migrate(cluster, now, settings, &mut actions);
    actions
}

fn start(guest: InstanceView<'_>, pods: &[Launcher<'_>], actions: &mut Actions) {
    let Some(launcher) = pods.first() else {
        return actions.request("creating the pod of", Kind::Pod, guest.key(), Write::Create(pod(guest, None, None)));
    };
    if let Some(node) = launcher.node() {
        let change = json!({
            "metadata": {"labels": {"kubevirt.io/nodeName": node}},
            "status": {
                "phase": "Running", "nodeName": node, "conditions": guest.conditions(), "migrationMethod": "LiveMigration",
            },
        });
        actions.request("running", Kind::Instance, guest.key(), Write::Change(change));
    }
}

/// A guest that runs: its pod may be evicted, or it may have moved.
fn look_after(
    guest: InstanceView<'_>,
    pods: &[Launcher<'_>],
    jobs: &HashSet<&str>,
    now: Timestamp,
    settings: &KubeVirtSettings,
    actions: &mut Actions,
) {
    let Some(own) = pods.iter().find(|pod| pod.node() == guest.node()) else {
        // A guest that somebody has written with its status.
        let pod = pod(guest, guest.node(), None);
        return actions.request("creating the pod of", Kind::Pod, guest.key(), Write::Create(pod));
    };
    let is_left = |pod: &&Launcher<'_>| pod.node() != guest.node() && pod.job().is_none_or(|job| !jobs.contains(job));
    release(&pods.iter().filter(is_left).copied().collect::<Vec<_>>(), actions);
    if !own.is_ending() {
        return;
    }
    let Some(since) = guest.stopping_since() else {
        let mark = json!({"metadata": {"annotations": {SINCE: precise(now)}}});
        return actions.request("shutting down", Kind::Instance, guest.key(), Write::Change(mark));
    };
    let end = since.checked_add(settings.shutdown).unwrap_or(now);
    if now < end {
        return actions.wake_at(end);
    }
    // An orderly shutdown is no failure.
    let ended = json!({"metadata": {"annotations": {SINCE: Value::Null}}, "status": {"phase": "Succeeded"}});
    actions.request("noting the end of", Kind::Instance, guest.key(), Write::Change(ended));
}

fn release(pods: &[Launcher<'_>], actions: &mut Actions) {
    for pod in pods {
        actions.request("letting go of pod", Kind::Pod, ObjectKey::of(pod.0), Write::Release);
    }
}
