//! For whom a configuration waits, in a few words, as its status tells.

use api::{
    VirtPlatformConfig, VirtPlatformConfigStatus,
    virt_platform_config::{ItemState, Phase, PoolRollout, RolloutState},
};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    machine::{
        EXPIRED, FORCED_REVIEW, MISMATCH, NOT_ACCEPTED, PLAN_STALE, RECONCILING, REJECTED, RISKS_NOT_ACCEPTED, STALLED,
        WINDOW_INVALID,
    },
    start_time::{StartTime, start_time},
};

/// Who has the next step. Ordered: what needs a person comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Whom {
    Person,
    /// Nodes, or the operators of targets.
    Cluster,
    /// The time at which an approved plan may start.
    Time,
    /// The operator of this project.
    Operator,
    Nobody,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub whom: Whom,
    /// What is waited for; for a person, what to do.
    pub what: String,
}

impl Waiting {
    fn new(whom: Whom, what: impl Into<String>) -> Self {
        Waiting { whom, what: what.into() }
    }

    /// `you to review the plan`
    pub fn text(&self) -> String {
        if self.whom == Whom::Person { format!("you to {}", self.what) } else { self.what.clone() }
    }
}

pub fn waiting(config: &VirtPlatformConfig, now: Timestamp) -> Waiting {
    let unseen = || Waiting::new(Whom::Operator, "the operator to look at the spec");
    let Some(status) = &config.status else { return unseen() };
    let Some(phase) = status.phase.filter(|_| status.observed_generation == config.metadata.generation) else {
        return unseen();
    };
    let person = |what: &str| Waiting::new(Whom::Person, what);
    match phase {
        Phase::Pending | Phase::Drafting => Waiting::new(Whom::Operator, "the operator to make the plan"),
        Phase::PrerequisiteFailed => person(&format!("install what is missing. {}", told(status, phase))),
        Phase::ReviewRequired => person(&review(status)),
        Phase::Scheduled => Waiting::new(Whom::Time, opening(config, now)),
        Phase::InProgress => progress(status),
        Phase::Completed | Phase::Ignored => Waiting::new(Whom::Nobody, ""),
        Phase::CompletedWithUpgrade => person("look at the newer plan of this version"),
        Phase::CompletedWithErrors | Phase::Failed => person(&format!("see to what failed. {}", failed(status, phase))),
        Phase::Drifted if holds(status, RECONCILING) => {
            Waiting::new(Whom::Operator, "the operator to put back what somebody changed")
        }
        Phase::Drifted => person("decide about what somebody changed"),
    }
}

/// Since when the configuration is in its phase.
pub fn since(status: &VirtPlatformConfigStatus) -> Option<Timestamp> {
    status.entered(status.phase?).map(|time| time.0)
}

fn holds(status: &VirtPlatformConfigStatus, kind: &str) -> bool {
    status.true_condition(kind).is_some()
}

