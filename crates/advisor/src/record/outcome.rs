//! How a recorded plan ended, from the status of its configuration.

use api::{
    VirtPlatformConfigStatus, VirtPlatformPlanRecordStatus, bounds,
    virt_platform_config::{Item, ItemState, Phase},
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
    let is_same_plan = config.plan_digest.as_deref() == Some(plan_digest);
    let outcome = if is_same_plan { of_phase(config.phase?, &config.items)? } else { Outcome::Superseded };
    let ended = VirtPlatformPlanRecordStatus {
        outcome: Some(outcome),
        message: Some(message(config)).filter(|message| !message.is_empty()),
        finished_at: Some(now.clone()),
        items: items(&config.items),
        reboots: reboots(&config.items),
    };
    // The items of the status may belong to another plan by now.
    let superseded = VirtPlatformPlanRecordStatus {
        outcome: Some(Outcome::Superseded),
        items: Vec::new(),
        reboots: Vec::new(),
        ..ended.clone()
    };
    Some(if is_same_plan { ended } else { superseded })
}

/// How a plan ended whose configuration was deleted. Nobody knows how far it got.
pub fn abandoned(now: Time) -> VirtPlatformPlanRecordStatus {
    VirtPlatformPlanRecordStatus {
        outcome: Some(Outcome::Superseded),
        message: Some("The VirtPlatformConfig was deleted before the plan had ended".to_owned()),
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
    let condition = config.conditions.iter().find(|condition| condition.type_ == phase);
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

/// The pools of the items that were applied. A pool that several items roll is rolled as a whole when all of them are done.
fn reboots(items: &[Item]) -> Vec<PoolReboot> {
    let mut reboots: Vec<PoolReboot> = Vec::new();
    for item in items.iter().filter(|item| item.applied_fingerprint.is_some()) {
        let finished = item.state == ItemState::Completed;
        for pool in item.impact_detail.iter().filter(|detail| detail.reboot).flat_map(|detail| &detail.pools) {
            match reboots.iter_mut().find(|known| known.name == pool.name) {
                Some(known) => {
                    known.finished &= finished;
                    known.nodes = known.nodes.max(pool.nodes);
                }
                None => reboots.push(PoolReboot { name: pool.name.clone(), nodes: pool.nodes, finished }),
            }
        }
    }
    reboots.truncate(bounds::SHORT_LIST);
    reboots
}

#[cfg(test)]
mod tests {
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
        let pool = |nodes, finished| PoolReboot { name: "worker".into(), nodes: Some(nodes), finished };
        assert_eq!(stopped.reboots, [pool(4, false)], "the second item is still being rolled out");

        for phase in ["Completed", "InProgress"] {
            let mut other = config(phase, "C");
            other.plan_digest = Some("another".into());
            let left = ended(&other).unwrap();
            assert_eq!(left.outcome, Some(Outcome::Superseded), "{phase}");
            assert_eq!((left.items, left.reboots), (vec![], vec![]), "they are not known any more");
        }

        assert_eq!(ended(&config("Completed", "CC")).unwrap().reboots, [pool(4, true)]);
        assert_eq!(ended(&config("Failed", "fp")).unwrap().reboots, [], "nothing was written");
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
