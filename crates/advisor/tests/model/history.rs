//! What the checker remembers beside the system, and the rules for every single step.
//!
//! Nothing here uses the conditions and fingerprints of the code under test: plans, reads and approvals are noted when they happen.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{
        Action, ApprovalMode, FailurePolicy, Item, ItemState, Operation, Phase, VirtPlatformConfigStatus,
    },
};
use serde_json::Value;

use advisor::writing::Request;

use crate::{
    cluster::ModelCluster,
    driver::{ClusterChange, Driver},
    hashed::Hashed,
    profile::Part,
    scenario::is_open,
    system::{RunningSession, System},
    target::Target,
};

/// The rule that a step has violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Violation {
    /// 1: a write without an approval.
    NotApproved,
    /// 1: a write of something else than the item that is InProgress in the status.
    NotAsRecorded,
    /// 1: more than one item was written after an edit that the session did not know.
    WrittenAfterEdit,
    /// 2: a plan that was made again because an input changed was written without a new generation.
    NotReviewedAgain,
    /// 3: a write over a change that was made after the plan.
    Overwritten,
    /// A write although the approval names another plan.
    OtherPlanApproved,
    /// A write of a plan that was rejected.
    Rejected,
    /// A write before the time of its plan.
    TooEarly,
    /// A change of nodes was started outside of its window, or after the end of its approval.
    OutsideWindow,
    /// A write of a plan that has no record.
    NotRecorded,
    /// 1: a write after the process was stopped, and the configuration was not confirmed since.
    WrittenAfterStop,
    /// A write after a failure under Abort.
    NotAborted,
    /// A write that follows from an input that this session has not read.
    FromOldFacts,
    /// The status says that an item is applied, and it never was.
    NeverApplied,
    /// A crash or a lost answer leads to another end.
    DifferentEnd,
    /// A write that begins or ends a restore, and nobody has read its plan.
    RestoreNotRead,
    /// A restore has written something else than what was there originally.
    NotOriginal,
}

#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct History {
    /// The managed fields of the targets before anything was applied.
    original: Hashed<Vec<String>>,
    /// The managed fields of the targets when the plan in the status was made.
    planned_over: Option<Hashed<Vec<String>>>,
    /// A plan is being made again because an input changed.
    is_redrafting: bool,
    /// The generation at which a plan was made again because an input changed.
    pub(crate) redrafted_at: Option<i64>,
    /// The item that was written after an edit of the spec that its session did not know.
    pub(crate) written_after_edit: Option<usize>,
    /// The generation at which a plan was made that begins or ends a restore.
    restore_changed_at: Option<i64>,
}

impl History {
    pub(crate) fn new(cluster: &ModelCluster) -> Self {
        History {
            original: Hashed::new(cluster.targets.iter().map(Target::held).collect()),
            planned_over: None,
            is_redrafting: false,
            redrafted_at: None,
            written_after_edit: None,
            restore_changed_at: None,
        }
    }

    /// The administrator has edited the spec.
    pub(crate) fn edited(&mut self) {
        self.written_after_edit = None;
    }

    /// Notes a step of the operator. Returns the rule that it has violated.
    pub(crate) fn note(
        &mut self,
        driver: &Driver,
        before: &System,
        after: &System,
        change: &ClusterChange,
    ) -> Option<Violation> {
        let run = before.run.as_ref()?;
        match change {
            ClusterChange::None | ClusterChange::RecordChanged => None,
            ClusterChange::StatusUpdated => {
                self.status_updated(driver, run, &before.cluster.config, &after.cluster.config)
            }
            ClusterChange::TargetWritten { at, request } => self.target_written(driver, run, before, *at, request),
        }
    }

