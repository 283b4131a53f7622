//! Evacuations: a migration for each guest that is to leave its node, as many at a time as KubeVirt allows. After a failure KubeVirt
//! tries again, later after each one.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use kube::{ResourceExt, api::DynamicObject};
use kube_io::ObjectKey;
use serde_json::{Value, json};

use super::{
    Actions, Cluster, KubeVirtSettings, Write,
    cluster::Kind,
    instance_view::{InstanceView, is_ending, precise},
    launcher::{Launcher, pod},
};
use crate::STAND_IN_LABEL;

/// KubeVirt's defaults.
const PER_CLUSTER: u64 = 5;
const PER_NODE: u64 = 2;
/// So many migrations of a guest that have ended are kept.
const KEPT: usize = 5;

/// A VirtualMachineInstanceMigration.
#[derive(Debug, Clone, Copy)]
struct Migration<'a>(&'a DynamicObject);

impl<'a> Migration<'a> {
    fn phase(self) -> &'a str {
        self.0.data.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
    }

    fn is_queued(self) -> bool {
        ["", "Pending"].contains(&self.phase())
    }

    fn has_ended(self) -> bool {
        ["Succeeded", "Failed"].contains(&self.phase())
    }

    fn guest(self) -> ObjectKey {
        let name = self.0.data.pointer("/spec/vmiName").and_then(Value::as_str).unwrap_or_default();
        ObjectKey { namespace: self.0.namespace().unwrap_or_default(), name: name.to_owned() }
    }

    fn source(self) -> &'a Value {
        self.0.data.pointer("/status/migrationState/sourceNode").unwrap_or(&Value::Null)
    }

    /// When it came to a phase. `Scheduling` is the one in which it is given a place among those that run.
    fn since(self, phase: &str) -> Option<Timestamp> {
        let transitions = self.0.data.pointer("/status/phaseTransitionTimestamps")?.as_array()?;
        let transition = transitions.iter().find(|transition| transition["phase"] == phase)?;
        transition["phaseTransitionTimestamp"].as_str()?.parse().ok()
    }

    fn set_phase(self, phase: &str, state: &Value, now: Timestamp, actions: &mut Actions) {
        let transitions = self.0.data.pointer("/status/phaseTransitionTimestamps").and_then(Value::as_array);
        let mut transitions = transitions.cloned().unwrap_or_default();
        transitions.push(json!({"phase": phase, "phaseTransitionTimestamp": precise(now)}));
        let status = json!({"phase": phase, "phaseTransitionTimestamps": transitions, "migrationState": state});
        let doing = format!("noting phase {phase} of migration");
        let write = Write::ChangeStatus(json!({"status": status}));
        actions.request(&doing, Kind::Migration, ObjectKey::of(self.0), write);
    }

    fn fail(self, reason: &str, now: Timestamp, actions: &mut Actions) {
        let state = json!({"completed": true, "failed": true, "failureReason": reason, "endTimestamp": precise(now)});
        self.set_phase("Failed", &state, now, actions);
    }
}

fn all(cluster: &Cluster) -> impl Iterator<Item = Migration<'_>> {
    cluster.objects(Kind::Migration).iter().filter(|object| !is_ending(object)).map(Migration)
}

/// The UIDs of migrations that have not ended.
pub(super) fn active_jobs(cluster: &Cluster) -> impl Iterator<Item = &str> {
    all(cluster).filter(|it| !it.has_ended()).filter_map(|it| it.0.metadata.uid.as_deref())
}

pub(super) fn migrate(cluster: &Cluster, now: Timestamp, settings: &KubeVirtSettings, actions: &mut Actions) {
    evacuate(cluster, actions);
    let limit = |name: &str, default: u64| {
        let setting = cluster.setting(&format!("/migrations/{name}")).and_then(Value::as_u64);
        setting.filter(|limit| *limit > 0).unwrap_or(default)
    };
    let (per_cluster, per_node) =
        (limit("parallelMigrationsPerCluster", PER_CLUSTER), limit("parallelOutboundMigrationsPerNode", PER_NODE));
    let mut active: Vec<Migration<'_>> = all(cluster).filter(|it| !it.has_ended()).collect();
    active.sort_by_key(|it| it.0.creation_timestamp().map(|time| time.0));
    let mut outbound: HashMap<&str, u64> = HashMap::new();
    for migration in active.iter().filter(|migration| !migration.is_queued()) {
        *outbound.entry(migration.source().as_str().unwrap_or_default()).or_default() += 1;
    }
    for migration in active {
        let ObjectKey { namespace, name } = migration.guest();
        let guest = cluster.objects(Kind::Instance).find(&namespace, &name).map(InstanceView);
        let Some(guest) = guest.filter(|guest| !guest.is_final()) else {
            migration.fail("the guest has ended", now, actions);
            continue;
        };
        let ended = Ended::of(cluster, guest);
        if !migration.is_queued() {
            let fails = settings.failing.get(&name).is_some_and(|times| ended.failures < *times);
            Moving { cluster, migration, guest, now, settings }.go_on(fails, actions);
        } else if let Some(until) = ended.pause(settings.backoff).filter(|until| now < *until) {
            actions.wake_at(until);
        } else if let Some(node) = guest.node()
            && outbound.values().sum::<u64>() < per_cluster
            && outbound.get(node).is_none_or(|running| *running < per_node)
        {
            *outbound.entry(node).or_default() += 1;
            let state = json!({"sourceNode": node, "startTimestamp": precise(now)});
            migration.set_phase("Scheduling", &state, now, actions);
        }
    }
}

