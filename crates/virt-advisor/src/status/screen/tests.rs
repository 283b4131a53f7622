//! The screen of a rollout that hangs, and of a cluster with several configurations.

use advisor::{
    blast_radius::{MachinePool, Node, Reading, Unread},
    rollout_view::{Cluster, Guest, Move, NodeReport, Notice},
};
use api::VirtPlatformConfig;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::{golden, status::details::Details};

const NOW: &str = "2026-11-17T02:30:00Z";

fn at(minute: i32) -> String {
    let minute = i64::from(minute);
    (NOW.parse::<Timestamp>().unwrap() - jiff::SignedDuration::from_mins(minute)).to_string()
}

fn condition(kind: &str, reason: &str, message: &str, minutes: i32) -> Value {
    json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": at(minutes)})
}

fn config(profile: &str, status: Value) -> VirtPlatformConfig {
    let window =
        json!({"days": ["Monday", "Tuesday"], "start": "02:00", "duration": "4h", "timeZone": "Europe/Berlin"});
    serde_json::from_value(json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": profile},
        "spec": {"profile": profile, "action": "Apply", "approval": {"window": window}}, "status": status,
    }))
    .unwrap()
}

/// Two of six workers are done, one is degraded, one hangs in its drain.
fn hanging() -> VirtPlatformConfig {
    let cause = "Node wörker-3 is reporting: \"failed to drain node: wörker-3 after 1 hour\"";
    let message = format!("enable-psi: MachineConfigPool 'worker' is degraded: {cause}");
    let digest = "3f2a9c01b7de44aa3f2a9c01b7de44aa3f2a9c01b7de44aa3f2a9c01b7de44aa";
    let rollout = json!([{
        "pool": "worker", "state": "Degraded", "updated": 2, "total": 6, "since": at(4), "lastProgress": at(70), "cause": cause,
    }]);
    let detail = json!({"reboot": true, "pools": [{"name": "infra", "nodes": 2}, {"name": "worker", "nodes": 6}]});
    let target = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "name": "99-worker-psi-karg"});
    config(
        "load-aware-rebalancing",
        json!({
            "phase": "InProgress",
            "planDigest": digest,
            "approval": {
                "planDigest": digest, "mode": "Reviewed", "generation": 2, "time": at(90),
                "approvedBy": "Zoë 東京", "reason": "CHG-4711",
            },
            "items": [{
                "name": "enable-psi", "targetRef": target, "state": "InProgress", "waitingSince": at(90),
                "impactDetail": detail, "rollout": rollout,
            }],
            "conditions": [
                condition("InProgress", "InProgress", "Applying plan configuration", 90),
                condition("Stalled", "NoProgress", &message, 25),
            ],
        }),
    )
}

fn node(name: &str, annotations: &Value, cordoned: bool, minutes: i32) -> Node {
    let prefix = "machineconfiguration.openshift.io/";
    let annotations: serde_json::Map<String, Value> = annotations
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (format!("{prefix}{name}"), value.clone()))
        .collect();
    let fields = json!({"f:metadata": {"f:annotations": {"f:machineconfiguration.openshift.io/state": {}}}});
    let managers = json!([{"manager": "machine-config-daemon", "time": at(minutes), "fieldsV1": fields}]);
    let labels = json!({"node-role.kubernetes.io/worker": ""});
    Node::of(&json!({
        "metadata": {"name": name, "labels": labels, "annotations": annotations, "managedFields": managers},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }))
    .unwrap()
}

