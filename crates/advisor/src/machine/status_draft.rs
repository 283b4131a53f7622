//! The new status while a decision is being made.

use std::time::Duration;

use api::{
    bounds,
    virt_platform_config::{Item, Options, Phase, VirtPlatformConfigStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Decision, Explanation, Observed, Outcome, Request, Step, Trigger, after,
    conditions::{condition, conditions},
    health,
};
use crate::{
    Plan, Planner,
    fingerprint::sha256,
    restore,
    truncate::{self, cut, shorten},
};

/// The condition of a plan that must be reviewed again, whatever `action` says.
pub const FORCED_REVIEW: &str = "InputDependencyDrift";
pub(super) const UPGRADE: &str = "UpgradeAvailable";

/// The most bytes that all diffs of a status may have together: etcd takes 1.5 MiB, and the other fields need room too.
const MAX_DIFFS: usize = 768 * 1024;

pub(super) struct StatusDraft<'a> {
    pub(super) observed: &'a Observed<'a>,
    pub(super) status: VirtPlatformConfigStatus,
    /// Whether a pool that is waited for does not get on. None if no pool was looked at.
    pub(super) is_stuck: Option<bool>,
}

impl<'a> StatusDraft<'a> {
    pub(super) fn new(observed: &'a Observed<'a>) -> Self {
        let mut status = observed.status.clone();
        status.impact_severity.get_or_insert(observed.profile.about().impact);
        // Stored before anything else is done: from then on, the API server refuses writes of a former leader.
        status.leader_epoch = observed.epoch.or(status.leader_epoch);
        StatusDraft { observed, status, is_stuck: None }
    }

    /// What plans for the spec, if its options are valid.
    pub(super) fn planner(&self) -> Option<Box<dyn Planner>> {
        restore::planner(self.observed.profile, self.observed.spec).ok()
    }

    /// Whether the condition of the phase is not True. Then somebody else has changed the phase or removed the conditions.
    pub(super) fn is_inconsistent(&self) -> bool {
        self.status.phase.is_some_and(|phase| !self.has_condition(phase.as_str()))
    }

    pub(super) fn phase(&self) -> Phase {
        self.status.phase.unwrap_or(Phase::Pending)
    }

    pub(super) fn now(&self) -> Time {
        Time(self.observed.now)
    }

    /// Whether the spec was edited since it was last acted on.
    pub(super) fn spec_is_new(&self) -> bool {
        self.status.observed_generation != Some(self.observed.generation)
    }

    /// The options of the spec. Empty options are none.
    pub(super) fn options(&self) -> Option<Options> {
        self.observed.spec.options.clone().filter(|options| *options != Options::default())
    }

    /// Whether the plan was made with other options, or for another purpose.
    pub(super) fn options_changed(&self) -> bool {
        self.options() != self.status.applied_options || self.restore_changed()
    }

    /// Whether the plan was made to restore something else than the spec asks for now.
    pub(super) fn restore_changed(&self) -> bool {
        self.observed.spec.restore != self.status.restore
    }

    /// Whether an approved plan is applied although its targets changed. An approval that names a plan does not extend to another.
    pub(super) fn may_overwrite(&self) -> bool {
        let names_plan = self.observed.spec.approval.as_ref().is_some_and(|approval| approval.plan_digest.is_some());
        self.observed.spec.bypass_optimistic_lock && !names_plan
    }

    pub(super) fn transition(&mut self, trigger: Trigger, explanation: impl Into<Explanation>) {
        self.enter_phase(after(self.phase(), trigger), explanation);
    }

    pub(super) fn enter_phase(&mut self, phase: Phase, explanation: impl Into<Explanation>) {
        let mut explanation = explanation.into();
        explanation.message = cut(explanation.message, bounds::MESSAGE);
        self.status.phase = Some(phase);
        self.status.observed_generation = Some(self.observed.generation);
        self.status.conditions =
            conditions(&self.status.conditions, phase, &explanation, self.observed.generation, &self.now());
    }

