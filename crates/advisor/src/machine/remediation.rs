//! Reverting drift without a person, where a person asked for that; and giving up when somebody else does the same.

use std::time::Duration;

use api::virt_platform_config::{Action, ItemState, Phase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Decision,
    Event::DriftReverted,
    Next, Saying,
    desk::Desk,
    drift_text,
    execution::{enter, note_rendered, note_unnoticed},
    inputs,
};
use crate::{Plan, Refusal};

const WINDOW: Duration = Duration::from_secs(10 * 60);

/// How long after one revert the next may follow, by how many there were.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(30), Duration::from_secs(2 * 60)];

const STALLED: &str = "RemediationStalled";

pub(super) fn remediate(mut desk: Desk<'_>, plan: &Plan) -> Decision {
    let spec = desk.observed.spec;
    let is_drift = |kind: &str| kind == Phase::Drifted.as_str();
    let stalled = desk.status.conditions.iter().any(|known| is_drift(&known.type_) && known.reason == STALLED);
    if spec.action != Action::Apply || !spec.bypass_optimistic_lock || stalled || desk.mismatched_approval().is_some() {
        return desk.rest();
    }
    let now = desk.observed.now;
    let age = |time: &Time| Duration::try_from(now.duration_since(time.0)).unwrap_or_default();
    // A time that is yet to come was written by a clock that is wrong.
    desk.status.reverts.iter_mut().for_each(|time| time.0 = time.0.min(now));
    desk.status.reverts.retain(|time| age(time) < WINDOW);
    let Some(pause) = PAUSES.get(desk.status.reverts.len()) else {
        let what: Vec<_> = desk.status.items.iter().filter_map(drift_text::recorded).collect();
        let message = format!(
            "Drift was reverted {} times within ten minutes and is back ({}). The operator does not fight: find \
             out who changes it, then edit the spec to start over.",
            PAUSES.len(),
            what.join(", ")
        );
        desk.say(Phase::Drifted, Saying::because(STALLED, message));
        return desk.rest();
    };
    if let Some(left) =
        desk.status.reverts.last().and_then(|last| pause.checked_sub(age(last))).filter(|left| !left.is_zero())
    {
        return desk.next(Next::Rest(Some(left)));
    }
    // What a new version would add was shown, and nobody approved it.
    desk.status.items.retain(|item| !inputs::is_proposed(item));
    let mut refused = None;
    for item in desk.status.items.iter_mut().filter(|item| item.drifted_by.is_some()) {
        let planned = plan.items.iter().find(|planned| planned.item.name == item.name);
        // What would come out differently now is for a person to look at.
        let Some(planned) = planned.filter(|planned| inputs::is_same(&planned.item, item)) else { continue };
        // What another profile has set meanwhile is not fought over.
        if let Some(refusal @ Refusal::ProfileConflict { .. }) = &planned.refusal {
            refused = Some(refusal);
            continue;
        }
        item.applied_fingerprint = None;
        item.waiting_since = None;
        item.drifted_by = None;
        item.source_fingerprint = Some(planned.fingerprint.clone());
        let rolled_out = item.clone();
        note_rendered(item, planned);
        note_unnoticed(item, &rolled_out);
        enter(item, ItemState::Pending, "Re-applying to fix drift (bypassOptimisticLock)".into(), &now);
    }
    if desk.status.items.iter().all(|item| item.state != ItemState::Pending) {
        if let Some(refusal) = refused {
            desk.say(Phase::Drifted, Saying::because(refusal.reason(), refusal.to_string()));
        }
        return desk.rest();
    }
    let now = desk.now();
    desk.status.reverts.push(now);
    desk.on(DriftReverted, "");
    desk.next(Next::Continue)
}
