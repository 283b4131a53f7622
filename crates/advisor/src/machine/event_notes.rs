//! What people should know about a change of the status: one Kubernetes Event each.

use api::virt_platform_config::{Item, ItemState, Phase, VirtPlatformConfigStatus};

use super::drift_text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNote {
    /// Whether a person should look at it.
    pub warning: bool,
    pub reason: String,
    pub note: String,
}

/// The difference between two statuses: the phase, the items whose state changed, and drift with its cause.
pub fn event_notes(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) -> Vec<EventNote> {
    let mut notes = Vec::new();
    for item in &after.items {
        let old = before.items.iter().find(|old| old.name == item.name);
        notes.extend(of_item(old, item));
    }
    if let (old, Some(phase)) = (before.phase, after.phase)
        && old != Some(phase)
    {
        notes.push(of_phase(old, phase, after));
    }
    notes
}

fn of_phase(old: Option<Phase>, phase: Phase, status: &VirtPlatformConfigStatus) -> EventNote {
    let own = status.conditions.iter().find(|condition| condition.type_ == phase.as_str());
    let message = own.map(|condition| condition.message.as_str()).unwrap_or_default();
    let from = old.map_or_else(String::new, |old| format!(" (was {old})"));
    EventNote {
        warning: matches!(
            phase,
            Phase::PrerequisiteFailed | Phase::CompletedWithErrors | Phase::Failed | Phase::Drifted
        ),
        reason: own.map_or_else(|| phase.to_string(), |condition| condition.reason.clone()),
        note: format!("{phase}{from}: {message}"),
    }
}

fn of_item(old: Option<&Item>, item: &Item) -> Option<EventNote> {
    let target = format!("{} '{}'", item.target_ref.kind, item.target_ref.name);
    let message = item.message.as_deref().unwrap_or_default();
    let known = old.and_then(drift_text::recorded);
    if let Some(note) = drift_text::recorded(item).filter(|note| known.as_ref() != Some(note)) {
        return Some(EventNote { warning: true, reason: "ItemDrifted".into(), note });
    }
    let moved = old.is_none_or(|old| old.state != item.state);
    let (warning, reason) = match item.state {
        _ if !moved => return None,
        ItemState::Pending => return None,
        ItemState::InProgress => (false, "ItemApplying"),
        ItemState::Completed => (false, "ItemCompleted"),
        ItemState::Failed => (true, "ItemFailed"),
    };
    Some(EventNote { warning, reason: reason.into(), note: format!("{}: {target}: {message}", item.name) })
}