    /// Sets a condition that is not a phase.
    pub(super) fn set_condition(&mut self, kind: &str, holds: bool, reason: &str, message: &str) {
        let message = cut(message.to_owned(), bounds::MESSAGE);
        let before = &self.status.conditions;
        let new = condition(before, kind, holds, reason, &message, self.observed.generation, &self.now());
        match self.status.conditions.iter_mut().find(|known| known.type_ == kind) {
            Some(known) => *known = new,
            None => self.status.conditions.push(new),
        }
    }

    pub(super) fn has_condition(&self, kind: &str) -> bool {
        self.status.true_condition(kind).is_some()
    }

    /// Clears a condition that asks for a person, because a person has answered.
    pub(super) fn acknowledge(&mut self, kind: &str) {
        if self.has_condition(kind) {
            self.set_condition(kind, false, "Acknowledged", "User acknowledged input dependency change");
        }
    }

    /// Copies a plan into the status.
    pub(super) fn adopt_plan(&mut self, plan: &Plan) {
        let status = &mut self.status;
        status.items = plan.items.iter().map(|planned| planned.item.clone()).collect();
        status.inputs = plan.inputs.clone();
        status.notes = plan.notes.clone();
        status.risks = plan.risks.clone();
        status.plan_digest = Some(plan.digest.clone());
        status.source_snapshot_hash = Some(plan.snapshot.clone());
        status.operator_version = Some(self.observed.version.to_owned());
        status.impact_severity = Some(plan.severity);
        self.status.applied_options = self.options();
        self.status.restore.clone_from(&self.observed.spec.restore);
    }

    /// Updates the snapshot from what the items have applied.
    pub(super) fn update_snapshot(&mut self) {
        self.status.source_snapshot_hash = Some(snapshot(&self.status.items));
    }

    pub(super) fn requeue_for_recheck(self) -> Decision {
        let recheck = self.observed.intervals.recheck;
        self.requeue_after(recheck)
    }

    pub(super) fn requeue_for_prerequisites(self) -> Decision {
        let prerequisites = self.observed.intervals.prerequisites;
        self.requeue_after(prerequisites)
    }

    pub(super) fn requeue_after(self, wait: Duration) -> Decision {
        self.finish(Step::Done(Outcome { requeue_after: Some(wait) }))
    }

    pub(super) fn await_change(self) -> Decision {
        self.finish(Step::Done(Outcome { requeue_after: None }))
    }

    pub(super) fn decide_again(self) -> Decision {
        self.finish(Step::DecideAgain)
    }

    pub(super) fn request(self, request: Request) -> Decision {
        self.finish(Step::Send(request))
    }

    fn finish(mut self, step: Step) -> Decision {
        fit(&mut self.status);
        health::update(&mut self);
        Decision { status: self.status, step }
    }
}

fn snapshot(items: &[Item]) -> String {
    let fingerprint = |item: &Item| item.applied_fingerprint.clone().or_else(|| item.source_fingerprint.clone());
    sha256(&serde_json::json!(items.iter().map(|item| (&item.name, fingerprint(item))).collect::<Vec<_>>()))
}

/// Truncates what is too long for the schema or for etcd: nobody would see a status that the API server refuses.
fn fit(status: &mut VirtPlatformConfigStatus) {
    let mut left = MAX_DIFFS;
    for item in &mut status.items {
        item.message = item.message.take().map(|message| cut(message, bounds::MESSAGE));
        if let Some(diff) = item.diff.take() {
            let diff = cut(diff, bounds::DIFF.min(left));
            left -= diff.len().min(left);
            item.diff = Some(diff);
        }
        if let Some(by) = &mut item.drifted_by {
            shorten(&mut by.manager, bounds::MANAGER);
        }
        // The first two are too long only in a refused plan, of which nothing is applied.
        for paths in [&mut item.managed_fields, &mut item.removes, &mut item.changed_since] {
            truncate::field_paths(paths);
        }
        truncate::take_overs(&mut item.takes_over);
        truncate::rollout(&mut item.rollout);
        item.impact_detail.iter_mut().for_each(truncate::impact_detail);
    }
    truncate::notes(&mut status.notes);
    truncate::risks(&mut status.risks);
    status.inputs.truncate(bounds::INPUTS);
    for input in &mut status.inputs {
        input.value = input.value.take().map(|value| cut(value, bounds::INPUT_VALUE));
    }
}
