//! The virtual machines that are still on a node that is being drained, and what becomes of each.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::blast_radius::{DrainContext, DrainEffect, Instance, ObservedCluster, Platform, Reading, timestamp};

/// A VirtualMachineInstance on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    namespace: String,
    name: String,
    node: String,
    created: Option<Timestamp>,
    /// None while it is shut down.
    instance: Option<Instance>,
}

impl Guest {
    /// None unless it is on a node.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        if matches!(text("/status/phase"), Some("Succeeded" | "Failed")) {
            return None;
        }
        Some(Guest {
            namespace: text("/metadata/namespace")?.to_owned(),
            name: text("/metadata/name")?.to_owned(),
            node: text("/status/nodeName")?.to_owned(),
            created: timestamp(object.pointer("/metadata/creationTimestamp")),
            instance: Instance::of(object),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A VirtualMachineInstanceMigration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    namespace: String,
    guest: String,
    phase: String,
    since: Option<Timestamp>,
    target: Option<String>,
}

impl Move {
    /// None if the object has no name.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let phase = text("/status/phase").unwrap_or("Pending");
        let transitions = object.pointer("/status/phaseTransitionTimestamps").and_then(Value::as_array);
        let entered = transitions.into_iter().flatten().find(|known| known["phase"] == phase);
        let since = entered.and_then(|known| timestamp(known.get("phaseTransitionTimestamp")));
        Some(Move {
            namespace: text("/metadata/namespace")?.to_owned(),
            guest: text("/spec/vmiName")?.to_owned(),
            phase: phase.to_owned(),
            since: since.or_else(|| timestamp(object.pointer("/metadata/creationTimestamp"))),
            target: text("/status/migrationState/targetNode").map(str::to_owned),
        })
    }

    fn has_ended(&self) -> bool {
        ["Succeeded", "Failed"].contains(&self.phase.as_str())
    }
}

/// How many of the migrations have failed since the guest was started, and since the last one that succeeded.
fn failures(moves: &[&Move], started: Option<Timestamp>) -> usize {
    let last_success = moves.iter().filter(|known| known.phase == "Succeeded").map(|known| known.since).max();
    let failed = moves.iter().filter(|known| known.phase == "Failed" && known.since >= started);
    failed.filter(|known| last_success.is_none_or(|last| known.since > last)).count()
}

/// A virtual machine that holds a node. Those that block the drain come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestState {
    pub node: String,
    /// Whether the drain cannot end before somebody does something about it.
    #[serde(rename = "blocks", serialize_with = "is_blocking")]
    #[schemars(with = "bool")]
    order: Order,
    pub namespace: String,
    pub name: String,
    /// What becomes of it, in words.
    pub what: String,
    /// Since when its migration is in the phase that `what` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Blocks,
    /// KubeVirt tries again, and may succeed.
    Fails,
    Moves,
    Waits,
}

fn is_blocking<S: serde::Serializer>(order: &Order, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*order == Order::Blocks)
}

impl GuestState {
    pub fn blocks(&self) -> bool {
        self.order == Order::Blocks
    }
}

/// The virtual machines on these nodes.
pub fn guests(nodes: &[String], guests: &[Guest], moves: &[Move], platform: &Reading<Platform>) -> Vec<GuestState> {
    let observed = ObservedCluster { platform: platform.clone(), ..ObservedCluster::default() };
    let context = DrainContext::of(&observed, true);
    let on_these = guests.iter().filter(|guest| nodes.contains(&guest.node));
    let mut found: Vec<GuestState> = on_these
        .map(|guest| {
            let own = |known: &&Move| known.namespace == guest.namespace && known.guest == guest.name;
            let own: Vec<&Move> = moves.iter().filter(own).collect();
            let active = own.iter().filter(|known| !known.has_ended());
            let migration = active.max_by_key(|known| known.phase != "Pending").copied();
            let (order, what) = what(guest, migration, failures(&own, guest.created), &context);
            GuestState {
                node: guest.node.clone(),
                order,
                namespace: guest.namespace.clone(),
                name: guest.name.clone(),
                what,
                since: migration.and_then(|known| known.since),
            }
        })
        .collect();
    found.sort();
    found
}

