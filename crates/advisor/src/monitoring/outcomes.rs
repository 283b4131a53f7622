//! What a recorded status says about approvals and about the time that a plan took, from the difference to the status before.

use std::time::Duration;

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Action, Phase, VirtPlatformConfigStatus},
};
use k8s_openapi::jiff::Timestamp;

use crate::machine::{EXPIRED, MISMATCH, NOT_ACCEPTED, PLAN_STALE, REJECTED, RISKS_NOT_ACCEPTED, WINDOW_INVALID};

/// What came of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalResult {
    /// The plan is applied, or will be at its time.
    Approved,
    /// The approval names another plan.
    Mismatch,
    /// A person turned the plan down.
    Rejected,
    /// The approval had ended.
    Expired,
    /// The targets are no longer as the plan found them.
    Stale,
    /// Items that overwrite what others changed, or risks, were not accepted.
    NotAccepted,
    /// The maintenance window cannot be understood.
    WindowInvalid,
}

impl ApprovalResult {
    pub const ALL: &'static [ApprovalResult] = &[
        ApprovalResult::Approved,
        ApprovalResult::Mismatch,
        ApprovalResult::Rejected,
        ApprovalResult::Expired,
        ApprovalResult::Stale,
        ApprovalResult::NotAccepted,
        ApprovalResult::WindowInvalid,
    ];

    /// The value of the label `result`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ApprovalResult::Approved => "approved",
            ApprovalResult::Mismatch => "mismatch",
            ApprovalResult::Rejected => "rejected",
            ApprovalResult::Expired => "expired",
            ApprovalResult::Stale => "stale",
            ApprovalResult::NotAccepted => "not_accepted",
            ApprovalResult::WindowInvalid => "window_invalid",
        }
    }
}

/// What came of an approval with this status, if anything did. An approval that is edited and refused again counts again.
pub fn approval(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfig) -> Option<ApprovalResult> {
    let nothing = VirtPlatformConfigStatus::default();
    let (spec, after) = (&after.spec, after.status.as_ref().unwrap_or(&nothing));
    if after.approval.is_some() && after.approval != before.approval {
        return Some(ApprovalResult::Approved);
    }
    let reason = review_reason(after)?;
    if review_reason(before) == Some(reason) && before.observed_generation == after.observed_generation {
        return None;
    }
    match reason {
        REJECTED => Some(ApprovalResult::Rejected),
        MISMATCH => Some(ApprovalResult::Mismatch),
        EXPIRED => Some(ApprovalResult::Expired),
        NOT_ACCEPTED | RISKS_NOT_ACCEPTED => Some(ApprovalResult::NotAccepted),
        WINDOW_INVALID => Some(ApprovalResult::WindowInvalid),
        // Also a plan that nobody has approved goes out of date, and one that is being applied was counted when it began.
        PLAN_STALE if spec.action == Action::Apply && before.phase != Some(Phase::InProgress) => {
            Some(ApprovalResult::Stale)
        }
        _ => None,
    }
}

fn review_reason(status: &VirtPlatformConfigStatus) -> Option<&str> {
    let own = |kind: &str| kind == Phase::ReviewRequired.as_str();
    let mut conditions = status.conditions.iter();
    let condition = conditions.find(|known| own(&known.type_) && known.status == "True")?;
    (status.phase == Some(Phase::ReviewRequired)).then_some(condition.reason.as_str())
}

