//! Deliberate mistakes, one at a time, made around the shipping code: each alters what a session is told, or what becomes of
//! what it asks for, in the way in which the mistake would. The model must notice every one of them.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Action, FailurePolicy, ItemState, Phase, VirtPlatformConfigStatus},
};

use advisor::writing::Do;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mutation {
    /// The target is written whatever its fingerprint.
    LockSkipped,
    /// Edits of the spec are not noticed.
    GenerationForgotten,
    /// Every spec counts as edited.
    GenerationAlwaysNew,
    /// The first plan is used for good.
    PlansOnce,
    /// A target is written before the item is recorded to be in progress.
    WritesBeforeRecording,
    /// A plan that must be reviewed again is taken for an ordinary one.
    ForcedReviewIgnored,
    /// A write that was refused as outdated is taken for done.
    ConflictIsSuccess,
    /// A status that was refused as outdated is taken for recorded.
    RecordConflictIsSuccess,
    /// The status is recorded over whatever is there.
    RecordsOverAnything,
    /// What a watch brought is taken for true.
    NotConfirmed,
    /// The failure policy is always Continue.
    AbortIgnored,
    /// Which plan was approved does not matter.
    ApprovalIgnored,
    /// What was begun is finished.
    WithdrawalIgnored,
    /// DryRun is as good as Apply.
    DryRunIsApply,
    /// Ignore is taken for DryRun.
    IgnoreIgnored,
    /// What was applied is not recorded.
    AppliedForgotten,
    /// A write does not say which version it is for.
    PreconditionsDropped,
    /// A write whose answer was lost has failed.
    SilenceIsFailure,
    /// What is written is not quite what was planned.
    WritesSomethingElse,
    /// A plan never notices that its input changed.
    InputNotWatched,
}

impl Mutation {
    /// A configuration as a session with this mistake sees it.
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
            (Mutation::AbortIgnored, _) => config.spec.failure_policy = FailurePolicy::Continue,
            (Mutation::ApprovalIgnored, _) => config.spec.approval = None,
            (Mutation::WithdrawalIgnored, _) if phase == Some(Phase::InProgress) => config.spec.action = Action::Apply,
            (Mutation::DryRunIsApply, _) if config.spec.action == Action::DryRun => config.spec.action = Action::Apply,
            (Mutation::IgnoreIgnored, _) if config.spec.action == Action::Ignore => config.spec.action = Action::DryRun,
            _ => {}
        }
        config
    }

    /// Alters what is recorded.
    pub(crate) fn recorded(self, status: &mut VirtPlatformConfigStatus) {
        if self == Mutation::AppliedForgotten {
            for item in status.items.iter_mut().filter(|item| item.state == ItemState::Completed) {
                item.applied_fingerprint = None;
            }
        }
    }

    /// Whether a status is not recorded, although it has to be.
    pub(crate) fn keeps_to_itself(self, old: Option<&VirtPlatformConfig>, new: &VirtPlatformConfig) -> bool {
        let under_way = |config: Option<&VirtPlatformConfig>| {
            let items = config.and_then(|config| config.status.as_ref()).map(|status| status.items.as_slice());
            let is_under_way = |item: &&api::virt_platform_config::Item| {
                item.state == ItemState::InProgress && item.applied_fingerprint.is_none()
            };
            items.unwrap_or_default().iter().filter(is_under_way).count()
        };
        self == Mutation::WritesBeforeRecording && under_way(Some(new)) > under_way(old)
    }

    /// Alters what is sent to a target.
    pub(crate) fn sent(self, request: &mut Do) {
        let Do::Apply(fields) = request else { return };
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
