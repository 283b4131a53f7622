//! Whether what somebody waits for has happened, will not happen by itself any more, or may still happen.
//!
//! Whatever the operator goes on with by itself may still happen. What only an edit of the spec would change will not.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Phase, VirtPlatformConfigStatus},
};

use crate::machine::STALLED;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// There is a plan to read.
    Planned,
    /// The plan is in effect.
    Completed,
    /// Somebody has approved the plan, or it needs no approval.
    Reviewed,
    /// The plan has failed, or a part of it.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalState {
    Reached,
    /// And why.
    Unreachable(String),
    Open,
}

/// How a configuration stands to a goal.
pub fn goal_state(goal: Goal, config: &VirtPlatformConfig) -> GoalState {
    let Some(status) = &config.status else { return GoalState::Open };
    // A status of an older spec says nothing about the current one.
    if status.observed_generation < config.metadata.generation {
        return GoalState::Open;
    }
    let Some(phase) = status.phase else { return GoalState::Open };
    let unreachable = |why: &str| GoalState::Unreachable(told(status, phase, why));
    match (goal, phase) {
        (_, Phase::Ignored) => unreachable("it is ignored (spec.action)"),
        (_, Phase::PrerequisiteFailed) if reason(status, phase) == Some("InvalidOptions") => {
            unreachable("its options are invalid")
        }
        (Goal::Planned, Phase::Pending | Phase::Drafting | Phase::PrerequisiteFailed) => GoalState::Open,
        (Goal::Planned, _) => GoalState::Reached,
        (Goal::Failed, Phase::Failed | Phase::CompletedWithErrors) => GoalState::Reached,
        (_, Phase::Failed) => unreachable("it has failed"),
        (Goal::Failed, Phase::Completed | Phase::CompletedWithUpgrade) => unreachable("it is completed"),
        (Goal::Completed | Goal::Reviewed, Phase::Completed | Phase::CompletedWithUpgrade) => GoalState::Reached,
        (Goal::Completed, Phase::CompletedWithErrors) => unreachable("some of its items have failed"),
        (Goal::Completed, Phase::Drifted) if is_stalled(status) => unreachable("it has drifted"),
        (Goal::Reviewed, Phase::Scheduled | Phase::InProgress | Phase::CompletedWithErrors | Phase::Drifted) => {
            GoalState::Reached
        }
        (_, Phase::ReviewRequired) if is_rejected(config, status) => unreachable("its plan was rejected"),
        _ => GoalState::Open,
    }
}

fn is_rejected(config: &VirtPlatformConfig, status: &VirtPlatformConfigStatus) -> bool {
    let rejected = config.spec.approval.as_ref().and_then(|approval| approval.rejected.as_ref());
    rejected.is_some_and(|rejected| Some(&rejected.plan_digest) == status.plan_digest.as_ref())
}

fn is_stalled(status: &VirtPlatformConfigStatus) -> bool {
    status.true_condition(STALLED).is_some()
}

fn reason(status: &VirtPlatformConfigStatus, phase: Phase) -> Option<&str> {
    status.condition(phase.as_str()).map(|own| own.reason.as_str())
}

/// The reason, with the operator's own words.
fn told(status: &VirtPlatformConfigStatus, phase: Phase, why: &str) -> String {
    let own = status.true_condition(phase.as_str());
    match own.map(|own| own.message.as_str()).filter(|message| !message.is_empty()) {
        Some(message) => format!("{why}: {message}"),
        None => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config(status: &Value, rejected: Option<&str>) -> VirtPlatformConfig {
        let approval = rejected.map(|digest| json!({"rejected": {"planDigest": digest}}));
        serde_json::from_value(json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "example-profile", "generation": 4},
            "spec": {"profile": "example-profile", "approval": approval},
            "status": status,
        }))
        .unwrap()
    }

    fn status(phase: &str, conditions: &[(&str, &str)]) -> Value {
        let condition = |(kind, reason): &(&str, &str)| {
            let time = "2026-01-01T10:00:00Z";
            json!({"type": kind, "status": "True", "reason": reason, "message": "text", "lastTransitionTime": time})
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        json!({"phase": phase, "observedGeneration": 4, "planDigest": "d", "conditions": conditions})
    }

    /// For each goal in turn: `+` reached, `-` unreachable, `.` open.
    fn signs(config: &VirtPlatformConfig) -> String {
        let sign = |goal| match goal_state(goal, config) {
            GoalState::Reached => '+',
            GoalState::Unreachable(_) => '-',
            GoalState::Open => '.',
        };
        [Goal::Planned, Goal::Completed, Goal::Reviewed, Goal::Failed].map(sign).iter().collect()
    }

    #[test]
    fn every_phase_settles_a_goal_or_leaves_it_open() {
        let stalled = [("Stalled", "DriftDetected")];
        for (case, status, expected) in [
            ("not looked at", status("Pending", &[]), "...."),
            ("being planned", status("Drafting", &[]), "...."),
            (
                "waiting for a component",
                status("PrerequisiteFailed", &[("PrerequisiteFailed", "PrerequisiteFailed")]),
                "....",
            ),
            ("with invalid options", status("PrerequisiteFailed", &[("PrerequisiteFailed", "InvalidOptions")]), "----"),
            ("to be reviewed", status("ReviewRequired", &[]), "+..."),
            ("scheduled", status("Scheduled", &[]), "+.+."),
            ("in progress", status("InProgress", &[]), "+.+."),
            ("stuck, which may pass", status("InProgress", &[("Stalled", "NoProgress")]), "+.+."),
            ("completed", status("Completed", &[]), "+++-"),
            ("completed by an older operator", status("CompletedWithUpgrade", &[]), "+++-"),
            ("partly completed", status("CompletedWithErrors", &[]), "+-++"),
            ("failed", status("Failed", &[]), "+--+"),
            ("drifted", status("Drifted", &stalled), "+-+."),
            ("drifted, being reverted", status("Drifted", &[("Reconciling", "DriftDetected")]), "+.+."),
            ("ignored", status("Ignored", &[]), "----"),
        ] {
            assert_eq!(signs(&config(&status, None)), expected, "{case}");
        }
        assert_eq!(Phase::ALL.len(), 12, "a new phase needs a case here");
    }

    #[test]
    fn a_rejected_plan_goes_nowhere_until_another_one_replaces_it() {
        let review = status("ReviewRequired", &[("ReviewRequired", "Rejected")]);
        assert_eq!(signs(&config(&review, Some("d"))), "+---");
        assert_eq!(signs(&config(&review, Some("another"))), "+...");
        let why = goal_state(Goal::Completed, &config(&review, Some("d")));
        assert_eq!(why, GoalState::Unreachable("its plan was rejected: text".into()));
    }

    #[test]
    fn a_status_that_is_older_than_the_spec_settles_nothing() {
        let mut old = status("Completed", &[]);
        old["observedGeneration"] = 3.into();
        assert_eq!(signs(&config(&old, None)), "....");
        assert_eq!(signs(&config(&Value::Null, None)), "....");
    }
}
