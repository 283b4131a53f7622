//! What people should know about a change of the status: one Kubernetes Event each.

use api::virt_platform_config::{Item, ItemState, Phase, PoolRollout, RolloutState, VirtPlatformConfigStatus};

use super::{
    drift_text,
    health::{NO_PROGRESS, STALLED},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNote {
    /// Whether a person should look at it.
    pub warning: bool,
    pub reason: String,
    pub note: String,
}

/// The difference between two statuses: the phase, the items whose state changed, drift with its cause, and what pools do.
pub fn event_notes(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) -> Vec<EventNote> {
    let mut notes = Vec::new();
    for item in &after.items {
        let old = before.items.iter().find(|old| old.name == item.name);
        notes.extend(of_item(old, item));
        notes.extend(of_pools(old, item));
    }
    notes.extend(of_stall(before, after));
    if let (old, Some(phase)) = (before.phase, after.phase)
        && old != Some(phase)
    {
        notes.push(of_phase(old, phase, after));
    }
    notes
}

fn of_phase(old: Option<Phase>, phase: Phase, status: &VirtPlatformConfigStatus) -> EventNote {
    let own = status.condition(phase.as_str());
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

/// What the pools of an item do now that they did not do before.
fn of_pools(old: Option<&Item>, item: &Item) -> Vec<EventNote> {
    let before = old.map(|old| &old.rollout[..]).unwrap_or_default();
    let changed = item.rollout.iter().filter_map(|pool| {
        let old = before.iter().find(|old| old.pool == pool.pool);
        // That a pool has not begun goes without saying.
        let is_news = old
            .map_or(pool.state != RolloutState::Pending, |old| old.state != pool.state || has_new_culprit(old, pool));
        is_news.then(|| of_pool(&item.name, old, pool))
    });
    let is_left = |old: &&PoolRollout| !item.rollout.iter().any(|pool| pool.pool == old.pool);
    // The last pool is told by the state of the item.
    let is_waiting = item.state == ItemState::InProgress && !item.rollout.is_empty();
    let done = before.iter().filter(|old| is_waiting && is_left(old)).map(|old| EventNote {
        warning: false,
        reason: "RolloutDone".into(),
        note: format!("{}: MachineConfigPool '{}' has the change on all of its nodes", item.name, old.pool),
    });
    changed.chain(done).collect()
}

/// Whether a pool names a node in trouble that it did not name before. Its words about a node change with every attempt.
fn has_new_culprit(old: &PoolRollout, new: &PoolRollout) -> bool {
    let nodes = |pool: &PoolRollout| -> Vec<String> {
        let parts = pool.cause.as_deref().unwrap_or_default().split("Node ").skip(1);
        parts.filter_map(|part| Some(part.split_once(" is reporting:")?.0.to_owned())).collect()
    };
    let known = nodes(old);
    nodes(new).iter().any(|node| !known.contains(node))
}

fn of_pool(item: &str, old: Option<&PoolRollout>, pool: &PoolRollout) -> EventNote {
    let was = old.filter(|old| old.state != pool.state);
    let was = was.map_or_else(String::new, |old| format!("was {}, ", old.state));
    let count = |count: Option<i32>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let (updated, total) = (count(pool.updated), count(pool.total));
    let cause = pool.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
    let state = pool.state;
    EventNote {
        warning: !matches!(state, RolloutState::Pending | RolloutState::Updating),
        reason: format!("Rollout{state}"),
        note: format!(
            "{item}: MachineConfigPool '{}' is {state} ({was}{updated} of {total} nodes updated){cause}",
            pool.pool
        ),
    }
}

/// A pool in trouble that does not get on keeps its state, so only the condition says it.
fn of_stall(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) -> Option<EventNote> {
    let stall = |status: &VirtPlatformConfigStatus| {
        let mut conditions = status.conditions.iter();
        conditions.find(|known| known.type_ == STALLED && known.reason == NO_PROGRESS).cloned()
    };
    match (stall(before), stall(after)) {
        (None, Some(new)) => {
            let is_told = |pool: &PoolRollout| pool.state == RolloutState::NoProgress;
            let by_pool = after.items.iter().flat_map(|item| &item.rollout).any(is_told);
            (!by_pool).then(|| EventNote { warning: true, reason: "RolloutNoProgress".into(), note: new.message })
        }
        (Some(_), None) => after.items.iter().find_map(|item| {
            let old = before.items.iter().find(|old| old.name == item.name)?;
            item.rollout.iter().find_map(|pool| gets_on(&item.name, &old.rollout, pool))
        }),
        _ => None,
    }
}

/// A pool of which a node was updated, and which keeps its state: a pool in trouble.
fn gets_on(item: &str, before: &[PoolRollout], pool: &PoolRollout) -> Option<EventNote> {
    let is_it = |old: &&PoolRollout| old.pool == pool.pool && old.state == pool.state && old.updated < pool.updated;
    before.iter().find(is_it)?;
    let count = |count: Option<i32>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let (updated, total) = (count(pool.updated), count(pool.total));
    Some(EventNote {
        warning: false,
        reason: "RolloutProgress".into(),
        note: format!(
            "{item}: MachineConfigPool '{}' gets on again and is still {} ({updated} of {total} nodes updated)",
            pool.pool, pool.state
        ),
    })
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