/// How long phase InProgress lasted, if it ends with this status.
pub fn apply_duration(
    before: &VirtPlatformConfigStatus,
    after: &VirtPlatformConfigStatus,
    now: Timestamp,
) -> Option<Duration> {
    let ends = before.phase == Some(Phase::InProgress) && after.phase != Some(Phase::InProgress);
    let start = before.entered(Phase::InProgress).filter(|_| ends)?;
    Some(Duration::try_from(now.duration_since(start.0)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use api::virt_platform_config::{ApprovalMode, GrantedApproval, Profile, VirtPlatformConfigSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn status(phase: Phase, reason: &str, generation: i64) -> VirtPlatformConfigStatus {
        let condition = Condition {
            type_: phase.as_str().into(),
            status: "True".into(),
            reason: reason.into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: at(100),
        };
        VirtPlatformConfigStatus {
            phase: Some(phase),
            conditions: vec![condition],
            observed_generation: Some(generation),
            ..VirtPlatformConfigStatus::default()
        }
    }

    fn granted(status: VirtPlatformConfigStatus, digest: &str) -> VirtPlatformConfigStatus {
        let approval = GrantedApproval {
            plan_digest: digest.into(),
            mode: ApprovalMode::Reviewed,
            generation: 1,
            time: at(0),
            approved_by: None,
            accepted_risks: Vec::new(),
            reason: None,
        };
        VirtPlatformConfigStatus { approval: Some(approval), ..status }
    }

    #[test]
    fn an_approval_counts_when_it_is_acted_on_or_refused_and_again_only_when_it_was_edited() {
        use ApprovalResult::*;
        let review = |reason: &str, generation| status(Phase::ReviewRequired, reason, generation);
        let progress = || status(Phase::InProgress, "InProgress", 2);
        let cases = [
            ("applied", review("ReviewRequired", 1), granted(progress(), "a"), Action::Apply, Some(Approved)),
            ("goes on", granted(progress(), "a"), granted(progress(), "a"), Action::Apply, None),
            ("another plan", granted(progress(), "a"), granted(progress(), "b"), Action::Apply, Some(Approved)),
            ("no answer yet", review("ReviewRequired", 1), review("ReviewRequired", 2), Action::DryRun, None),
            ("digest asked for", review("ReviewRequired", 1), review("ApprovalRequired", 2), Action::Apply, None),
            ("mismatch", review("ReviewRequired", 1), review(MISMATCH, 2), Action::Apply, Some(Mismatch)),
            ("same mismatch", review(MISMATCH, 2), review(MISMATCH, 2), Action::Apply, None),
            ("next mismatch", review(MISMATCH, 2), review(MISMATCH, 3), Action::Apply, Some(Mismatch)),
            ("rejected", review("ReviewRequired", 1), review(REJECTED, 2), Action::DryRun, Some(Rejected)),
            ("expired", status(Phase::Scheduled, "Scheduled", 2), review(EXPIRED, 2), Action::Apply, Some(Expired)),
            ("overwrites", review("ReviewRequired", 1), review(NOT_ACCEPTED, 2), Action::Apply, Some(NotAccepted)),
            ("risks", review("ReviewRequired", 1), review(RISKS_NOT_ACCEPTED, 2), Action::Apply, Some(NotAccepted)),
            ("bad window", review("ReviewRequired", 1), review(WINDOW_INVALID, 2), Action::Apply, Some(WindowInvalid)),
            ("stale", review("ReviewRequired", 1), review(PLAN_STALE, 2), Action::Apply, Some(Stale)),
            ("stale, not approved", review("ReviewRequired", 1), review(PLAN_STALE, 1), Action::DryRun, None),
            ("stale on the way", progress(), review(PLAN_STALE, 2), Action::Apply, None),
        ];
        for (case, before, after, action, expected) in cases {
            let spec = VirtPlatformConfigSpec { action, ..VirtPlatformConfigSpec::new(Profile::Example) };
            let mut config = VirtPlatformConfig::new("example-profile", spec);
            config.status = Some(after);
            assert_eq!(approval(&before, &config), expected, "{case}");
        }
    }

    #[test]
    fn a_plan_was_applied_when_the_phase_that_applies_it_ends() {
        let progress = status(Phase::InProgress, "InProgress", 1);
        let now = Timestamp::from_second(160).unwrap();
        for (phase, seconds) in [
            (Phase::Completed, Some(60)),
            (Phase::CompletedWithErrors, Some(60)),
            (Phase::Failed, Some(60)),
            (Phase::InProgress, None),
        ] {
            let after = status(phase, "x", 1);
            assert_eq!(apply_duration(&progress, &after, now), seconds.map(Duration::from_secs), "{phase}");
        }
        let completed = status(Phase::Completed, "x", 1);
        assert_eq!(apply_duration(&completed, &status(Phase::Drifted, "x", 1), now), None);
        let earlier = Timestamp::from_second(40).unwrap();
        assert_eq!(apply_duration(&progress, &completed, earlier), Some(Duration::ZERO), "a clock that went back");
    }
}