    fn status_updated(
        &mut self,
        driver: &Driver,
        run: &RunningSession,
        before: &VirtPlatformConfig,
        after: &VirtPlatformConfig,
    ) -> Option<Violation> {
        let nothing = VirtPlatformConfigStatus::default();
        let (old, new) = (before.status.as_ref().unwrap_or(&nothing), after.status.as_ref()?);
        let is_applied = |phase| matches!(phase, Some(Phase::Completed | Phase::CompletedWithErrors | Phase::Drifted));
        let same_generation = old.observed_generation == new.observed_generation;
        // Without an edit of the spec, only an input leads from an applied plan to a new one.
        if is_applied(old.phase) && new.phase == Some(Phase::Drafting) && same_generation {
            self.is_redrafting = true;
        }
        let basis = run.plan_basis.as_ref().map(|basis| basis.held.clone());
        if new.reverts.len() > old.reverts.len() {
            // The decision to revert drift is based on the plan at that time.
            self.planned_over.clone_from(&basis);
        }
        if old.plan_digest != new.plan_digest {
            self.planned_over.clone_from(&basis);
            let was_read = old.phase == Some(Phase::ReviewRequired) && old.applied_options == new.applied_options;
            let by_input = self.is_redrafting || (was_read && old.inputs != new.inputs);
            let has_changes = new.phase != Some(Phase::Completed);
            self.redrafted_at = new.observed_generation.filter(|_| by_input && has_changes);
        }
        if old.restore != new.restore {
            let has_changes = new.phase != Some(Phase::Completed);
            self.restore_changed_at = new.observed_generation.filter(|_| has_changes);
        }
        if new.phase != Some(Phase::Drafting) {
            self.is_redrafting = false;
        }
        for item in new.items.iter().filter(|item| item.applied_fingerprint.is_some()) {
            let known = old.items.iter().find(|known| known.name == item.name);
            let is_new = old.plan_digest != new.plan_digest || known.is_none_or(|it| it.applied_fingerprint.is_none());
            if is_new && !was_seen(driver, run, item) {
                return Some(Violation::NeverApplied);
            }
        }
        None
    }

    fn target_written(
        &mut self,
        driver: &Driver,
        run: &RunningSession,
        before: &System,
        at: usize,
        request: &Request,
    ) -> Option<Violation> {
        let (part, stored, target) =
            (driver.profile.parts[at], &before.cluster.config, before.cluster.targets[at].object());
        let nothing = VirtPlatformConfigStatus::default();
        let confirmed = run.confirmed();
        let confirmed_status = confirmed.status.as_ref().unwrap_or(&nothing);
        if confirmed.spec.action != Action::Apply
            || confirmed_status.observed_generation != confirmed.metadata.generation
        {
            return Some(Violation::NotApproved);
        }
        if run.was_stopped {
            return Some(Violation::WrittenAfterStop);
        }
        let status = stored.status.as_ref().unwrap_or(&nothing);
        let item = status.items.iter().find(|item| item.name == part.name());
        let Some(item) = item.filter(|item| is_as_recorded(item, request) && status.phase == Some(Phase::InProgress))
        else {
            return Some(Violation::NotAsRecorded);
        };
        let record = status.record.as_ref().and_then(|named| before.cluster.record(&named.name));
        if record.is_none_or(|record| status.plan_digest.as_ref() != Some(&record.plan_digest)) {
            return Some(Violation::NotRecorded);
        }
        // An edit may come between the update of the status and the write. Then this one item is written, and no other.
        if stored.metadata.generation != confirmed.metadata.generation
            && self.written_after_edit.replace(at).is_some_and(|it| it != at)
        {
            return Some(Violation::WrittenAfterEdit);
        }
        let approval = confirmed.spec.approval.as_ref();
        let (named, current) =
            (approval.and_then(|approval| approval.plan_digest.as_ref()), confirmed_status.plan_digest.as_ref());
        if (named.is_some() || driver.approval_mode == ApprovalMode::Reviewed) && named != current {
            return Some(Violation::OtherPlanApproved);
        }
        let rejected = approval.and_then(|approval| approval.rejected.as_ref());
        if rejected.is_some_and(|rejected| Some(&rejected.plan_digest) == current) {
            return Some(Violation::Rejected);
        }
        if approval.is_some_and(|approval| approval.not_before.is_some()) && run.decided_on < 1 {
            return Some(Violation::TooEarly);
        }
        let is_begun = matches!(request, Request::Apply(_) | Request::Delete { .. });
        if part == Part::Nodes && is_begun && !is_open(approval, run.decided_on) {
            return Some(Violation::OutsideWindow);
        }
        if confirmed.spec.failure_policy == FailurePolicy::Abort
            && status.items.iter().any(|item| item.state == ItemState::Failed)
        {
            return Some(Violation::NotAborted);
        }
        if self.redrafted_at.is_some_and(|generation| confirmed.metadata.generation.unwrap_or_default() <= generation) {
            return Some(Violation::NotReviewedAgain);
        }
        if !confirmed.spec.bypass_optimistic_lock && self.is_changed(part, at, item, target) {
            return Some(Violation::Overwritten);
        }
        let is_new_generation = |generation| confirmed.metadata.generation.unwrap_or_default() > generation;
        if self.restore_changed_at.is_some_and(|generation| named.is_none() && !is_new_generation(generation)) {
            return Some(Violation::RestoreNotRead);
        }
        if status.restore.is_some() {
            return (!self.is_original(part, at, request, target)).then_some(Violation::NotOriginal);
        }
        let input = run.plan_basis.as_ref().map(|basis| format!("for {}", basis.input));
        if part == Part::Derived && written(request) != input.as_deref() {
            return Some(Violation::FromOldFacts);
        }
        None
    }

