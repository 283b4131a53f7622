//! What the checker remembers beside the state of the world, and the rules that every single step has to keep.
//!
//! Nothing here asks the marks and fingerprints of the code under test: what was planned, seen and approved is noted when it
//! happens.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Action, FailurePolicy, Item, ItemState, Operation, Phase, VirtPlatformConfigStatus},
};
use serde_json::Value;

use advisor::writing::Do;

use crate::{
    hashed::Hashed,
    operator::{Core, Deed, Run, Stage},
    profile::Part,
};

/// A rule that a step has broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// 1: a write without an approval.
    NotApproved,
    /// 1: a write of something that the status does not say is being written.
    NotAsRecorded,
    /// 1: more than one item was written after an edit that the session had not heard of.
    KeptOnUnheard,
    /// 2: a plan that was redrafted because an input changed was written without a new generation.
    NotReviewedAgain,
    /// 3: a change that was made since the plan was drawn up was written over.
    WrittenOver,
    /// A write although the approval names another plan.
    OtherPlanApproved,
    /// A write after a failure under Abort.
    NotAborted,
    /// A write of what follows from an input that this session has not seen.
    FromMemory,
    /// The status says that something is applied, and it never was.
    NeverApplied,
    /// A crash or a lost answer changes what is there in the end.
    OtherEnd,
}

#[derive(Debug, Clone, Hash, PartialEq, Default)]
pub(crate) struct History {
    /// What the targets held when the plan in the status was drawn up.
    planned_over: Option<Hashed<Vec<String>>>,
    /// A plan is being redrafted because an input changed.
    is_redrafting: bool,
    /// The generation at which a plan was redrafted because an input changed.
    pub(crate) redrafted_at: Option<i64>,
    /// The item that was written since an edit of the spec that its session had not heard of.
    pub(crate) unheard: Option<usize>,
}

impl History {
    /// The administrator has edited the spec.
    pub(crate) fn edited(&mut self) {
        self.unheard = None;
    }

    /// Takes note of a step of the operator, and says which rule it broke.
    pub(crate) fn note(&mut self, stage: &Stage, before: &Core, after: &Core, deed: &Deed) -> Option<Broken> {
        let run = before.run.as_ref()?;
        match deed {
            Deed::Nothing => None,
            Deed::Recorded => self.recorded(stage, run, &before.cluster.config, &after.cluster.config),
            Deed::Wrote { at, request } => self.wrote(stage, run, before, *at, request),
        }
    }

    fn recorded(
        &mut self,
        stage: &Stage,
        run: &Run,
        before: &VirtPlatformConfig,
        after: &VirtPlatformConfig,
    ) -> Option<Broken> {
        let nothing = VirtPlatformConfigStatus::default();
        let (old, new) = (before.status.as_ref().unwrap_or(&nothing), after.status.as_ref()?);
        let in_force = |phase| matches!(phase, Some(Phase::Completed | Phase::CompletedWithErrors | Phase::Drifted));
        let same_generation = old.observed_generation == new.observed_generation;
        // Nothing but an input leads from what is in force to a new draft while nobody edits the spec.
        if in_force(old.phase) && new.phase == Some(Phase::Drafting) && same_generation {
            self.is_redrafting = true;
        }
        let drawn = run.drawn.as_ref().map(|drawn| drawn.held.clone());
        if new.reverts.len() > old.reverts.len() {
            // The decision to revert drift is made over what a plan shows then.
            self.planned_over.clone_from(&drawn);
        }
        if old.plan_digest != new.plan_digest {
            self.planned_over.clone_from(&drawn);
            let was_read = old.phase == Some(Phase::ReviewRequired) && old.applied_options == new.applied_options;
            let by_input = self.is_redrafting || (was_read && old.inputs != new.inputs);
            let has_changes = new.phase != Some(Phase::Completed);
            self.redrafted_at = new.observed_generation.filter(|_| by_input && has_changes);
        }
        if new.phase != Some(Phase::Drafting) {
            self.is_redrafting = false;
        }
        for item in new.items.iter().filter(|item| item.applied_fingerprint.is_some()) {
            let known = old.items.iter().find(|known| known.name == item.name);
            let is_new = old.plan_digest != new.plan_digest || known.is_none_or(|it| it.applied_fingerprint.is_none());
            if is_new && !shown(stage, run, item) {
                return Some(Broken::NeverApplied);
            }
        }
        None
    }

