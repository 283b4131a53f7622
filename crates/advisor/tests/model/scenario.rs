//! A scenario: where the exploration starts, and what may happen how often.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{
        Action, Approval, ApprovalMode, FailurePolicy, ORIGINAL, Profile, Rejection, Restore, VirtPlatformConfigSpec,
    },
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde_json::json;

use crate::{
    cluster::ForeignEdit,
    profile::{ToyProfile, other_options},
};

/// How often something may happen.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub(crate) edits: u8,
    pub(crate) foreign_edits: u8,
    /// Changes of the input; the second one changes it back.
    pub(crate) inputs: u8,
    pub(crate) lost_answers: u8,
    pub(crate) crashes: u8,
    pub(crate) refusals: u8,
    /// Reads that are answered from the state before the last change.
    pub(crate) stale_reads: u8,
    /// Days that pass.
    pub(crate) days: u8,
    /// How often the process is stopped before a request, and continues.
    pub(crate) stops: u8,
}

/// An edit of the spec by the administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Edit {
    DryRun,
    Apply,
    /// Apply, and only the plan that is in the status.
    ApplyNamed,
    /// Apply, and only some other plan.
    ApplyOther,
    Ignore,
    Options,
    Bypass,
    Policy,
    /// Apply from the first day on.
    From,
    /// Apply until the first day.
    Until,
    /// Apply on the first day only.
    Window,
    /// The plan in the status is rejected.
    Reject,
    /// What was there originally is to be restored, or the profile is to be applied again.
    Restore,
}

impl Edit {
    /// The configuration after the edit. None if the edit changes nothing.
    pub(crate) fn apply(self, config: &VirtPlatformConfig) -> Option<VirtPlatformConfig> {
        let mut new = config.clone();
        let spec = &mut new.spec;
        let risks = config.status.iter().flat_map(|status| &status.risks).map(|risk| risk.name.clone());
        let accepted_risks: Vec<String> = risks.collect();
        let named = |digest: &str| {
            let (plan_digest, accepted_risks) = (Some(digest.to_owned()), accepted_risks.clone());
            Some(Approval { plan_digest, accepted_risks, ..Approval::default() })
        };
        match self {
            Edit::DryRun => spec.action = Action::DryRun,
            Edit::Ignore => spec.action = Action::Ignore,
            Edit::Apply => {
                spec.action = Action::Apply;
                spec.approval = None;
            }
            Edit::ApplyNamed => {
                spec.action = Action::Apply;
                spec.approval = named(config.status.as_ref()?.plan_digest.as_ref()?);
            }
            Edit::ApplyOther => {
                spec.action = Action::Apply;
                spec.approval = named(&"0".repeat(64));
            }
            Edit::Options => spec.options = if spec.options.is_some() { None } else { other_options() },
            Edit::Bypass => spec.bypass_optimistic_lock = !spec.bypass_optimistic_lock,
            Edit::From => {
                spec.action = Action::Apply;
                spec.approval.get_or_insert_default().not_before = Some(Time(day(1)));
            }
            Edit::Until => {
                spec.action = Action::Apply;
                spec.approval.get_or_insert_default().not_after = Some(Time(day(1)));
            }
            Edit::Window => {
                spec.action = Action::Apply;
                let window = json!({"days": ["Tuesday"], "start": "13:46", "duration": "24h"});
                spec.approval.get_or_insert_default().window = serde_json::from_value(window).ok();
            }
            Edit::Reject => {
                let plan_digest = config.status.as_ref()?.plan_digest.clone()?;
                spec.approval.get_or_insert_default().rejected = Some(Rejection { plan_digest, reason: None });
            }
            Edit::Restore => {
                spec.restore = if spec.restore.is_some() { None } else { Some(Restore { record: ORIGINAL.into() }) };
            }
            Edit::Policy => {
                let is_abort = spec.failure_policy == FailurePolicy::Abort;
                spec.failure_policy = if is_abort { FailurePolicy::Continue } else { FailurePolicy::Abort };
            }
        }
        new.metadata.generation = new.metadata.generation.map(|generation| generation + 1);
        (new.spec != config.spec).then_some(new)
    }
}

/// A Monday, 13:46:40 in UTC, and the days after it.
pub(crate) fn day(number: u8) -> Timestamp {
    Timestamp::from_second(1_000_000 + 24 * 60 * 60 * i64::from(number)).unwrap()
}

/// Whether an approval lets nodes be rebooted on this day. The code under test computes it from calendars and time zones.
pub(crate) fn is_open(approval: Option<&Approval>, number: u8) -> bool {
    approval.is_none_or(|approval| {
        (approval.not_before.is_none() || number >= 1)
            && (approval.not_after.is_none() || number < 1)
            && (approval.window.is_none() || number == 1)
    })
}

/// Where the exploration starts: with this spec, before the first session or after it has settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) action: Action,
    pub(crate) bypass: bool,
    pub(crate) policy: FailurePolicy,
    pub(crate) is_settled: bool,
}

impl Start {
    pub(crate) fn config(&self) -> VirtPlatformConfig {
        let mut spec = VirtPlatformConfigSpec::new(Profile::Example);
        spec.action = self.action;
        spec.bypass_optimistic_lock = self.bypass;
        spec.failure_policy = self.policy;
        let mut config = VirtPlatformConfig::new(Profile::Example.as_str(), spec);
        config.metadata.uid = Some("config".into());
        config.metadata.generation = Some(1);
        config
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) profile: &'static ToyProfile,
    pub(crate) approval_mode: ApprovalMode,
    pub(crate) starts: Vec<Start>,
    pub(crate) bounds: Bounds,
    pub(crate) edits: &'static [Edit],
    pub(crate) foreign_edits: &'static [ForeignEdit],
}