/// The evacuation controller: asks for the migration of every guest that is marked. Others look after those with `External`.
fn evacuate(cluster: &Cluster, actions: &mut Actions) {
    let default = cluster.setting("/evictionStrategy").and_then(Value::as_str);
    for guest in cluster.objects(Kind::Instance).iter().map(InstanceView) {
        let Some(node) = guest.evacuation().filter(|node| guest.node() == Some(node) && !guest.is_final()) else {
            continue;
        };
        let is_moving = all(cluster).any(|it| !it.has_ended() && it.guest() == guest.key());
        if is_moving || !guest.is_migratable() || guest.strategy(default) == "External" {
            continue;
        }
        Ended::of(cluster, guest).remove_old(actions);
        let ObjectKey { namespace, name } = guest.key();
        let migration = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
            "metadata": {
                "generateName": "kubevirt-evacuation-", "namespace": namespace,
                "labels": {"kubevirt.io/vmi-name": name, STAND_IN_LABEL: "true"},
                "annotations": {"kubevirt.io/evacuationMigration": node},
            },
            "spec": {"vmiName": name, "priority": "system-critical"},
        });
        actions.request("asking for the migration of", Kind::Migration, guest.key(), Write::Create(migration));
    }
}

/// The migrations of a guest that have ended.
struct Ended<'a> {
    /// The last one first.
    migrations: Vec<Migration<'a>>,
    /// How many have failed since the last one that did not.
    failures: u32,
}

impl<'a> Ended<'a> {
    fn of(cluster: &'a Cluster, guest: InstanceView<'_>) -> Self {
        let key = guest.key();
        let mut migrations: Vec<_> = all(cluster).filter(|it| it.has_ended() && it.guest() == key).collect();
        migrations.sort_by_key(|it| std::cmp::Reverse(it.since(it.phase())));
        let failed = migrations.iter().take_while(|it| it.phase() == "Failed").count();
        Ended { failures: u32::try_from(failed).unwrap_or(u32::MAX), migrations }
    }

    /// Until when the next one has to wait: twice as long after each failure.
    fn pause(&self, first: Duration) -> Option<Timestamp> {
        let last = self.migrations.first().filter(|_| self.failures > 0)?;
        let factor = 1_u32.checked_shl(self.failures - 1).unwrap_or(u32::MAX);
        last.since("Failed")?.checked_add(first.saturating_mul(factor)).ok()
    }

    fn remove_old(&self, actions: &mut Actions) {
        for migration in self.migrations.iter().skip(KEPT) {
            let uid = migration.0.uid().unwrap_or_default();
            actions.request("removing migration", Kind::Migration, ObjectKey::of(migration.0), Write::Delete(uid));
        }
    }
}

/// A migration that has left the queue: target pod, copy, hand-over.
struct Moving<'a> {
    cluster: &'a Cluster,
    migration: Migration<'a>,
    guest: InstanceView<'a>,
    now: Timestamp,
    settings: &'a KubeVirtSettings,
}

impl Moving<'_> {
    fn go_on(&self, fails: bool, actions: &mut Actions) {
        let Moving { migration, guest, now, settings, .. } = self;
        let uid = migration.0.metadata.uid.as_deref();
        let target = self.cluster.objects(Kind::Pod).iter().map(Launcher).find(|pod| pod.job() == uid);
        let Some(target) = target else {
            let pod = pod(*guest, None, uid);
            return actions.request("creating the target pod of", Kind::Pod, guest.key(), Write::Create(pod));
        };
        let after = |time: Duration| {
            let end = migration.since("Scheduling").and_then(|since| since.checked_add(time).ok()).unwrap_or(*now);
            if *now < end { Err(end) } else { Ok(()) }
        };
        let Some(node) = target.node() else {
            return match after(settings.unschedulable) {
                _ if target.waits_for_scheduler() => {}
                Err(end) => actions.wake_at(end),
                Ok(()) => migration.fail("the target pod cannot be scheduled", *now, actions),
            };
        };
        let start = migration.0.data.pointer("/status/migrationState/startTimestamp");
        let mut state = json!({
            "sourceNode": migration.source(), "targetNode": node, "targetPod": target.0.name_any(),
            "startTimestamp": start, "migrationUid": uid,
        });
        if migration.phase() == "Scheduling" {
            return migration.set_phase("Running", &state, *now, actions);
        }
        if let Err(end) = after(settings.migration) {
            return actions.wake_at(end);
        }
        state["endTimestamp"] = precise(*now).into();
        state["completed"] = true.into();
        if guest.node() == Some(node) {
            return migration.set_phase("Succeeded", &state, *now, actions);
        }
        if fails {
            return migration.fail("the stand-in was told that it fails", *now, actions);
        }
        let change = json!({
            "metadata": {"labels": {"kubevirt.io/nodeName": node}},
            "status": {"nodeName": node, "evacuationNodeName": null, "migrationState": state},
        });
        actions.request("handing over", Kind::Instance, guest.key(), Write::Change(change));
    }
}