    fn wrote(&mut self, stage: &Stage, run: &Run, before: &Core, at: usize, request: &Do) -> Option<Broken> {
        let (part, stored, target) = (stage.toy.parts[at], &before.cluster.config, before.cluster.targets[at].object());
        let nothing = VirtPlatformConfigStatus::default();
        let told = run.told();
        let told_status = told.status.as_ref().unwrap_or(&nothing);
        if told.spec.action != Action::Apply || told_status.observed_generation != told.metadata.generation {
            return Some(Broken::NotApproved);
        }
        let status = stored.status.as_ref().unwrap_or(&nothing);
        let item = status.items.iter().find(|item| item.name == part.name());
        let Some(item) = item.filter(|item| is_as_recorded(item, request) && status.phase == Some(Phase::InProgress))
        else {
            return Some(Broken::NotAsRecorded);
        };
        // An edit may come between the record and the write. Then this one item is written, and no other.
        if stored.metadata.generation != told.metadata.generation && self.unheard.replace(at).is_some_and(|it| it != at)
        {
            return Some(Broken::KeptOnUnheard);
        }
        let named = told.spec.approval.as_ref().and_then(|approval| approval.plan_digest.as_ref());
        if named.is_some_and(|named| told_status.plan_digest.as_ref() != Some(named)) {
            return Some(Broken::OtherPlanApproved);
        }
        if told.spec.failure_policy == FailurePolicy::Abort
            && status.items.iter().any(|item| item.state == ItemState::Failed)
        {
            return Some(Broken::NotAborted);
        }
        if self.redrafted_at.is_some_and(|generation| told.metadata.generation.unwrap_or_default() <= generation) {
            return Some(Broken::NotReviewedAgain);
        }
        if !told.spec.bypass_optimistic_lock && self.is_changed(part, at, item, target) {
            return Some(Broken::WrittenOver);
        }
        let input = run.drawn.as_ref().map(|drawn| format!("for {}", drawn.input));
        if part == Part::Derived && written(request) != input.as_deref() {
            return Some(Broken::FromMemory);
        }
        None
    }

    /// Whether a target no longer holds what the plan was drawn up over, nor what the plan makes of it.
    fn is_changed(&self, part: Part, at: usize, item: &Item, target: Option<&Value>) -> bool {
        let held = part.managed(target);
        let planned = self.planned_over.as_ref().map(|planned| planned[at].as_str());
        // A removal that needs two requests is half done after the first.
        let mut without = target.cloned();
        if let Some(data) = without.as_mut().and_then(|object| object.get_mut("data")?.as_object_mut()) {
            data.remove("extra");
        }
        planned != Some(&held) && !covers(item, without.as_ref())
    }
}

/// Whether the session was shown the target in the state that the item is about.
fn shown(stage: &Stage, run: &Run, item: &Item) -> bool {
    let Some(at) = stage.toy.parts.iter().position(|part| part.name() == item.name) else { return false };
    run.shown.iter().any(|(shown, object)| *shown == at && covers(item, object.as_deref()))
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

/// Whether a request does what the item says, and the item says that it is being done.
fn is_as_recorded(item: &Item, request: &Do) -> bool {
    let is_under_way = item.state == ItemState::InProgress && item.applied_fingerprint.is_none();
    let is_same = match request {
        Do::Apply(fields) => {
            let mut fields = fields.clone();
            let metadata = fields["metadata"].as_object_mut();
            metadata
                .into_iter()
                .for_each(|it| it.retain(|name, _| !["uid", "resourceVersion"].contains(&name.as_str())));
            item.operation == Operation::Apply && fields.as_object() == item.desired_state.as_ref()
        }
        Do::Delete { .. } => item.operation == Operation::Delete,
        Do::Patch(steps) => steps.as_array().into_iter().flatten().filter(|step| step["op"] == "remove").all(|step| {
            let path = step["path"].as_str().unwrap_or_default();
            item.removes.iter().any(|removed| format!("/{}", removed.replace('.', "/")) == path)
        }),
        Do::Read | Do::End(_) | Do::Later => false,
    };
    is_under_way && is_same
}

fn written(request: &Do) -> Option<&str> {
    let Do::Apply(fields) = request else { return None };
    fields["data"]["value"].as_str()
}