fn cluster() -> Cluster {
    let done = json!({"currentConfig": "new", "desiredConfig": "new", "state": "Done"});
    let waiting = json!({"currentConfig": "old", "desiredConfig": "old", "state": "Done"});
    let drain = |state: &str| {
        json!({
            "currentConfig": "old", "desiredConfig": "new", "state": state, "desiredDrain": "drain-new",
            "reason": "failed to drain node: wörker-3 after 1 hour. Please see machine-config-controller logs for more information",
        })
    };
    let selector = json!({"matchLabels": {"node-role.kubernetes.io/worker": ""}});
    let spec = json!({"nodeSelector": selector, "maxUnavailable": 2, "configuration": {"name": "new"}});
    let pool = MachinePool::of(&json!({"metadata": {"name": "worker"}, "spec": spec})).unwrap();
    let nodes = vec![
        node("wörker-1", &done, false, 80),
        node("wörker-2", &done, false, 70),
        node("wörker-3", &drain("Degraded"), true, 4),
        node("wörker-4", &drain("Working"), true, 25),
        node("wörker-5", &waiting, false, 500),
        node("wörker-6", &waiting, true, 500),
    ];
    Cluster {
        nodes: Reading::Read(nodes),
        pools: Reading::Read(vec![pool]),
        reports: Reading::<Vec<NodeReport>>::NotServed,
    }
}

fn details() -> Details {
    let guest = |name: &str, node: &str, migratable: &str| {
        let reason = json!([{"type": "LiveMigratable", "status": migratable, "reason": "DisksNotLiveMigratable", "message": "x"}]);
        Guest::of(&json!({
            "metadata": {"namespace": "guests", "name": name}, "spec": {"evictionStrategy": "LiveMigrate"},
            "status": {"phase": "Running", "nodeName": node, "conditions": reason},
        }))
        .unwrap()
    };
    let migration = Move::of(&json!({
        "metadata": {"namespace": "guests", "name": "kubevirt-evacuation-1", "creationTimestamp": at(3)},
        "spec": {"vmiName": "web-1"},
        "status": {"phase": "Running", "migrationState": {"targetNode": "wörker-2"}},
    }));
    let event = |kind: &str, reason: &str, message: &str, minutes: i32| {
        Notice::of(&json!({
            "involvedObject": {"kind": "VirtPlatformConfig", "name": "load-aware-rebalancing"},
            "type": kind, "reason": reason, "message": message, "eventTime": at(minutes),
        }))
        .unwrap()
    };
    Details {
        guests: Reading::Read(vec![
            guest("web-1", "wörker-4", "True"),
            guest("web-2", "wörker-4", "True"),
            guest("db-1", "wörker-3", "False"),
        ]),
        moves: Reading::Read(migration.into_iter().collect()),
        platform: Reading::NotServed,
        events: Reading::Read(vec![
            event("Warning", "RolloutDegraded", "MachineConfigPool 'worker' is degraded", 4),
            event("Normal", "ApplyStarted", "Applying plan 3f2a9c01b7de", 90),
        ]),
    }
}

fn report(configs: &[VirtPlatformConfig], profile: Option<&str>) -> StatusReport {
    let now = NOW.parse().unwrap();
    let mut statuses: Vec<_> = configs.iter().map(|config| ConfigStatus::of(config, &cluster(), now)).collect();
    details().add_to(&mut statuses);
    let unread = vec![Unread {
        what: "MachineConfigNodes",
        why: "forbidden (403)".into(),
        consequence: "the steps of each node beyond its annotations",
    }];
    StatusReport::new(statuses, unread, profile)
}

fn look(width: usize, signs: Signs) -> Look {
    Look { width, signs, all: false, now: NOW.parse().unwrap(), zone: TimeZone::UTC }
}

fn shown(report: &StatusReport, width: usize, signs: Signs, colored: bool) -> String {
    let text = render(report, &look(width, signs));
    match colored {
        true => text.replace('\u{1b}', "^"),
        false => anstream::adapter::strip_str(&text).to_string(),
    }
}

#[test]
fn the_screen_of_one_profile_fits_narrow_and_wide_terminals() {
    let report = report(&[hanging()], Some("load-aware-rebalancing"));
    golden::assert("status_hanging", |width| render(&report, &look(width, Signs::Unicode)));
    let ascii = render(&report, &look(80, Signs::Ascii));
    assert!(ascii.contains("[#####----------] 2/6"), "{ascii}");
}

