//! The migrations of a lab, recorded in a file: the status of a VM has only the last one.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::{Path, PathBuf},
};

use api::VirtualMachine;
use jiff::Timestamp;
use kube::{Api, Client, ResourceExt, runtime::watcher::Config};
use kube_io::{Change, ResilientWatch, forward};
use serde::{Deserialize, Serialize};
use tokio::{sync::mpsc, task::JoinHandle};
use tracing::warn;

use crate::webhook::{EVICTION_REQUESTED, EVICTION_SOURCE};

/// How many migrations are kept.
const MOST: usize = 500;
const BACKLOG: usize = 1024;

/// A migration of a VM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalEntry {
    pub vm: String,
    pub from: String,
    /// The new node. None while the migration runs, or if it failed.
    pub to: Option<String>,
    /// What caused it: `Descheduler`, `Eviction` or `Deletion`.
    pub why: String,
    /// `Migrating`, `Succeeded`, or why it failed.
    pub outcome: String,
    pub began: Timestamp,
    pub ended: Option<Timestamp>,
}

impl JournalEntry {
    pub const RUNNING: &'static str = "Migrating";
    pub const SUCCEEDED: &'static str = "Succeeded";
}

/// The node of each VM, and the migrations, the latest last.
#[derive(Debug, Default)]
struct Journal {
    nodes: BTreeMap<String, String>,
    migrations: VecDeque<JournalEntry>,
}

impl Journal {
    /// Returns whether the migrations have changed.
    fn take(&mut self, change: Change<VirtualMachine>, now: Timestamp) -> bool {
        match change {
            Change::Applied(vm) => self.apply(&vm, now),
            Change::Deleted(key) => self.remove(&key.name, now),
            Change::Synced => false,
        }
    }

    /// Takes the current state of a VM. Returns whether the migrations have changed.
    fn apply(&mut self, vm: &VirtualMachine, now: Timestamp) -> bool {
        let name = vm.name_any();
        let Some(status) = &vm.status else { return false };
        let condition = |kind: &str| status.conditions.iter().find(|condition| condition.type_ == kind);
        let node = status.node_name.as_ref();
        let before = match node {
            Some(node) => self.nodes.insert(name.clone(), node.clone()),
            None => self.nodes.remove(&name),
        };
        let why = || match vm.annotations().get(EVICTION_SOURCE).map(String::as_str) {
            Some("descheduler") => "Descheduler".to_owned(),
            _ => condition(EVICTION_REQUESTED).map_or("Eviction", |condition| &condition.reason).to_owned(),
        };
        let open = self.migrations.iter_mut().rev().find(|migration| migration.vm == name && migration.ended.is_none());
        match (&status.evacuation_node_name, open) {
            (Some(_), Some(_)) => false,
            (Some(from), None) => {
                let outcome = JournalEntry::RUNNING.to_owned();
                self.add(JournalEntry {
                    vm: name,
                    from: from.clone(),
                    to: None,
                    why: why(),
                    outcome,
                    began: now,
                    ended: None,
                });
                true
            }
            (None, Some(open)) => {
                open.ended = Some(now);
                open.to = node.filter(|node| **node != open.from).cloned();
                let failure = || condition("Migrated").filter(|condition| condition.status == "False");
                open.outcome = match &open.to {
                    Some(_) => JournalEntry::SUCCEEDED.to_owned(),
                    None => failure().map_or("NotNeeded", |condition| &condition.reason).to_owned(),
                };
                true
            }
            // The eviction request was set and removed between two observations.
            (None, None) => match (before, node) {
                (Some(from), Some(to)) if from != *to => {
                    let (to, outcome) = (Some(to.clone()), JournalEntry::SUCCEEDED.to_owned());
                    self.add(JournalEntry { vm: name, from, to, why: why(), outcome, began: now, ended: Some(now) });
                    true
                }
                _ => false,
            },
        }
    }

    /// The VM was deleted. Returns whether the migrations have changed.
    fn remove(&mut self, name: &str, now: Timestamp) -> bool {
        self.nodes.remove(name);
        let open = self.migrations.iter_mut().rev().find(|migration| migration.vm == name && migration.ended.is_none());
        let Some(open) = open else { return false };
        open.ended = Some(now);
        open.outcome = "VmDeleted".to_owned();
        true
    }

    fn add(&mut self, migration: JournalEntry) {
        if self.migrations.len() == MOST {
            self.migrations.pop_front();
        }
        self.migrations.push_back(migration);
    }

    /// Replaces the file atomically, so that readers never see half of it.
    fn write(&self, file: &Path) -> io::Result<()> {
        let draft = file.with_extension("draft");
        std::fs::write(&draft, serde_json::to_vec(&self.migrations)?)?;
        std::fs::rename(draft, file)
    }
}

/// The migrations in a file, the latest last.
pub(crate) fn read(file: &Path) -> io::Result<Vec<JournalEntry>> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

/// Records migrations. It stops when dropped.
#[derive(Debug)]
pub(super) struct JournalTask(JoinHandle<()>);

