//! How a recorded plan ended, from the status of its configuration.

use api::{
    VirtPlatformConfigStatus, VirtPlatformPlanRecord, VirtPlatformPlanRecordStatus, bounds,
    virt_platform_config::{Item, ItemState, Phase},
    virt_platform_plan_record::{ItemOutcome, Outcome, PoolReboot},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::text::cut;

/// The most bytes that all messages of a record may have together.
const MAX_MESSAGES: usize = 128 * 1024;

/// The status of a record, given the status of the configuration. A finished record stays as it is.
pub fn outcome(
    record: &VirtPlatformPlanRecord,
    config: &VirtPlatformConfigStatus,
    now: &Time,
) -> VirtPlatformPlanRecordStatus {
    let before = record.status.clone().unwrap_or_default();
    if before.finished_at.is_some() {
        return before;
    }
    let is_same_plan = config.plan_digest.as_deref() == Some(&record.spec.plan_digest);
    let outcome = if is_same_plan { of_phase(config) } else { Outcome::Superseded };
    let (items, reboots) = match is_same_plan {
        true => (items(&config.items), reboots(&config.items)),
        // The items of the status belong to another plan by now.
        false => (before.items, before.reboots),
    };
    let is_finished = outcome != Outcome::Running;
    VirtPlatformPlanRecordStatus {
        outcome: Some(outcome),
        message: is_finished.then(|| message(config)).filter(|message| !message.is_empty()),
        finished_at: is_finished.then(|| now.clone()),
        items,
        reboots,
    }
}

fn of_phase(config: &VirtPlatformConfigStatus) -> Outcome {
    let some_failed = config.items.iter().any(|item| item.state == ItemState::Failed);
    match config.phase {
        Some(Phase::InProgress) => Outcome::Running,
        Some(Phase::Completed | Phase::CompletedWithUpgrade | Phase::Drifted) if !some_failed => Outcome::Completed,
        Some(Phase::Completed | Phase::CompletedWithUpgrade | Phase::Drifted | Phase::CompletedWithErrors) => {
            Outcome::CompletedWithErrors
        }
        Some(Phase::Failed) => Outcome::Failed,
        None
        | Some(
            Phase::Pending
            | Phase::Drafting
            | Phase::PrerequisiteFailed
            | Phase::ReviewRequired
            | Phase::Scheduled
            | Phase::Ignored,
        ) => Outcome::Superseded,
    }
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

    fn record(status: Value) -> VirtPlatformPlanRecord {
        let spec = json!({
            "profile": "example-profile", "configUid": "u", "generation": 1, "planDigest": "d", "operatorVersion": "v1",
            "startedAt": "2026-01-05T08:00:00Z", "impactSeverity": "Low",
        });
        let object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord",
            "metadata": {"name": "example-profile-1"}, "spec": spec, "status": status});
        serde_json::from_value(object).unwrap()
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

    #[test]
    fn the_outcome_follows_from_the_phase_and_the_items() {
        for (phase, states, expected) in [
            ("InProgress", "Ip", "Running"),
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
            let status = outcome(&record(Value::Null), &config(phase, states), &now());
            assert_eq!(status.outcome.unwrap().as_str(), expected, "{phase} {states}");
            let is_running = expected == "Running";
            assert_eq!(status.finished_at.is_none(), is_running, "{phase}");
            assert_eq!(status.message, (!is_running).then(|| format!("{phase} it is")));
        }
    }

    #[test]
    fn items_and_reboots_are_those_of_the_plan_while_the_status_has_it() {
        let running = outcome(&record(Value::Null), &config("InProgress", "CIp"), &now());
        let items: Vec<_> =
            running.items.iter().map(|item| (item.name.as_str(), item.state.as_str(), item.applied)).collect();
        assert_eq!(
            items,
            [("item-0", "Completed", true), ("item-1", "InProgress", true), ("item-2", "Pending", false)]
        );
        let pool = |nodes, finished| PoolReboot { name: "worker".into(), nodes: Some(nodes), finished };
        assert_eq!(running.reboots, [pool(4, false)], "the second item is still being rolled out");

        let mut other = config("ReviewRequired", "p");
        other.plan_digest = Some("another".into());
        let left = outcome(&record(json!(running)), &other, &now());
        assert_eq!(left.outcome, Some(Outcome::Superseded));
        assert_eq!((left.items, left.reboots), (running.items, running.reboots), "as they were last seen");

        let done = outcome(&record(Value::Null), &config("Completed", "CC"), &now());
        assert_eq!(done.reboots, [pool(4, true)]);
        let unwritten = outcome(&record(Value::Null), &config("Failed", "fp"), &now());
        assert_eq!(unwritten.reboots, []);
    }

    #[test]
    fn a_finished_record_stays_as_it_is() {
        let done = outcome(&record(Value::Null), &config("Completed", "C"), &now());
        let later = Time("2026-02-01T00:00:00Z".parse::<Timestamp>().unwrap());
        assert_eq!(outcome(&record(json!(done)), &config("Failed", "f"), &later), done);
    }

    #[test]
    fn messages_are_cut_to_what_a_record_holds() {
        let mut config = config("Completed", &"C".repeat(bounds::ITEMS));
        config.items.iter_mut().for_each(|item| item.message = Some("x".repeat(bounds::MESSAGE)));
        let status = outcome(&record(Value::Null), &config, &now());
        assert!(json!(status).to_string().len() < 2 * MAX_MESSAGES);
        assert!(status.items[0].message.as_ref().unwrap().ends_with("[cut: too long]"));
    }
}