    /// Whether a write leads to what was there originally.
    fn is_original(&self, part: Part, at: usize, request: &Request, target: Option<&Value>) -> bool {
        let original = self.original[at].as_str();
        match request {
            Request::Apply(fields) => {
                [original, part.managed(target).as_str()].contains(&part.managed(Some(fields)).as_str())
            }
            Request::Delete { .. } => original == "absent",
            Request::Patch(_) | Request::Read => true,
        }
    }

    /// Whether the managed fields of a target are neither as the plan found them nor as the plan sets them.
    fn is_changed(&self, part: Part, at: usize, item: &Item, target: Option<&Value>) -> bool {
        let held = part.managed(target);
        let planned = self.planned_over.as_ref().map(|planned| planned[at].as_str());
        // A removal needs two requests and is half done after the first.
        let mut without = target.cloned();
        if let Some(data) = without.as_mut().and_then(|object| object.get_mut("data")?.as_object_mut()) {
            data.remove("extra");
        }
        planned != Some(&held) && !covers(item, target) && !covers(item, without.as_ref())
    }
}

/// Whether the session has read the target as the item says.
fn was_seen(driver: &Driver, run: &RunningSession, item: &Item) -> bool {
    let Some(at) = driver.profile.parts.iter().position(|part| part.name() == item.name) else { return false };
    run.seen.iter().any(|(position, object)| *position == at && covers(item, object.as_deref()))
}

fn covers(item: &Item, live: Option<&Value>) -> bool {
    let (Operation::Apply, Some(live)) = (item.operation, live) else { return live.is_none() };
    let desired = item.desired_state.as_ref();
    let has = |section: &str| {
        let wanted = desired.and_then(|desired| desired.get(section)?.as_object());
        wanted.is_none_or(|wanted| wanted.iter().all(|(name, value)| live[section].get(name) == Some(value)))
    };
    has("data") && has("spec")
}

/// Whether the item is InProgress and the request does what the item says.
fn is_as_recorded(item: &Item, request: &Request) -> bool {
    let is_under_way = item.state == ItemState::InProgress && item.applied_fingerprint.is_none();
    let is_same = match request {
        Request::Apply(fields) => {
            let mut fields = fields.clone();
            let metadata = fields["metadata"].as_object_mut();
            metadata
                .into_iter()
                .for_each(|it| it.retain(|name, _| !["uid", "resourceVersion"].contains(&name.as_str())));
            item.operation == Operation::Apply && fields.as_object() == item.desired_state.as_ref()
        }
        Request::Delete { .. } => item.operation == Operation::Delete,
        Request::Patch(steps) => {
            steps.as_array().into_iter().flatten().filter(|step| step["op"] == "remove").all(|step| {
                let path = step["path"].as_str().unwrap_or_default();
                // A restore gives up what its field manager owns; who owns what in the end is checked there.
                path.starts_with("/metadata/managedFields/")
                    || item.removes.iter().any(|removed| format!("/{}", removed.replace('.', "/")) == path)
            })
        }
        Request::Read => false,
    };
    is_under_way && is_same
}

fn written(request: &Request) -> Option<&str> {
    let Request::Apply(fields) = request else { return None };
    fields["data"]["value"].as_str()
}
