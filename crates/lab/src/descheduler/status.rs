//! What the stand-in tells in the status of the KubeDescheduler. It says everywhere that it is one.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{PolicyError, State};

/// The operator's own condition: whether it could make a policy of the object.
const CONFIG: &str = "TargetConfigControllerDegraded";
/// Ours, in place of what a Deployment would tell: whether the descheduler stays up.
const PROCESS: &str = "DeschedulerProcessDegraded";
const VERSION: &str = "lab-stand-in";
const BY: &str = "reported by the lab's stand-in for the descheduler operator";

/// The status as it should be, or none if it is so already.
pub(super) fn status(
    before: &Value,
    generation: i64,
    refusal: Option<&PolicyError>,
    state: &State,
    now: Timestamp,
) -> Option<Value> {
    let fine = || ("False", "AsExpected".to_owned(), BY.to_owned());
    // The operator puts the whole sentence into the reason.
    let config = refusal.map_or_else(fine, |refusal| ("True", refusal.to_string(), format!("{refusal} ({BY})")));
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
        let ready = State { is_ready: true, ..State::default() };
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
    fn a_refusal_is_told_in_the_operators_words_and_times_change_with_the_status_only() {
        let idle = State::default();
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
        let failing = State { problem: Some("descheduler ended".into()), ..State::default() };
        let after = status(&before, 1, None, &failing, time(0)).unwrap();
        assert_eq!(after["conditions"][0]["type"], "Other");
        assert_eq!(after["conditions"].as_array().unwrap().len(), 3);
        assert_eq!(after["generations"], before["generations"]);
        assert_eq!(after["conditions"][2]["reason"], "Failing");
    }
}
