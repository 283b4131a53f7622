//! How a recorded plan ended, from the status of its configuration.

use api::{
    VirtPlatformConfigStatus, VirtPlatformPlanRecord, VirtPlatformPlanRecordStatus, bounds,
    virt_platform_config::{Item, ItemState, Phase, PoolRollout, RolloutState},
    virt_platform_plan_record::{ItemOutcome, Outcome, PoolReboot},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::truncate::cut;

/// The most bytes that all messages of a record may have together.
const MAX_MESSAGES: usize = 128 * 1024;

/// How the plan of this digest ended, given the status of the configuration. None while it is being applied; a plan that another one
/// has replaced in the status is not.
pub fn outcome(
    plan_digest: &str,
    config: &VirtPlatformConfigStatus,
    now: &Time,
) -> Option<VirtPlatformPlanRecordStatus> {
    if config.plan_digest.as_deref() != Some(plan_digest) {
        // The items of the status belong to another plan.
        return Some(unseen("Another plan has replaced it", now.clone()));
    }
    Some(VirtPlatformPlanRecordStatus {
        outcome: Some(of_phase(config.phase?, &config.items)?),
        message: Some(message(config)).filter(|message| !message.is_empty()),
        finished_at: Some(now.clone()),
        items: items(&config.items),
        reboots: reboots(&config.items),
    })
}

/// Whether a record was left open by another configuration than the one with this uid: that one was deleted before its plan ended.
pub fn is_abandoned(record: &VirtPlatformPlanRecord, config_uid: Option<&str>) -> bool {
    let is_finished = record.status.as_ref().is_some_and(|status| status.finished_at.is_some());
    !is_finished && config_uid != Some(&record.spec.config_uid)
}

/// How a plan ended whose configuration was deleted.
pub fn abandoned(now: Time) -> VirtPlatformPlanRecordStatus {
    unseen("The VirtPlatformConfig was deleted", now)
}

/// A plan whose end nobody has seen.
fn unseen(why: &str, now: Time) -> VirtPlatformPlanRecordStatus {
    let message = format!(
        "{why} before the plan was seen to end. So this record does not tell which items were applied and which nodes were rebooted"
    );
    VirtPlatformPlanRecordStatus {
        outcome: Some(Outcome::Superseded),
        message: Some(message),
        finished_at: Some(now),
        ..VirtPlatformPlanRecordStatus::default()
    }
}

fn of_phase(phase: Phase, items: &[Item]) -> Option<Outcome> {
    let is_any = |state: ItemState| items.iter().any(|item| item.state == state);
    let some_failed = is_any(ItemState::Failed);
    Some(match phase {
        Phase::InProgress => return None,
        // Somebody has changed a target on its way. When it is set back, the plan goes on.
        Phase::Drifted if is_any(ItemState::InProgress) => return None,
        Phase::Completed | Phase::CompletedWithUpgrade | Phase::Drifted if !some_failed => Outcome::Completed,
        Phase::Completed | Phase::CompletedWithUpgrade | Phase::Drifted | Phase::CompletedWithErrors => {
            Outcome::CompletedWithErrors
        }
        Phase::Failed => Outcome::Failed,
        Phase::Pending
        | Phase::Drafting
        | Phase::PrerequisiteFailed
        | Phase::ReviewRequired
        | Phase::Scheduled
        | Phase::Ignored => Outcome::Superseded,
    })
}

/// The message of the phase.
fn message(config: &VirtPlatformConfigStatus) -> String {
    let phase = config.phase.map_or("", Phase::as_str);
    let condition = config.condition(phase);
    condition.map_or(String::new(), |condition| cut(condition.message.clone(), bounds::NOTE))
}

fn items(items: &[Item]) -> Vec<ItemOutcome> {
    let room = (MAX_MESSAGES / items.len().max(1)).min(bounds::MESSAGE);
    let outcome = |item: &Item| ItemOutcome {
        name: item.name.clone(),
        state: item.state,
        applied: item.applied_fingerprint.is_some(),
        message: item.message.clone().map(|message| cut(message, room)),
        waiting_since: item.waiting_since.clone(),
        last_transition_time: item.last_transition_time.clone(),
    };
    items.iter().map(outcome).collect()
}

/// The pools that the applied items roll, and how far they were seen to get. A pool that several items roll is as far as the one that is
/// the least far.
fn reboots(items: &[Item]) -> Vec<PoolReboot> {
    let mut reboots: Vec<PoolReboot> = Vec::new();
    for item in items.iter().filter(|item| item.applied_fingerprint.is_some()) {
        for reboot in reboots_of(item) {
            match reboots.iter_mut().find(|known| known.name == reboot.name) {
                Some(known) => {
                    known.finished &= reboot.finished;
                    known.nodes = known.nodes.max(reboot.nodes);
                    known.updated = known.updated.into_iter().chain(reboot.updated).min();
                }
                None => reboots.push(reboot),
            }
        }
    }
    reboots.truncate(bounds::SHORT_LIST);
    reboots
}

/// The pools of the review. What the status tells of those that were still waited for is newer; one that it does not tell of any more, or
/// with an item that is in effect, has finished.
fn reboots_of(item: &Item) -> Vec<PoolReboot> {
    let Some(detail) = item.impact_detail.as_ref().filter(|detail| detail.reboot) else { return Vec::new() };
    let is_over = item.state == ItemState::Completed || !item.rollout.is_empty();
    let waited = |name: &str| item.rollout.iter().find(|waited| waited.pool == name);
    let reviewed = detail.pools.iter().map(|pool| match waited(&pool.name) {
        Some(waited) => PoolReboot { nodes: waited.total.or(pool.nodes), ..seen(waited) },
        None => PoolReboot { name: pool.name.clone(), nodes: pool.nodes, updated: None, finished: is_over },
    });
    let is_new = |waited: &&PoolRollout| !detail.pools.iter().any(|pool| pool.name == waited.pool);
    reviewed.chain(item.rollout.iter().filter(is_new).map(seen)).collect()
}

fn seen(waited: &PoolRollout) -> PoolReboot {
    let updated = match waited.state {
        // Its own number still counts the nodes that run what was there before.
        RolloutState::Pending | RolloutState::RenderDegraded => Some(0),
        RolloutState::Updating | RolloutState::Degraded => waited.updated,
        // Nobody knows which of both it counts.
        RolloutState::Paused | RolloutState::NoProgress => None,
    };
    PoolReboot { name: waited.pool.clone(), nodes: waited.total, updated, finished: false }
}

#[cfg(test)]
mod tests {
    use api::VirtPlatformPlanRecordSpec;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Time {
        Time("2026-01-05T09:00:00Z".parse::<Timestamp>().unwrap())
    }

    /// A status of the plan with items of these states. Those in capitals were applied.
    fn config(phase: &str, states: &str) -> VirtPlatformConfigStatus {
        let item = |(at, letter): (usize, char)| {
            let state = match letter.to_ascii_lowercase() {
                'p' => "Pending",
                'i' => "InProgress",
                'c' => "Completed",
                _ => "Failed",
            };
            let fingerprint = letter.is_uppercase().then_some("f");
            json!({
                "name": format!("item-{at}"), "targetRef": {"apiVersion": "v1", "kind": "A", "name": "a"}, "state": state,
                "message": "m", "appliedFingerprint": fingerprint,
                "impactDetail": {"reboot": true, "pools": [{"name": "worker", "nodes": 3 + at}]},
            })
        };
        let items: Vec<Value> = states.chars().enumerate().map(item).collect();
        let condition = json!({"type": phase, "status": "True", "reason": "A", "message": format!("{phase} it is"),
            "lastTransitionTime": "2026-01-05T08:00:00Z"});
        serde_json::from_value(json!({"phase": phase, "planDigest": "d", "items": items, "conditions": [condition]}))
            .unwrap()
    }

    fn ended(config: &VirtPlatformConfigStatus) -> Option<VirtPlatformPlanRecordStatus> {
        outcome("d", config, &now())
    }

    #[test]
    fn the_outcome_follows_from_the_phase_and_the_items() {
        for (phase, states, expected) in [
            ("Completed", "CC", "Completed"),
            ("CompletedWithUpgrade", "C", "Completed"),
            ("Drifted", "CC", "Completed"),
            ("Drifted", "Cf", "CompletedWithErrors"),
            ("CompletedWithErrors", "Cf", "CompletedWithErrors"),
            ("Failed", "fp", "Failed"),
            ("Drafting", "Cp", "Superseded"),
            ("ReviewRequired", "Cp", "Superseded"),
            ("PrerequisiteFailed", "Ip", "Superseded"),
            ("Ignored", "Ip", "Superseded"),
        ] {
            let status = ended(&config(phase, states)).unwrap();
            assert_eq!(status.outcome.unwrap().as_str(), expected, "{phase} {states}");
            assert_eq!((status.finished_at, status.message), (Some(now()), Some(format!("{phase} it is"))));
        }
        assert_eq!(ended(&config("InProgress", "Ip")), None, "it has not ended");
        assert_eq!(ended(&config("Drifted", "CI")), None, "it goes on when the target is set back");
    }

    #[test]
    fn items_and_reboots_are_those_of_the_plan_while_the_status_has_it() {
        let stopped = ended(&config("Drafting", "CIp")).unwrap();
        let items: Vec<_> =
            stopped.items.iter().map(|item| (item.name.as_str(), item.state.as_str(), item.applied)).collect();
        assert_eq!(
            items,
            [("item-0", "Completed", true), ("item-1", "InProgress", true), ("item-2", "Pending", false)]
        );
        let pool = |nodes, finished| PoolReboot { name: "worker".into(), nodes: Some(nodes), updated: None, finished };
        assert_eq!(stopped.reboots, [pool(4, false)], "the second item is still being rolled out");

        for phase in ["Completed", "InProgress"] {
            let mut other = config(phase, "C");
            other.plan_digest = Some("another".into());
            let left = ended(&other).unwrap();
            assert_eq!(left.outcome, Some(Outcome::Superseded), "{phase}");
            let message = left.message.unwrap();
            assert!(
                message.starts_with("Another plan has replaced it") && message.contains("does not tell"),
                "{message}"
            );
            assert_eq!((left.items, left.reboots), (vec![], vec![]), "they are not known any more");
        }

        assert_eq!(ended(&config("Completed", "CC")).unwrap().reboots, [pool(4, true)]);
        assert_eq!(ended(&config("Failed", "fp")).unwrap().reboots, [], "nothing was written");
    }

    #[test]
    fn what_was_rebooted_is_what_was_seen_and_not_what_was_reviewed() {
        /// The state of the pool, its updated nodes, and what is recorded of it: nodes, updated and finished.
        type Case = (&'static str, Option<i32>, (i32, Option<i32>, bool));
        let cases: [Case; 6] = [
            ("Pending", Some(5), (5, Some(0), false)),
            ("RenderDegraded", Some(5), (5, Some(0), false)),
            ("Updating", Some(2), (5, Some(2), false)),
            ("Degraded", Some(2), (5, Some(2), false)),
            ("Paused", Some(2), (5, None, false)),
            ("NoProgress", Some(2), (5, None, false)),
        ];
        let with = |pools: Value| {
            let mut config = config("Drafting", "I");
            config.items[0].rollout = serde_json::from_value(pools).unwrap();
            ended(&config).unwrap().reboots
        };
        for (state, updated, expected) in cases {
            let reboots = with(json!([{"pool": "worker", "state": state, "updated": updated, "total": 5}]));
            let told: Vec<_> = reboots.iter().map(|pool| (pool.nodes.unwrap(), pool.updated, pool.finished)).collect();
            assert_eq!(told, [expected], "{state}");
        }
        let reboots = with(json!([{"pool": "infra", "state": "Updating", "updated": 1, "total": 2}]));
        let told: Vec<_> = reboots.iter().map(|pool| (pool.name.as_str(), pool.updated, pool.finished)).collect();
        assert_eq!(told, [("worker", None, true), ("infra", Some(1), false)], "worker is not waited for any more");
        assert!(!with(json!([]))[0].finished, "nothing was seen of it yet");

        let mut two = config("Drafting", "CI");
        two.items[1].rollout =
            serde_json::from_value(json!([{"pool": "worker", "state": "Updating", "updated": 1, "total": 4}])).unwrap();
        let pool = PoolReboot { name: "worker".into(), nodes: Some(4), updated: Some(1), finished: false };
        assert_eq!(ended(&two).unwrap().reboots, [pool], "the second item is the least far");
    }

    #[test]
    fn a_deleted_configuration_leaves_a_record_that_says_that_it_does_not_know() {
        let status = abandoned(now());
        assert_eq!((status.outcome, &status.finished_at), (Some(Outcome::Superseded), &Some(now())));
        assert_eq!(
            status.message.as_deref(),
            Some(
                "The VirtPlatformConfig was deleted before the plan was seen to end. So this record does not tell which items were \
                 applied and which nodes were rebooted"
            )
        );
    }

    #[test]
    fn what_other_configurations_left_open_is_abandoned() {
        let spec = json!({
            "profile": "example-profile", "configUid": "theirs", "generation": 1, "planDigest": "d", "operatorVersion": "v1",
            "startedAt": now(), "impactSeverity": "Low", "items": [],
        });
        let spec: VirtPlatformPlanRecordSpec = serde_json::from_value(spec).unwrap();
        let record = |status: Option<VirtPlatformPlanRecordStatus>| VirtPlatformPlanRecord {
            status,
            ..VirtPlatformPlanRecord::new("example-profile-1", spec.clone())
        };
        for (status, config, expected) in [
            (None, Some("ours"), true),
            (None, None, true),
            (None, Some("theirs"), false),
            (Some(VirtPlatformPlanRecordStatus::default()), Some("ours"), true),
            (Some(abandoned(now())), Some("ours"), false),
        ] {
            assert_eq!(is_abandoned(&record(status.clone()), config), expected, "{status:?} {config:?}");
        }
    }

    #[test]
    fn messages_are_cut_to_what_a_record_holds() {
        let mut config = config("Completed", &"C".repeat(bounds::ITEMS));
        config.items.iter_mut().for_each(|item| item.message = Some("x".repeat(bounds::MESSAGE)));
        let status = ended(&config).unwrap();
        assert!(json!(status).to_string().len() < 2 * MAX_MESSAGES);
        assert!(status.items[0].message.as_ref().unwrap().ends_with("[cut: too long]"));
    }
}
