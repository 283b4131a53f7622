//! The status of the KubeDescheduler. Every message says that it is from the stand-in.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{PolicyError, StandInState};

/// The operator's condition: whether the object gives a policy.
const CONFIG: &str = "TargetConfigControllerDegraded";
/// Our condition, in place of those of a Deployment: whether the process keeps running.
const PROCESS: &str = "DeschedulerProcessDegraded";
const VERSION: &str = "lab-stand-in";
const BY: &str = "reported by the lab's stand-in for the descheduler operator";

/// The new status. None if it equals the current one.
pub(super) fn status(
    before: &Value,
    generation: i64,
    policy_error: Option<&PolicyError>,
    state: &StandInState,
    now: Timestamp,
) -> Option<Value> {
    let fine = || ("False", "AsExpected".to_owned(), BY.to_owned());
    // The operator writes the whole message into the reason.
    let config = policy_error.map_or_else(fine, |error| ("True", error.to_string(), format!("{error} ({BY})")));
    let process =
        state.problem.as_ref().map_or_else(fine, |problem| ("True", "Failing".into(), format!("{problem} ({BY})")));

    let known: Vec<Value> = before["conditions"].as_array().cloned().unwrap_or_default();
    let mut conditions = known.clone();
    for (kind, (status, reason, message)) in [(CONFIG, config), (PROCESS, process)] {
        let last = known.iter().find(|condition| condition["type"] == kind);
        let since = last.filter(|last| last["status"] == status).map(|last| last["lastTransitionTime"].clone());
        let condition = json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since.unwrap_or_else(|| format!("{now:.0}").into()),
        });
        match conditions.iter_mut().find(|condition| condition["type"] == kind) {
            Some(place) => *place = condition,
            None => conditions.push(condition),
        }
    }
    let mut after = if before.is_object() { before.clone() } else { json!({}) };
    after["conditions"] = conditions.into();
    after["observedGeneration"] = generation.into();
    after["readyReplicas"] = i32::from(state.is_ready).into();
    after["version"] = VERSION.into();
    (after != *before).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_status_that_is_right_is_not_written_again() {
        let ready = StandInState { is_ready: true, ..StandInState::default() };
        let first = status(&Value::Null, 3, None, &ready, time(0)).unwrap();
        assert_eq!((&first["observedGeneration"], &first["readyReplicas"]), (&json!(3), &json!(1)));
        assert_eq!(first["version"], "lab-stand-in");
        let expected = json!({
            "type": "TargetConfigControllerDegraded", "status": "False", "reason": "AsExpected",
            "message": "reported by the lab's stand-in for the descheduler operator",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        });
        assert_eq!(first["conditions"][0], expected);
        assert_eq!(status(&first, 3, None, &ready, time(9)), None);
        assert!(status(&first, 4, None, &ready, time(9)).is_some());
    }

    #[test]
    fn a_policy_error_has_the_message_of_the_operator_and_times_change_only_with_the_status() {
        let idle = StandInState::default();
        let first = status(&Value::Null, 1, None, &idle, time(0)).unwrap();
        let refused = status(&first, 2, Some(&PolicyError::NoInterval), &idle, time(60)).unwrap();
        let condition = &refused["conditions"][0];
        assert_eq!(condition["status"], "True");
        assert_eq!(condition["reason"], PolicyError::NoInterval.to_string());
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:01:00Z");
        assert_eq!(refused["conditions"][1]["lastTransitionTime"], "1970-01-01T00:00:00Z");
        let otherwise = status(&refused, 3, Some(&PolicyError::NoProfile), &idle, time(120)).unwrap();
        assert_eq!(otherwise["conditions"][0]["lastTransitionTime"], "1970-01-01T00:01:00Z", "still degraded");
    }

    #[test]
    fn conditions_and_fields_of_others_stay() {
        let before = json!({"conditions": [{"type": "Other", "status": "True"}], "generations": [{"name": "x"}]});
        let failing = StandInState { problem: Some("descheduler ended".into()), ..StandInState::default() };
        let after = status(&before, 1, None, &failing, time(0)).unwrap();
        assert_eq!(after["conditions"][0]["type"], "Other");
        assert_eq!(after["conditions"].as_array().unwrap().len(), 3);
        assert_eq!(after["generations"], before["generations"]);
        assert_eq!(after["conditions"][2]["reason"], "Failing");
    }
}