fn what(guest: &Guest, migration: Option<&Move>, failures: usize, context: &DrainContext<'_>) -> (Order, String) {
    let Some(instance) = &guest.instance else { return (Order::Moves, "is shut down".into()) };
    let failed = match failures {
        0 => None,
        1 => Some("one migration has failed".to_owned()),
        many => Some(format!("{many} migrations have failed")),
    };
    if let Some(Move { phase, target, .. }) = migration {
        let target = target.as_ref().map_or_else(String::new, |target| format!(" to {target}"));
        let order = if phase == "Pending" { Order::Waits } else { Order::Moves };
        return match failed {
            Some(failed) => (Order::Fails, format!("{failed}; moves{target}: {phase}")),
            None => (order, format!("moves{target}: {phase}")),
        };
    }
    let outcome = context.outcome(instance);
    match (outcome.effect, failed) {
        (DrainEffect::BlocksDrain, _) => (Order::Blocks, format!("blocks: {}", outcome.cause)),
        (DrainEffect::MovesLive, Some(failed)) => (Order::Fails, format!("{failed}; waits for the next one")),
        (DrainEffect::MovesLive, None) => (Order::Waits, "waits for its migration".into()),
        (DrainEffect::Restarts | DrainEffect::StaysDown | DrainEffect::Unknown, _) => {
            (Order::Waits, "waits for its eviction".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn guest(name: &str, strategy: &str, migratable: bool, ending: bool) -> Guest {
        let condition = json!({
            "type": "LiveMigratable", "status": if migratable { "True" } else { "False" },
            "reason": "DisksNotLiveMigratable", "message": "not shared",
        });
        let mut object = json!({
            "metadata": {"namespace": "guests", "name": name},
            "spec": {"evictionStrategy": strategy},
            "status": {"phase": "Running", "nodeName": "a", "conditions": [condition]},
        });
        if ending {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T10:00:00Z".into();
        }
        Guest::of(&object).unwrap()
    }

    fn migration(guest: &str, phase: &str, target: &str) -> Option<Move> {
        let transitions = json!([
            {"phase": "Pending", "phaseTransitionTimestamp": "2026-01-01T10:00:00Z"},
            {"phase": "Running", "phaseTransitionTimestamp": "2026-01-01T10:05:00Z"},
        ]);
        Move::of(&json!({
            "metadata": {"namespace": "guests", "name": format!("kubevirt-evacuation-{guest}")},
            "spec": {"vmiName": guest},
            "status": {"phase": phase, "phaseTransitionTimestamps": transitions, "migrationState": {"targetNode": target}},
        }))
    }

    #[test]
    fn guests_that_hold_a_node_are_listed_with_what_becomes_of_them() {
        let on_a = [
            guest("web-2", "LiveMigrate", true, false),
            guest("web-1", "LiveMigrate", true, false),
            guest("queued", "LiveMigrate", true, false),
            guest("db", "LiveMigrate", false, false),
            guest("batch", "None", true, false),
            guest("ending", "None", true, true),
        ];
        let elsewhere = Guest { node: "b".into(), ..guest("other", "None", true, false) };
        let all: Vec<Guest> = on_a.into_iter().chain([elsewhere]).collect();
        let moves: Vec<Move> =
            [migration("web-1", "Running", "b"), migration("queued", "Pending", ""), migration("db", "Succeeded", "")]
                .into_iter()
                .flatten()
                .collect();
        let found = guests(&["a".into()], &all, &moves, &Reading::NotServed);
        let shown: Vec<_> = found.iter().map(|guest| format!("{} {}", guest.name, guest.what)).collect();
        assert_eq!(
            shown,
            [
                "db blocks: must be moved (LiveMigrate) and cannot be: a disk of it is not shared between nodes",
                "ending is shut down",
                "web-1 moves to b: Running",
                "batch waits for its eviction",
                "queued moves: Pending",
                "web-2 waits for its migration",
            ]
        );
        let since = |minute| Some(format!("2026-01-01T10:{minute:02}:00Z").parse().unwrap());
        assert_eq!([found[2].since, found[4].since, found[5].since], [since(5), since(0), None]);
        assert_eq!(serde_json::to_value(&found[0]).unwrap()["blocks"], json!(true));
    }

    #[test]
    fn a_guest_whose_migrations_fail_comes_before_those_that_move() {
        let ended = |phase: &str, minute: u8| Move {
            phase: phase.into(),
            since: Some(format!("2026-01-01T10:{minute:02}:00Z").parse().unwrap()),
            ..migration("a", "Running", "b").unwrap()
        };
        let on_a = [guest("a", "LiveMigrate", true, false), guest("z", "LiveMigrate", true, false)];
        let moving = migration("z", "Running", "b").unwrap();
        for (case, own, expected) in [
            ("once", vec![ended("Failed", 1)], "one migration has failed; waits for the next one"),
            (
                "again",
                vec![ended("Failed", 1), ended("Failed", 2), ended("Running", 3)],
                "2 migrations have failed; moves to b: Running",
            ),
            (
                "since it moved",
                vec![ended("Failed", 1), ended("Succeeded", 2), ended("Failed", 3), ended("Pending", 4)],
                "one migration has failed; moves to b: Pending",
            ),
        ] {
            let moves = [own, vec![moving.clone()]].concat();
            let found = guests(&["a".into()], &on_a, &moves, &Reading::NotServed);
            let shown: Vec<_> = found.iter().map(|guest| (guest.name.as_str(), guest.what.as_str())).collect();
            assert_eq!(shown, [("a", expected), ("z", "moves to b: Running")], "{case}");
            assert!(!found[0].blocks(), "{case}: KubeVirt tries again");
        }
        let moved =
            guests(&["a".into()], &on_a[..1], &[ended("Failed", 1), ended("Succeeded", 2)], &Reading::NotServed);
        assert_eq!(moved[0].what, "waits for its migration", "failures before a success do not count");
        let started = Guest { created: Some("2026-01-01T10:02:00Z".parse().unwrap()), ..on_a[0].clone() };
        let started = guests(&["a".into()], &[started], &[ended("Failed", 1)], &Reading::NotServed);
        assert_eq!(started[0].what, "waits for its migration", "nor do those of a guest before it");
    }

    #[test]
    fn a_guest_that_has_ended_or_is_nowhere_holds_no_node() {
        let of = |phase: &str, node: &str| {
            Guest::of(
                &json!({"metadata": {"namespace": "n", "name": "a"}, "status": {"phase": phase, "nodeName": node}}),
            )
        };
        assert_eq!((of("Succeeded", "a"), of("Pending", "")), (None, None));
        assert!(of("Running", "a").is_some());
    }
}
