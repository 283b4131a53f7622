//! The conditions Ready, Reconciling and Stalled, which tools for every kind of object read: kstatus (Flux, Helm, kpt), `kubectl
//! wait`. They follow from the rest of the status and from the pools, and no decision follows from them. `docs/gitops.md` says what
//! each means.

use api::{
    bounds,
    virt_platform_config::{Action, Item, ItemState, Phase},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    conditions::{DRIFT_DETECTED, with_status},
    drift_text, remediation,
    status_draft::StatusDraft,
};
use crate::truncate::cut;

pub(super) const READY: &str = "Ready";
pub const RECONCILING: &str = "Reconciling";
pub const STALLED: &str = "Stalled";

/// The reason of a rollout that does not get on.
pub const NO_PROGRESS: &str = "NoProgress";

struct Health {
    ready: &'static str,
    /// Which of the other two conditions is True.
    also: Option<&'static str>,
    reason: String,
    message: String,
}

impl Health {
    fn ready(reason: &str, message: String) -> Health {
        Health { ready: "True", also: None, reason: reason.to_owned(), message }
    }

    fn reconciling(ready: &'static str, reason: &str, message: String) -> Health {
        Health { ready, also: Some(RECONCILING), reason: reason.to_owned(), message }
    }

    fn stalled(reason: &str, message: String) -> Health {
        Health { ready: "False", also: Some(STALLED), reason: reason.to_owned(), message }
    }
}

/// Sets the three conditions, behind all others.
pub(super) fn update(draft: &mut StatusDraft<'_>) {
    // The stored status says nothing about a spec that is not acted on yet. Readers compare the generations.
    if draft.spec_is_new() {
        return;
    }
    let Health { ready, also, reason, message } = health(draft);
    let message = cut(message, bounds::MESSAGE);
    let (generation, now, before) = (draft.observed.generation, draft.now(), &draft.status.conditions);
    let ready = with_status(before, READY, ready, &reason, &message, generation, &now);
    let also = also.map(|kind| with_status(before, kind, "True", &reason, &message, generation, &now));
    draft.status.conditions.retain(|known| ![READY, RECONCILING, STALLED].contains(&known.type_.as_str()));
    draft.status.conditions.extend([ready].into_iter().chain(also));
}

fn health(draft: &StatusDraft<'_>) -> Health {
    let (phase, items) = (draft.phase(), &draft.status.items);
    let own = draft.status.condition(phase.as_str());
    let (reason, message) =
        own.map_or((phase.as_str(), String::new()), |own| (own.reason.as_str(), own.message.clone()));
    match phase {
        Phase::Pending | Phase::Drafting => Health::reconciling("Unknown", "Drafting", message),
        Phase::ReviewRequired if draft.observed.spec.action != Action::Apply => Health::ready("PlanReady", message),
        Phase::Scheduled => Health::ready("Scheduled", message),
        Phase::InProgress => {
            let awaited = tell(items, ItemState::InProgress).or_else(|| tell(items, ItemState::Pending));
            let awaited = awaited.unwrap_or(message);
            match is_stuck(draft) {
                true => Health::stalled(NO_PROGRESS, awaited),
                false => Health::reconciling("False", "Applying", awaited),
            }
        }
        Phase::Completed | Phase::Ignored => Health::ready(reason, message),
        Phase::CompletedWithUpgrade => Health::ready("UpgradeAvailable", message),
        Phase::CompletedWithErrors => Health::stalled(reason, tell(items, ItemState::Failed).unwrap_or(message)),
        Phase::Drifted => {
            // Any other reason says why drift is not reverted, and its message names what drifted.
            if reason != DRIFT_DETECTED {
                return Health::stalled(reason, message);
            }
            let told: Vec<_> = items.iter().filter_map(drift_text::recorded).collect();
            let message = if told.is_empty() { message } else { format!("{message}: {}", told.join(", ")) };
            match remediation::is_active(draft) {
                true => Health::reconciling("False", reason, message),
                false => Health::stalled(reason, message),
            }
        }
        Phase::ReviewRequired | Phase::PrerequisiteFailed | Phase::Failed => Health::stalled(reason, message),
    }
}

/// Whether a pool does not get on. If no pool was looked at now, what was told before still holds.
fn is_stuck(draft: &StatusDraft<'_>) -> bool {
    let is_told = |known: &Condition| known.type_ == STALLED && known.status == "True" && known.reason == NO_PROGRESS;
    draft.is_stuck.unwrap_or_else(|| {
        draft.observed.status.phase == Some(Phase::InProgress) && draft.status.conditions.iter().any(is_told)
    })
}

/// The messages of the items in a state, each with the name of its item.
fn tell(items: &[Item], state: ItemState) -> Option<String> {
    let told = |item: &Item| Some(format!("{}: {}", item.name, item.message.as_deref()?));
    let told: Vec<_> = items.iter().filter(|item| item.state == state).filter_map(told).collect();
    (!told.is_empty()).then(|| told.join("; "))
}