impl JournalTask {
    pub(super) fn start(client: Client, file: PathBuf) -> JournalTask {
        JournalTask(tokio::spawn(async move {
            let vms: Api<VirtualMachine> = Api::all(client);
            let (send, mut changes) = mpsc::channel(BACKLOG);
            let watched = forward(ResilientWatch::local(vms, Config::default()), |change| change, send);
            let written = async {
                let mut journal = Journal::default();
                let mut has_changed = true;
                loop {
                    if has_changed && let Err(problem) = journal.write(&file) {
                        warn!(target: "lab", "writing {}: {problem}", file.display());
                    }
                    let Some(change) = changes.recv().await else { return };
                    has_changed = journal.take(change, Timestamp::now());
                    while let Ok(change) = changes.try_recv() {
                        has_changed |= journal.take(change, Timestamp::now());
                    }
                }
            };
            tokio::join!(watched, written);
        }))
    }
}

impl Drop for JournalTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use kube_io::ObjectKey;
    use serde_json::json;

    use super::*;

    fn vm(node: Option<&str>, leaves: Option<&str>, conditions: &[(&str, &str, &str)]) -> VirtualMachine {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status, reason)| {
                json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"resources": {"cpu": 1, "memory": "1Gi"}},
            "status": {"nodeName": node, "evacuationNodeName": leaves, "conditions": conditions},
        }))
        .unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn recorded(journal: &Journal) -> Vec<(&str, Option<&str>, &str, &str)> {
        journal
            .migrations
            .iter()
            .map(|m| (m.from.as_str(), m.to.as_deref(), m.why.as_str(), m.outcome.as_str()))
            .collect()
    }

    #[test]
    fn a_migration_begins_with_the_mark_and_ends_without_it() {
        let mut journal = Journal::default();
        assert!(!journal.apply(&vm(Some("n1"), None, &[]), at(0)));
        assert!(journal.apply(&vm(Some("n1"), Some("n1"), &[("EvictionRequested", "True", "Descheduler")]), at(1)));
        assert!(
            !journal.apply(&vm(Some("n1"), Some("n1"), &[("EvictionRequested", "True", "EvictionRequested")]), at(2))
        );
        assert_eq!(recorded(&journal), [("n1", None, "Descheduler", "Migrating")]);
        assert!(journal.apply(&vm(Some("n2"), None, &[("Migrated", "True", "Succeeded")]), at(3)));
        assert_eq!(recorded(&journal), [("n1", Some("n2"), "Descheduler", "Succeeded")]);
        assert_eq!((journal.migrations[0].began, journal.migrations[0].ended), (at(1), Some(at(3))));
    }

    #[test]
    fn a_vm_that_stays_tells_why() {
        let mut journal = Journal::default();
        journal.apply(&vm(Some("n1"), Some("n1"), &[("EvictionRequested", "True", "Deletion")]), at(1));
        journal.apply(&vm(Some("n1"), None, &[("Migrated", "False", "NotConverging")]), at(2));
        assert_eq!(recorded(&journal), [("n1", None, "Deletion", "NotConverging")]);
    }

    #[test]
    fn a_move_between_two_looks_is_one_too_and_a_new_start_is_none() {
        let mut journal = Journal::default();
        journal.apply(&vm(Some("n1"), None, &[]), at(0));
        assert!(journal.apply(&vm(Some("n2"), None, &[]), at(1)));
        assert_eq!(recorded(&journal), [("n1", Some("n2"), "Eviction", "Succeeded")]);
        assert!(!journal.apply(&vm(None, None, &[]), at(2)));
        assert!(!journal.apply(&vm(Some("n3"), None, &[]), at(3)));
    }

    #[test]
    fn a_vm_that_is_deleted_on_its_way_ends_its_migration_and_the_journal_is_bounded() {
        let mut journal = Journal::default();
        journal.apply(&vm(Some("n1"), Some("n1"), &[]), at(0));
        assert!(journal.remove("a", at(1)));
        assert!(!journal.remove("a", at(2)));
        assert_eq!(recorded(&journal), [("n1", None, "Eviction", "VmDeleted")]);
        for round in 0..2 * MOST {
            journal.apply(&vm(Some(if round % 2 == 0 { "n1" } else { "n2" }), None, &[]), at(3));
        }
        assert_eq!(journal.migrations.len(), MOST);
    }

    #[test]
    fn a_vm_that_is_deleted_while_the_watch_is_interrupted_ends_its_migration() {
        let mut journal = Journal::default();
        journal.take(Change::Applied(Box::new(vm(Some("n1"), Some("n1"), &[]))), at(0));
        journal.take(Change::Synced, at(0));
        assert_eq!(recorded(&journal), [("n1", None, "Eviction", "Migrating")]);
        // The watch delivers this when the VM is missing in a repeated list.
        let key = ObjectKey { namespace: "default".to_owned(), name: "a".to_owned() };
        assert!(journal.take(Change::Deleted(key), at(1)));
        assert!(!journal.take(Change::Synced, at(1)));
        assert_eq!(recorded(&journal), [("n1", None, "Eviction", "VmDeleted")]);
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("migrations.json");
        let mut journal = Journal::default();
        journal.apply(&vm(Some("n1"), Some("n1"), &[]), at(0));
        journal.write(&file).unwrap();
        assert_eq!(read(&file).unwrap(), Vec::from(journal.migrations));
    }
}
