//! The way back: what has to be done to an object so that it is as records say it was before.

use api::{
    virt_platform_config::{Operation, TargetRef},
    virt_platform_plan_record::{Leaf, RecordedItem},
};
use serde_json::{Map, Value, json};

use super::leaves::content;
use crate::{
    Change,
    fields::{self, Manager, Path},
    ownership::is_nobody_elses,
};

/// How an object is restored, and what a reviewer has to know about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restored {
    /// None if there is nothing to do, or nothing that could be done.
    pub change: Option<Change>,
    /// Fields that are neither as the plan left them nor as they were before: somebody has changed them since.
    pub changed_since: Vec<Path>,
    /// The object is not the one that the plan changed: it was deleted since, and perhaps created again.
    pub replaced: bool,
    /// The object was deleted, and a plan has created it again since. Only what was done since then is taken back.
    pub created_again: bool,
    /// Fields whose values were not recorded. They stay as they are.
    pub not_recorded: Vec<Path>,
    /// Fields that were not there before, and that others have applied too since. They stay, and are given up.
    pub shared: Vec<Path>,
}

/// Restores an object to what it was before these items of one target, from the newest to the oldest. `now` is the object as it is.
/// The change has to be made under the field manager of the newest item: only that one can give its fields up.
pub fn restored(now: Option<&Value>, items: &[&RecordedItem]) -> Restored {
    let known = if now.is_some() { of_this_object(items) } else { items };
    let Some(newest) = known.first() else { return Restored::default() };
    let mut result = Restored { created_again: known.len() < items.len(), ..compared(now, known) };
    let items = known;
    let mut state = now.map(content);
    for item in items {
        if item.existed && state.is_none() && item.operation == Operation::Apply {
            // Only some of its fields are known, which do not make an object.
            return Restored { replaced: true, ..result };
        }
        state = item.existed.then(|| before(state.unwrap_or_else(|| json!({})), item));
    }
    // What is left of an object that did not exist before, if it cannot be deleted: what others have added.
    let left = || items.iter().fold(now.map_or_else(|| json!({}), content), |object, item| before(object, item));
    if let Some(now) = now {
        result.shared = shared(now, state.as_ref(), items);
        for path in &result.shared {
            let value = path.find(now).cloned().unwrap_or_default();
            path.set(state.get_or_insert_with(left), value);
        }
    }
    result.change = match (now, state) {
        (None, None) => None,
        (Some(now), None) if is_nobody_elses(now, &newest.field_manager) => Some(Change::Delete),
        (Some(now), state) => {
            let state = state.unwrap_or_else(left);
            Some(apply(newest, items, now, &state, &result.shared))
        }
        (None, Some(state)) => {
            Some(Change::Apply { fields: with_identity(&newest.target_ref, state), remove: Vec::new() })
        }
    };
    result
}

/// The items that are about the object as it is, if it exists. Before the oldest of them it did not exist, although an older one has
/// changed it: somebody has deleted it in between. Of what was deleted only some fields are known, which do not make an object.
fn of_this_object<'a, 'b>(items: &'a [&'b RecordedItem]) -> &'a [&'b RecordedItem] {
    let is_deleted_between =
        |pair: &[&RecordedItem]| !pair[0].existed && pair[1].existed && pair[1].operation == Operation::Apply;
    match items.windows(2).position(is_deleted_between) {
        Some(created) => &items[..=created],
        None => items,
    }
}

/// What differs from the end of the newest plan that has the field, and what is not known.
fn compared(now: Option<&Value>, items: &[&RecordedItem]) -> Restored {
    let mut result = Restored::default();
    let uid = now.and_then(|now| now["metadata"]["uid"].as_str());
    let is_gone = items.first().is_some_and(|newest| newest.operation == Operation::Delete);
    // Only an object that existed has a recorded uid.
    let known = items.iter().find_map(|item| item.uid.as_deref());
    result.replaced = !is_gone && uid.zip(known).is_some_and(|(now, known)| now != known);
    let us = items.first().map(|newest| newest.field_manager.as_str()).unwrap_or_default();
    let ours = now.map(|now| fields::applied_by(now, us)).unwrap_or_default();
    let mut seen: Vec<Path> = Vec::new();
    for (path, leaf) in items.iter().flat_map(|item| leaves(item)) {
        // A newer plan has changed it, or a part of it.
        if seen.iter().any(|newer| newer.overlaps(&path)) {
            continue;
        }
        let value = now.and_then(|now| path.find(now));
        let is_known = [&leaf.after, &leaf.before].iter().any(|known| value == parsed(known).as_ref());
        if leaf.masked {
            result.not_recorded.push(path.clone());
        // A record may be deleted, so a value may also be one that the field manager itself has set later.
        } else if now.is_some() && !is_known && !ours.iter().any(|leaf| leaf.overlaps(&path)) {
            result.changed_since.push(path.clone());
        }
        seen.push(path);
    }
    result
}

fn leaves(item: &RecordedItem) -> impl Iterator<Item = (Path, &Leaf)> {
    item.leaves.iter().filter_map(|leaf| Some((Path::from_keys(&leaf.path)?, leaf)))
}

/// The maps that the item created. The metadata of an object are never taken out as a whole.
fn maps(item: &RecordedItem) -> impl Iterator<Item = Path> {
    let maps = item.created_maps.iter().filter_map(|keys| Path::from_keys(keys));
    maps.filter(|path| *path != Path::dotted("metadata"))
}

