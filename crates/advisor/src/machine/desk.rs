//! The status while it is being worked on.

use api::{
    bounds,
    virt_platform_config::{Item, Options, Phase, VirtPlatformConfigStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Decision, Event, Next, Observed, Saying, after,
    conditions::{condition, conditions},
};
use crate::{Plan, Planner, fingerprint::sha256};

/// The mark of a plan that must be reviewed again, whatever `action` says.
pub(super) const FORCED_REVIEW: &str = "InputDependencyDrift";
pub(super) const UPGRADE: &str = "UpgradeAvailable";

/// Bytes that all diffs of a status may have together: what etcd takes is 1.5 MiB, and the rest needs room too.
const DIFFS: usize = 768 * 1024;

pub(super) struct Desk<'a> {
    pub(super) observed: &'a Observed<'a>,
    pub(super) status: VirtPlatformConfigStatus,
}

impl<'a> Desk<'a> {
    pub(super) fn new(observed: &'a Observed<'a>) -> Self {
        let mut status = observed.status.clone();
        status.impact_severity.get_or_insert(observed.profile.about().impact);
        // Recorded before anything else is done: from then on, what a former leader still sends is refused.
        status.leader_epoch = observed.epoch.or(status.leader_epoch);
        Desk { observed, status }
    }

    /// The profile with the options of the spec, if they are valid.
    pub(super) fn planner(&self) -> Option<Box<dyn Planner>> {
        self.observed.profile.resolve(self.observed.spec.options.as_ref()).ok()
    }

    pub(super) fn recorded_phase(&self) -> Option<Phase> {
        self.status.phase
    }

    /// Whether the conditions do not know of the phase that they were written with. Then somebody else wrote it, or took the
    /// conditions out.
    pub(super) fn contradicts_itself(&self) -> bool {
        self.status.phase.is_some_and(|phase| !self.is_marked(phase.as_str()))
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

    /// The options as they count: empty ones are none.
    pub(super) fn options(&self) -> Option<Options> {
        self.observed.spec.options.clone().filter(|options| *options != Options::default())
    }

    /// Whether the plan was drawn up with other options.
    pub(super) fn options_changed(&self) -> bool {
        self.options() != self.status.applied_options
    }

    /// The digest that the approval names, if it is not that of the current plan.
    pub(super) fn mismatched_approval(&self) -> Option<&str> {
        let named = self.observed.spec.approval.as_ref()?.plan_digest.as_deref()?;
        (self.status.plan_digest.as_deref() != Some(named)).then_some(named)
    }

    pub(super) fn on(&mut self, event: Event, saying: impl Into<Saying>) {
        self.say(after(self.phase(), event), saying);
    }

    pub(super) fn say(&mut self, phase: Phase, saying: impl Into<Saying>) {
        let mut saying = saying.into();
        saying.message = cut(saying.message, bounds::MESSAGE);
        self.status.phase = Some(phase);
        self.status.observed_generation = Some(self.observed.generation);
        self.status.conditions =
            conditions(&self.status.conditions, phase, &saying, self.observed.generation, &self.now());
    }

    /// Sets a condition that is not a phase.
    pub(super) fn mark(&mut self, kind: &str, holds: bool, reason: &str, message: &str) {
        let message = cut(message.to_owned(), bounds::MESSAGE);
        let before = &self.status.conditions;
        let new = condition(before, kind, holds, reason, &message, self.observed.generation, &self.now());
        match self.status.conditions.iter_mut().find(|known| known.type_ == kind) {
            Some(known) => *known = new,
            None => self.status.conditions.push(new),
        }
    }

    pub(super) fn is_marked(&self, kind: &str) -> bool {
        self.status.conditions.iter().any(|known| known.type_ == kind && known.status == "True")
    }

    /// Takes a mark back that asked for a person, because there was one.
    pub(super) fn acknowledge(&mut self, kind: &str) {
        if self.is_marked(kind) {
            self.mark(kind, false, "Acknowledged", "User acknowledged input dependency change");
        }
    }

    /// Takes a plan into the status.
    pub(super) fn adopt(&mut self, plan: &Plan) {
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
    }

    /// The snapshot of what the items left behind.
    pub(super) fn take_snapshot(&mut self) {
        self.status.source_snapshot_hash = Some(snapshot(&self.status.items));
    }

    pub(super) fn rest(self) -> Decision {
        let recheck = self.observed.rhythm.recheck;
        self.next(Next::Rest(Some(recheck)))
    }

    pub(super) fn rest_until_available(self) -> Decision {
        let prerequisites = self.observed.rhythm.prerequisites;
        self.next(Next::Rest(Some(prerequisites)))
    }

    pub(super) fn next(mut self, next: Next) -> Decision {
        fit(&mut self.status);
        Decision { status: self.status, next }
    }
}

fn snapshot(items: &[Item]) -> String {
    let fingerprint = |item: &Item| item.applied_fingerprint.clone().or_else(|| item.source_fingerprint.clone());
    sha256(&serde_json::json!(items.iter().map(|item| (&item.name, fingerprint(item))).collect::<Vec<_>>()))
}

/// Cuts what is too long for the schema or for etcd: a status that is refused is a status nobody sees.
fn fit(status: &mut VirtPlatformConfigStatus) {
    let mut left = DIFFS;
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
        item.takes_over.truncate(bounds::SHORT_LIST);
        for taken in &mut item.takes_over {
            shorten(&mut taken.manager, bounds::MANAGER);
            taken.fields.truncate(bounds::FIELD_PATHS);
            taken.fields.iter_mut().for_each(|field| shorten(field, bounds::FIELD_PATH));
        }
        if let Some(detail) = &mut item.impact_detail {
            detail.pools.truncate(bounds::SHORT_LIST);
            let rendered = detail.pools.iter_mut().filter_map(|pool| pool.rendered.as_mut());
            rendered.for_each(|rendered| shorten(rendered, bounds::NAME));
        }
    }
    status.notes.truncate(bounds::SHORT_LIST);
    status.inputs.truncate(bounds::INPUTS);
    status.notes.iter_mut().for_each(|note| *note = cut(std::mem::take(note), bounds::NOTE));
    status.risks.truncate(bounds::SHORT_LIST);
    status.risks.iter_mut().for_each(|risk| risk.message = cut(std::mem::take(&mut risk.message), bounds::NOTE));
    for input in &mut status.inputs {
        input.value = input.value.take().map(|value| cut(value, bounds::INPUT_VALUE));
    }
}

/// At most so many bytes of a name.
fn shorten(name: &mut String, most: usize) {
    name.truncate(name.floor_char_boundary(most));
}

/// At most so many bytes, and a word where something is missing.
fn cut(mut text: String, most: usize) -> String {
    const MISSING: &str = "\n[cut: too long]";
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(MISSING.len())));
        text += MISSING;
    }
    text
}
