//! Conflicts between profiles that want different values for one field. The first profile to apply the field keeps it; the other one
//! is refused with a message, so that they do not overwrite each other in turns.

#[cfg(test)]
mod tests;

use api::virt_platform_config::{Item, Operation, TakeOver};
use serde_json::{Value, json};

use crate::{
    ObjectRef, ProfileInfo, Refusal, field_manager,
    fields::{self, Manager, Path},
    ownership::is_significant,
};

/// Why an item may not be applied to an object: another profile owns a field that the item would change, remove or delete. `taken`
/// lists whose fields the dry run has taken over.
pub fn conflict(
    about: &ProfileInfo,
    target: &ObjectRef,
    item: &Item,
    live: Option<&Value>,
    taken: &[TakeOver],
) -> Option<Refusal> {
    let managers = live.map(fields::managers).unwrap_or_default();
    let taken = taken.iter().filter(|taken| is_other_profile(about, item, &taken.manager));
    let mut lost: Vec<(&str, Vec<String>)> = managers
        .iter()
        .filter(|manager| is_applied_by_another_profile(about, item, manager))
        .map(|manager| (manager.name.as_str(), lost(item, manager, &managers, live)))
        .chain(taken.map(|taken| (taken.manager.as_str(), taken.fields.clone())))
        .filter(|(_, fields)| !fields.is_empty())
        .collect();
    lost.sort();
    let manager = lost.first()?.0;
    let mut fields: Vec<String> =
        lost.iter().filter(|(name, _)| *name == manager).flat_map(|(_, it)| it.clone()).collect();
    fields.sort();
    fields.dedup();
    Some(Refusal::ProfileConflict {
        target: target.to_string(),
        profile: about.name,
        manager: manager.to_owned(),
        fields,
    })
}

/// The fields that a manager has applied and that the item would change, remove or delete.
pub(crate) fn lost_by(manager: &str, item: &Item, live: Option<&Value>) -> Vec<String> {
    let managers = live.map(fields::managers).unwrap_or_default();
    let is_it = |known: &&Manager| known.name == manager && known.operation == "Apply" && known.subresource.is_empty();
    managers.iter().filter(is_it).flat_map(|manager| lost(item, manager, &managers, live)).collect()
}

/// The profile of a field manager, for people.
pub(crate) fn display_name(manager: &str) -> String {
    match field_manager::profile(manager) {
        Some(profile) => format!("profile '{profile}'"),
        None => "a profile that an earlier version applied".to_owned(),
    }
}

/// The fields of a manager that would no longer be as it has applied them.
fn lost(item: &Item, manager: &Manager, managers: &[Manager], live: Option<&Value>) -> Vec<String> {
    let Some(live) = live else { return Vec::new() };
    if item.operation == Operation::Delete {
        return manager.leaves.iter().filter(|leaf| is_significant(leaf)).map(Path::to_string).collect();
    }
    let desired = json!(item.desired_state);
    let set = fields::set_by(&desired);
    let owned = || managers.iter().flat_map(|manager| &manager.leaves);
    // A map of which somebody owns a part, or an empty map, is not owned as a whole.
    let is_whole = |leaf: &Path| {
        let is_empty = leaf.find(live).and_then(Value::as_object).is_some_and(|map| map.is_empty());
        !is_empty && !owned().any(|other| other != leaf && other.is_within(leaf))
    };
    let is_changed = |leaf: &Path| {
        // Entries of a list that is merged by key stay if they are not mentioned.
        let wanted = leaf.find(&desired);
        let is_set = set.iter().any(|path| leaf.is_within(path) || (path.is_within(leaf) && is_whole(leaf)));
        is_set && wanted.is_some() && wanted != leaf.find(live)
    };
    let removes: Vec<Path> = item.removes.iter().map(|path| Path::parsed(path)).collect();
    let is_removed = |leaf: &Path| {
        removes
            .iter()
            .any(|path| path.find(live).is_some() && (leaf.is_within(path) || (path.is_within(leaf) && is_whole(leaf))))
    };
    manager.leaves.iter().filter(|leaf| is_changed(leaf) || is_removed(leaf)).map(Path::to_string).collect()
}

/// Fields whose ownership changes between profiles without a change of value: the item gives them up and another profile keeps them,
/// or another profile has set the wanted value already. Without this write, later changes and removals would go wrong.
pub fn handovers(about: &ProfileInfo, item: &Item, live: Option<&Value>) -> Vec<String> {
    let Some(live) = live.filter(|_| item.operation == Operation::Apply) else { return Vec::new() };
    let ours = fields::applied_by(live, field_manager::of_item(item));
    let set = fields::set_by(&json!(item.desired_state));
    let is_among = |leaf: &Path, paths: &[Path]| paths.iter().any(|path| path.overlaps(leaf));
    let mut found = Vec::new();
    let managers = fields::managers(live);
    for manager in managers.iter().filter(|manager| is_applied_by_another_profile(about, item, manager)) {
        for leaf in &manager.leaves {
            let how = match (is_among(leaf, &ours), is_among(leaf, &set)) {
                (true, false) => "left to",
                (false, true) => "shared with",
                _ => continue,
            };
            found.push(format!("{leaf} is {how} {}", display_name(&manager.name)));
        }
    }
    found
}

fn is_applied_by_another_profile(about: &ProfileInfo, item: &Item, manager: &Manager) -> bool {
    let is_applied = manager.operation == "Apply" && manager.subresource.is_empty();
    is_applied && is_other_profile(about, item, &manager.name)
}

/// The former field manager of all profiles counts as the profile's own.
fn is_other_profile(about: &ProfileInfo, item: &Item, manager: &str) -> bool {
    field_manager::is_of_a_profile(manager)
        && manager != field_manager::of_item(item)
        && Some(manager) != about.former_manager
}