/// The message of the phase, in one line.
fn told(status: &VirtPlatformConfigStatus, phase: Phase) -> String {
    let message = status.condition(phase.as_str()).map(|condition| condition.message.as_str()).unwrap_or_default();
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn review(status: &VirtPlatformConfigStatus) -> String {
    let reason = status.condition(Phase::ReviewRequired.as_str()).map(|condition| condition.reason.as_str());
    let what = match reason.unwrap_or_default() {
        REJECTED => "change the options or take the rejection back: the plan was rejected",
        MISMATCH => "review the plan: the approval names another one",
        NOT_ACCEPTED => "accept the items that overwrite changes of others",
        RISKS_NOT_ACCEPTED => "accept the risks of the plan: the approval does not name all of them",
        EXPIRED => "approve the plan again: the approval has ended",
        WINDOW_INVALID => "correct the window of the approval",
        PLAN_STALE => "have the plan made again: what it changes has changed since",
        _ if holds(status, FORCED_REVIEW) => "review the plan again: something that it depends on has changed",
        _ => "review the plan",
    };
    what.to_owned()
}

fn opening(config: &VirtPlatformConfig, now: Timestamp) -> String {
    let approval = config.spec.approval.as_ref();
    let has_window = approval.is_some_and(|approval| approval.window.is_some());
    let what = if has_window { "its window" } else { "its time" };
    match start_time(approval, now) {
        StartTime::At(time) if has_window => format!("{what}, which opens at {time:.0}"),
        StartTime::At(time) => format!("{what}, {time:.0}"),
        _ => what.to_owned(),
    }
}

fn progress(status: &VirtPlatformConfigStatus) -> Waiting {
    // A pool that several items wait for counts once.
    let mut pools: Vec<&PoolRollout> = status.items.iter().flat_map(|item| &item.rollout).collect();
    pools.sort_by_key(|pool| &pool.pool);
    pools.dedup_by_key(|pool| &pool.pool);
    let nodes = |pool: &PoolRollout| match (pool.updated, pool.total) {
        (Some(updated), Some(total)) => format!("pool {}, {updated} of {total} nodes updated", pool.pool),
        _ => format!("pool {}", pool.pool),
    };
    let cause = |pool: &PoolRollout| pool.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
    let trouble = pools.iter().find_map(|pool| match pool.state {
        RolloutState::Paused => Some(format!("resume {}", nodes(pool))),
        RolloutState::Degraded | RolloutState::RenderDegraded | RolloutState::NoProgress => {
            Some(format!("look at {}{}", nodes(pool), cause(pool)))
        }
        RolloutState::Pending | RolloutState::Updating => None,
    });
    if let Some(trouble) = trouble {
        return Waiting::new(Whom::Person, trouble);
    }
    let messages = status.items.iter().filter(|item| item.state == ItemState::InProgress);
    let awaited: Vec<String> = match pools.is_empty() {
        true => messages.filter_map(|item| item.message.clone()).collect(),
        false => pools.iter().map(|pool| nodes(pool)).collect(),
    };
    let awaited = if awaited.is_empty() { "its items to be applied".to_owned() } else { awaited.join("; ") };
    match holds(status, STALLED) {
        true => Waiting::new(Whom::Person, format!("look at what does not get on: {awaited}")),
        false => Waiting::new(Whom::Cluster, awaited),
    }
}

/// What failed, item by item; without such an item, what the phase says.
fn failed(status: &VirtPlatformConfigStatus, phase: Phase) -> String {
    let items = status.items.iter().filter(|item| item.state == ItemState::Failed);
    let told_by = |item: &api::virt_platform_config::Item| Some(format!("{}: {}", item.name, item.message.as_deref()?));
    let items: Vec<String> = items.filter_map(told_by).collect();
    if items.is_empty() { told(status, phase) } else { items.join("; ") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config(status: Value) -> VirtPlatformConfig {
        let approval = json!({"window": {"days": ["Saturday"], "start": "22:00", "duration": "6h"}});
        serde_json::from_value(json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "example-profile", "generation": 2},
            "spec": {"profile": "example-profile", "action": "Apply", "approval": approval},
            "status": status,
        }))
        .unwrap()
    }

    /// A status of the current spec with one true condition per pair of a type and a reason.
    fn status(phase: &str, conditions: &[(&str, &str)]) -> Value {
        let condition = |(kind, reason): &(&str, &str)| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": "Missing:\n  - this",
                "lastTransitionTime": "2026-01-05T08:00:00Z",
            })
        };
        json!({"phase": phase, "observedGeneration": 2, "conditions": conditions.iter().map(condition).collect::<Vec<_>>()})
    }

    fn rolling(pools: Value) -> Value {
        let mut status = status("InProgress", &[("InProgress", "InProgress")]);
        let target = json!({"apiVersion": "v1", "kind": "K", "name": "n"});
        status["items"] = json!([{"name": "i", "targetRef": target, "state": "InProgress", "message": "its operator", "rollout": pools}]);
        status
    }

    fn pool(state: &str) -> Value {
        json!([{"pool": "worker", "state": state, "updated": 2, "total": 6, "cause": "node-3: disk full"}])
    }

    #[test]
    fn who_has_the_next_step_is_told_with_what_it_is() {
        let review = |reason| status("ReviewRequired", &[("ReviewRequired", reason)]);
        let cases = [
            (Value::Null, Whom::Operator, "the operator to look at the spec"),
            (status("Drafting", &[]), Whom::Operator, "the operator to make the plan"),
            (
                status("PrerequisiteFailed", &[("PrerequisiteFailed", "x")]),
                Whom::Person,
                "you to install what is missing. Missing: - this",
            ),
            (review("ReviewRequired"), Whom::Person, "you to review the plan"),
            (
                review(RISKS_NOT_ACCEPTED),
                Whom::Person,
                "you to accept the risks of the plan: the approval does not name all of them",
            ),
            (review(EXPIRED), Whom::Person, "you to approve the plan again: the approval has ended"),
            (
                status("ReviewRequired", &[("ReviewRequired", "x"), (FORCED_REVIEW, "InputChanged")]),
                Whom::Person,
                "you to review the plan again: something that it depends on has changed",
            ),
            (status("Scheduled", &[]), Whom::Time, "its window, which opens at 2026-01-10T22:00:00Z"),
            (rolling(pool("Updating")), Whom::Cluster, "pool worker, 2 of 6 nodes updated"),
            (rolling(pool("Paused")), Whom::Person, "you to resume pool worker, 2 of 6 nodes updated"),
            (
                rolling(pool("Degraded")),
                Whom::Person,
                "you to look at pool worker, 2 of 6 nodes updated: node-3: disk full",
            ),
            (rolling(json!([])), Whom::Cluster, "its operator"),
            (status("Failed", &[("Failed", "x")]), Whom::Person, "you to see to what failed. Missing: - this"),
            (status("Drifted", &[("Drifted", "x")]), Whom::Person, "you to decide about what somebody changed"),
            (
                status("Drifted", &[("Drifted", "x"), (RECONCILING, "x")]),
                Whom::Operator,
                "the operator to put back what somebody changed",
            ),
            (status("Completed", &[]), Whom::Nobody, ""),
        ];
        let now = "2026-01-05T09:00:00Z".parse().unwrap();
        for (status, whom, text) in cases {
            let waiting = waiting(&config(status.clone()), now);
            assert_eq!((waiting.whom, waiting.text().as_str()), (whom, text), "{status}");
        }
    }

    #[test]
    fn a_status_of_an_earlier_spec_tells_nothing() {
        let mut old = status("Completed", &[]);
        old["observedGeneration"] = 1.into();
        assert_eq!(waiting(&config(old), Timestamp::UNIX_EPOCH).whom, Whom::Operator);
    }

    #[test]
    fn a_phase_lasts_since_its_condition_became_true() {
        let since =
            |conditions: &[(&str, &str)]| super::since(&config(status("Completed", conditions)).status.unwrap());
        assert_eq!(since(&[("Completed", "x")]), Some("2026-01-05T08:00:00Z".parse().unwrap()));
        assert_eq!(since(&[("Drifted", "x")]), None);
    }
}