fn parsed(value: &Option<String>) -> Option<Value> {
    value.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

/// An object as it was before the item. Maps that the item created go if nothing is left in them.
fn before(mut object: Value, item: &RecordedItem) -> Value {
    for (path, leaf) in leaves(item).filter(|(_, leaf)| !leaf.masked) {
        match parsed(&leaf.before) {
            Some(value) => path.set(&mut object, value),
            None => path.remove(&mut object),
        }
    }
    // The innermost come last in the record.
    for path in maps(item).collect::<Vec<_>>().iter().rev() {
        if path.find(&object).and_then(Value::as_object).is_some_and(Map::is_empty) {
            path.remove(&mut object);
        }
    }
    object
}

/// The fields that would be removed although another manager has applied them, too.
fn shared(now: &Value, state: Option<&Value>, items: &[&RecordedItem]) -> Vec<Path> {
    let all = fields::managers(now);
    let is_other = |manager: &&Manager| {
        manager.operation == "Apply" && !items.iter().any(|item| item.field_manager == manager.name)
    };
    let applied: Vec<&Path> = all.iter().filter(is_other).flat_map(|manager| &manager.leaves).collect();
    let owns = |leaf: &Path, path: &Path| leaf.is_within(path) || (path.is_within(leaf) && is_whole(&all, leaf));
    let is_applied = |path: &Path| applied.iter().any(|leaf| owns(leaf, path));
    let mut shared: Vec<Path> = Vec::new();
    for (path, _) in items.iter().flat_map(|item| leaves(item)) {
        let is_removed = path.find(now).is_some() && state.is_none_or(|state| path.find(state).is_none());
        if is_removed && is_applied(&path) && !shared.contains(&path) {
            shared.push(path);
        }
    }
    shared
}

/// Whether a field is owned as a whole: nobody owns just a part of it.
fn is_whole(managers: &[Manager], leaf: &Path) -> bool {
    !managers.iter().flat_map(|manager| &manager.leaves).any(|other| other != leaf && other.is_within(leaf))
}

/// Sets every recorded field that is to be there, also those that are as they should be, and what the field manager owns besides: an
/// apply gives up what it leaves out.
fn apply(newest: &RecordedItem, items: &[&RecordedItem], now: &Value, state: &Value, shared: &[Path]) -> Change {
    let mut fields = json!({});
    let mut remove: Vec<Path> = Vec::new();
    let recorded: Vec<Path> = items.iter().flat_map(|item| leaves(item).map(|(path, _)| path)).collect();
    let (managers, ours) = (fields::managers(now), fields::applied_by(now, &newest.field_manager));
    // An atomic map is set as a whole: whoever removed a member of it by a patch would own it from then on.
    let atomic: Vec<&Path> = ours.iter().filter(|leaf| is_whole(&managers, leaf)).collect();
    let mut paths: Vec<Path> = Vec::new();
    for path in recorded {
        let around = atomic.iter().find(|leaf| ***leaf != path && path.is_within(leaf));
        let path = around.map_or(path, |leaf| (*leaf).clone());
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    for path in ours.iter().map(Path::without_entries) {
        let is_recorded = paths.iter().any(|known| known.overlaps(&path));
        if let Some(value) = path.find(now).filter(|_| !is_recorded) {
            path.set(&mut fields, value.clone());
        }
    }
    for path in paths.into_iter().filter(|path| !shared.contains(path)) {
        match path.find(state) {
            Some(value) => path.set(&mut fields, value.clone()),
            None => remove.push(path),
        }
    }
    // The apply keeps what is removed afterwards: a map that loses its last member by an apply becomes null.
    for path in &remove {
        if let Some(value) = path.find(now) {
            path.set(&mut fields, value.clone());
        }
    }
    // A map that a plan created stays if others have members in it. The innermost maps come first.
    let mut left = now.clone();
    remove.iter().for_each(|path| path.remove(&mut left));
    // An object that did not exist before was never seen without its outermost maps, and a definition may require them: `spec`.
    let is_new = items.last().is_some_and(|oldest| !oldest.existed);
    let mut maps: Vec<Path> = items.iter().flat_map(|item| maps(item)).collect();
    maps.retain(|path| !(is_new && path.keys().len() == 1));
    maps.sort_by_key(|path| std::cmp::Reverse(path.keys().len()));
    for path in maps.into_iter().filter(|path| path.find(state).is_none()) {
        if path.find(&left).and_then(Value::as_object).is_some_and(Map::is_empty) {
            path.remove(&mut left);
            remove.push(path);
        }
    }
    let mut outermost: Vec<Path> = Vec::new();
    for path in &remove {
        let is_outermost = !remove.iter().any(|other| other != path && path.is_within(other));
        if is_outermost && !outermost.contains(path) {
            outermost.push(path.clone());
        }
    }
    Change::Apply { fields: with_identity(&newest.target_ref, fields), remove: outermost }
}

fn with_identity(target: &TargetRef, mut fields: Value) -> Value {
    let TargetRef { api_version, kind, name, namespace } = target;
    Path::dotted("apiVersion").set(&mut fields, api_version.as_str().into());
    Path::dotted("kind").set(&mut fields, kind.as_str().into());
    Path::dotted("metadata.name").set(&mut fields, name.as_str().into());
    if let Some(namespace) = namespace {
        Path::dotted("metadata.namespace").set(&mut fields, namespace.as_str().into());
    }
    fields
}
