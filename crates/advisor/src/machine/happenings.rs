//! What is worth telling about a change of status: one Kubernetes Event each.

use api::virt_platform_config::{Item, ItemState, Phase, VirtPlatformConfigStatus};

use super::drift_text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// Something for a person to look at.
    pub warning: bool,
    pub reason: String,
    pub note: String,
}

/// What happened between two statuses: the phase, the items that moved, and drift with who caused it.
pub fn happenings(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) -> Vec<Happening> {
    let mut happenings = Vec::new();
    for item in &after.items {
        let old = before.items.iter().find(|old| old.name == item.name);
        happenings.extend(of_item(old, item));
    }
    if let (old, Some(phase)) = (before.phase, after.phase)
        && old != Some(phase)
    {
        happenings.push(of_phase(old, phase, after));
    }
    happenings
}

fn of_phase(old: Option<Phase>, phase: Phase, status: &VirtPlatformConfigStatus) -> Happening {
    let own = status.conditions.iter().find(|condition| condition.type_ == phase.as_str());
    let message = own.map(|condition| condition.message.as_str()).unwrap_or_default();
    let from = old.map_or_else(String::new, |old| format!(" (was {old})"));
    Happening {
        warning: matches!(
            phase,
            Phase::PrerequisiteFailed | Phase::CompletedWithErrors | Phase::Failed | Phase::Drifted
        ),
        reason: own.map_or_else(|| phase.to_string(), |condition| condition.reason.clone()),
        note: format!("{phase}{from}: {message}"),
    }
}

fn of_item(old: Option<&Item>, item: &Item) -> Option<Happening> {
    let target = format!("{} '{}'", item.target_ref.kind, item.target_ref.name);
    let message = item.message.as_deref().unwrap_or_default();
    let known = old.and_then(drift_text::recorded);
    if let Some(note) = drift_text::recorded(item).filter(|note| known.as_ref() != Some(note)) {
        return Some(Happening { warning: true, reason: "ItemDrifted".into(), note });
    }
    let moved = old.is_none_or(|old| old.state != item.state);
    let (warning, reason) = match item.state {
        _ if !moved => return None,
        ItemState::Pending => return None,
        ItemState::InProgress => (false, "ItemApplying"),
        ItemState::Completed => (false, "ItemCompleted"),
        ItemState::Failed => (true, "ItemFailed"),
    };
    Some(Happening { warning, reason: reason.into(), note: format!("{}: {target}: {message}", item.name) })
}