#[test]
fn without_a_profile_all_are_listed_and_what_is_in_progress_is_shown() {
    let review = json!({
        "phase": "ReviewRequired", "planDigest": "aa",
        "conditions": [
            condition("ReviewRequired", "ReviewRequired", "Plan ready for review", 3000),
            condition("Ready", "PlanReady", "Plan ready for review. Change action to 'Apply' to execute.", 3000),
        ],
    });
    let completed = json!({"phase": "Completed", "conditions": [condition("Completed", "Completed", "In sync", 300)]});
    let configs = [config("example-profile", completed), config("virt-higher-density", review), hanging()];
    let all = report(&configs, None);
    golden::assert("status_all", |width| render(&all, &look(width, Signs::Unicode)));
    let rest = report(&configs[..2], None);
    golden::assert("status_at_rest", |width| render(&rest, &look(width, Signs::Unicode)));
}

/// The hanging rollout on nodes with long names.
fn renamed(name: impl Fn(&str) -> String) -> StatusReport {
    let mut report = report(&[hanging()], Some("load-aware-rebalancing"));
    for config in &mut report.configurations {
        let nodes = config.pools.iter_mut().flat_map(|pool| &mut pool.nodes).map(|node| &mut node.name);
        nodes.chain(config.guests.iter_mut().map(|guest| &mut guest.node)).for_each(|node| *node = name(node));
    }
    report
}

#[test]
fn long_names_of_nodes_leave_room_for_what_happens() {
    let domain = |name: &str| format!("{name}.prod-eu-1.virt.example-company.com");
    let one = renamed(domain);
    golden::assert("status_domain", |width| render(&one, &look(width, Signs::Unicode)));
    let two = renamed(|name| if name.ends_with('3') { format!("{name}.example.com") } else { domain(name) });
    golden::assert("status_two_domains", |width| render(&two, &look(width, Signs::Unicode)));
    for report in [one, two] {
        let text = shown(&report, 80, Signs::Unicode, false);
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    }
}

#[test]
fn a_low_screen_shows_the_guests_that_hold_a_node_before_anything_at_rest() {
    let report = report(&[hanging()], Some("load-aware-rebalancing"));
    let fitted = |height| anstream::adapter::strip_str(&fitted(&report, &look(80, Signs::Ascii), height)).to_string();
    // 24 lines without the time, the line before it and the one of the cursor.
    insta::assert_snapshot!("hanging_80x24", fitted(21));
    for height in [21, 25, 30, 37, 100] {
        let text = fitted(height);
        assert!(text.lines().count() <= height, "{height}: {text}");
        for guest in ["guests/db-1", "guests/web-1", "guests/web-2"] {
            assert!(text.contains(guest), "{height}: {text}");
        }
    }
    assert_eq!(fitted(100), shown(&report, 80, Signs::Ascii, false), "nothing is left out where there is room");
    let low = fitted(5);
    assert_eq!(low.lines().count(), 5, "{low}");
    assert!(low.starts_with("load-aware-rebalancing: InProgress"), "{low}");
    assert!(low.lines().last().is_some_and(|line| line.contains(" more lines")), "{low}");
}

#[test]
fn of_many_nodes_those_at_rest_are_counted() {
    let mut report = report(&[hanging()], Some("load-aware-rebalancing"));
    let nodes = &mut report.configurations[0].pools[1].nodes;
    let updated = nodes.last().unwrap().clone();
    nodes.extend((0..40).map(|number| {
        let mut more = updated.clone();
        more.name = format!("more-{number}");
        more
    }));
    let text = anstream::adapter::strip_str(&render(&report, &look(100, Signs::Unicode))).to_string();
    assert!(text.contains("and 34 more: 34 updated"), "{text}");
    assert!(!text.contains("more-39"), "{text}");
}
