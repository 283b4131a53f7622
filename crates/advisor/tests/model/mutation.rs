//! Deliberate mistakes, one at a time: each alters the inputs or the requests of a session as a mistake in its code would. The model
//! must find every one of them.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Action, FailurePolicy, ItemState, Phase, VirtPlatformConfigStatus},
};

use advisor::writing::Request;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mutation {
    /// The target is written whatever its fingerprint.
    LockSkipped,
    /// Edits of the spec are not noticed.
    GenerationForgotten,
    /// Every spec counts as edited.
    GenerationAlwaysNew,
    /// The first plan is never replaced.
    PlansOnce,
    /// A target is written before the status says that the item is InProgress.
    WritesBeforeRecording,
    /// A forced review is ignored.
    ForcedReviewIgnored,
    /// A conflict of a write is treated as a success.
    ConflictIsSuccess,
    /// A conflict of a status update is treated as a success.
    RecordConflictIsSuccess,
    /// The status is updated whatever version is stored.
    RecordsOverAnything,
    /// The configuration from the watch is not confirmed before a write.
    NotConfirmed,
    /// The failure policy is always Continue.
    AbortIgnored,
    /// The digest of an approval is ignored.
    ApprovalIgnored,
    /// A rejection is ignored.
    RejectionIgnored,
    /// The time from which on a plan may be applied is ignored.
    StartIgnored,
    /// Windows and ends of approvals are ignored.
    EndIgnored,
    /// A withdrawn approval is ignored.
    WithdrawalIgnored,
    /// DryRun is treated as Apply.
    DryRunIsApply,
    /// Ignore is treated as DryRun.
    IgnoreIgnored,
    /// The status does not record what was applied.
    AppliedForgotten,
    /// A write has no preconditions.
    PreconditionsDropped,
    /// A lost answer of a write is treated as a failure.
    SilenceIsFailure,
    /// A write contains a field that was not planned.
    WritesSomethingElse,
    /// Changes of the input are not noticed.
    InputNotWatched,
    /// The record of a plan is not created.
    RecordSkipped,
    /// A record is taken to say that something else was there before.
    RecordMisread,
    /// A plan that begins or ends a restore is applied without a review.
    RestoreNotReviewed,
    /// A restore does not give up what its field manager owns.
    OwnershipKept,
    /// The status does not record when a node was last updated.
    ProgressForgotten,
    /// What the nodes of a pool run is not read.
    RunningNotRead,
    /// The other MachineConfigs of a pool are not read.
    SourcesNotRead,
    /// A process that was stopped sends what it was about to send.
    StopIgnored,
}

impl Mutation {
    /// The configuration as a session with this mistake sees it.
    pub(crate) fn view(self, mut config: VirtPlatformConfig) -> VirtPlatformConfig {
        let phase = config.status.as_ref().and_then(|status| status.phase);
        match (self, &mut config.status) {
            (Mutation::LockSkipped, _) => config.spec.bypass_optimistic_lock = true,
            (Mutation::GenerationForgotten, Some(status)) => {
                config.metadata.generation = status.observed_generation.or(config.metadata.generation);
            }
            (Mutation::GenerationAlwaysNew, Some(status)) => status.observed_generation = None,
            (Mutation::ForcedReviewIgnored, Some(status)) => {
                status.conditions.retain(|condition| condition.type_ != "InputDependencyDrift");
            }
            (Mutation::RestoreNotReviewed, Some(status)) if phase == Some(Phase::Drafting) => {
                status.restore.clone_from(&config.spec.restore);
            }
            (Mutation::AbortIgnored, _) => config.spec.failure_policy = FailurePolicy::Continue,
            (Mutation::ApprovalIgnored, _) => config.spec.approval = None,
            (Mutation::RejectionIgnored, _) => {
                config.spec.approval.iter_mut().for_each(|approval| approval.rejected = None);
            }
            (Mutation::StartIgnored, _) => {
                config.spec.approval.iter_mut().for_each(|approval| approval.not_before = None);
            }
            (Mutation::EndIgnored, _) => {
                config
                    .spec
                    .approval
                    .iter_mut()
                    .for_each(|approval| (approval.not_after, approval.window) = (None, None));
            }
            (Mutation::WithdrawalIgnored, _) if phase == Some(Phase::InProgress) => config.spec.action = Action::Apply,
            (Mutation::DryRunIsApply, _) if config.spec.action == Action::DryRun => config.spec.action = Action::Apply,
            (Mutation::IgnoreIgnored, _) if config.spec.action == Action::Ignore => config.spec.action = Action::DryRun,
            _ => {}
        }
        config
    }

    /// Alters a status that is stored.
    pub(crate) fn alter_status(self, status: &mut VirtPlatformConfigStatus) {
        if self == Mutation::ProgressForgotten {
            let pools = status.items.iter_mut().flat_map(|item| &mut item.rollout);
            pools.for_each(|pool| pool.last_progress = None);
        }
        if self == Mutation::AppliedForgotten {
            for item in status.items.iter_mut().filter(|item| item.state == ItemState::Completed) {
                item.applied_fingerprint = None;
            }
        }
    }

    /// Whether an update of the status is skipped.
    pub(crate) fn skips_update(self, old: Option<&VirtPlatformConfig>, new: &VirtPlatformConfig) -> bool {
        let under_way = |config: Option<&VirtPlatformConfig>| {
            let items = config.and_then(|config| config.status.as_ref()).map(|status| status.items.as_slice());
            let is_under_way = |item: &&api::virt_platform_config::Item| {
                item.state == ItemState::InProgress && item.applied_fingerprint.is_none()
            };
            items.unwrap_or_default().iter().filter(is_under_way).count()
        };
        self == Mutation::WritesBeforeRecording && under_way(Some(new)) > under_way(old)
    }

    /// Alters a request to a target.
    pub(crate) fn alter_request(self, request: &mut Request) {
        if let (Mutation::OwnershipKept, Request::Patch(steps)) = (self, &mut *request) {
            let is_given_up = |step: &Value| step["path"].as_str().is_some_and(|path| path.contains("managedFields"));
            steps.as_array_mut().into_iter().for_each(|steps| steps.retain(|step| !is_given_up(step)));
        }
        let Request::Apply(fields) = request else { return };
        match self {
            Mutation::PreconditionsDropped => {
                let metadata = fields["metadata"].as_object_mut().unwrap();
                metadata.remove("uid");
                metadata.remove("resourceVersion");
            }
            Mutation::WritesSomethingElse => {
                fields["data"]["more"] = "x".into();
            }
            _ => {}
        }
    }
}
