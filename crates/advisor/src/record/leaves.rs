//! The fields of a target that an item changes: their values before and after, and who owned them.

use std::collections::BTreeSet;

use api::{
    bounds,
    virt_platform_config::Operation,
    virt_platform_plan_record::{Leaf, RecordedItem},
};
use serde_json::{Value, json};

use super::is_written;
use crate::{
    PlannedItem, field_manager,
    fields::{self, Manager, Path},
    object_text,
};

/// The item, its target before, and the fields that it changes. An item that writes nothing has no fields.
pub(super) fn recorded(planned: &PlannedItem, live: Option<&Value>) -> RecordedItem {
    let item = &planned.item;
    let mut walk = Walk { kind: &item.target_ref.kind, us: field_manager::of_item(item), ..Walk::default() };
    if is_written(planned) {
        walk.managers = live.map(fields::managers).unwrap_or_default();
        walk.is_deletion = item.operation == Operation::Delete;
        walk.touched = fields::set_by(&content(&json!(item.desired_state)));
        walk.touched.extend(item.removes.iter().map(|path| Path::parsed(path)));
        let (before, after) = (live.map(content), planned.after.as_ref().map(content));
        walk.compare(&Path::default(), before.as_ref(), after.as_ref());
    }
    let readable = Some(planned.readable_diff.clone()).filter(|readable| item.diff.as_ref() != Some(readable));
    RecordedItem {
        name: item.name.clone(),
        target_ref: item.target_ref.clone(),
        operation: item.operation,
        field_manager: field_manager::of_item(item).to_owned(),
        impact_severity: item.impact_severity,
        impact_detail: item.impact_detail.clone(),
        diff: item.diff.clone(),
        readable_diff: readable.filter(|readable| !readable.is_empty()),
        takes_over: item.takes_over.clone(),
        existed: live.is_some(),
        uid: live.and_then(|live| live["metadata"]["uid"].as_str()).map(str::to_owned),
        leaves: walk.leaves,
        created_maps: walk.created_maps,
    }
}

/// What an object consists of, without its identity and what the API server maintains.
pub(super) fn content(object: &Value) -> Value {
    let mut object = object_text::sanitized(object);
    if let Some(map) = object.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["name", "namespace", "deletionTimestamp", "deletionGracePeriodSeconds"] {
                metadata.remove(field);
            }
            if metadata.is_empty() {
                map.remove("metadata");
            }
        }
    }
    object
}

#[derive(Default)]
struct Walk<'a> {
    kind: &'a str,
    /// The field manager of the item.
    us: &'a str,
    is_deletion: bool,
    /// What the item sets or removes.
    touched: Vec<Path>,
    managers: Vec<Manager>,
    leaves: Vec<Leaf>,
    created_maps: Vec<Vec<String>>,
}

impl Walk<'_> {
    /// Compares maps member by member, and everything else as a whole.
    fn compare(&mut self, path: &Path, before: Option<&Value>, after: Option<&Value>) {
        let map = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
        let is_touched = self.touched.iter().any(|touched| touched.overlaps(path));
        match (before, map(before), map(after)) {
            (_, Some(before), after) if self.is_deletion || after.is_some() => {
                let after = after.unwrap_or_default();
                if before.is_empty() && after.is_empty() {
                    return self.push(path, Some(&json!({})), (!self.is_deletion).then(|| json!({})).as_ref());
                }
                let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                for name in names {
                    self.compare(&path.with_member(name), before.get(name), after.get(name));
                }
            }
            // Others may add members to a map that the item creates, so its members are recorded one by one.
            (None, _, Some(after)) if !after.is_empty() && is_touched => {
                if *path != Path::default() {
                    self.created_maps.push(path.keys());
                }
                after.iter().for_each(|(name, value)| self.compare(&path.with_member(name), None, Some(value)));
            }
            _ => self.push(path, before, after),
        }
    }

    /// A field counts if the item sets or removes it, if it is lost or given up for a default, or if it came with a map that the item
    /// creates. What else the API server or a webhook changes is not the item's.
    fn push(&mut self, path: &Path, before: Option<&Value>, after: Option<&Value>) {
        let is_touched = self.touched.iter().any(|touched| touched.overlaps(path));
        let is_lost = before.is_some() && after.is_none();
        let is_new = before.is_none() && after.is_some();
        let parents = self.created_maps.iter().filter_map(|keys| Path::from_keys(keys));
        let came_along = is_new && parents.into_iter().any(|parent| path.is_within(&parent));
        let former_owners = self.owners(path);
        let is_given_up = before != after && former_owners.iter().any(|owner| owner == self.us);
        if *path == Path::default() || before.or(after).is_none() {
            return;
        }
        if !(is_touched || is_lost || is_given_up || came_along) {
            return;
        }
        let masked = object_text::is_masked(self.kind, path);
        let value = |value: Option<&Value>| value.filter(|_| !masked).map(Value::to_string);
        let leaf = Leaf { path: path.keys(), before: value(before), after: value(after), former_owners, masked };
        self.leaves.push(leaf);
    }

    /// Who owns the field. A map of which somebody owns a part is not owned as a whole.
    fn owners(&self, path: &Path) -> Vec<String> {
        let all = || self.managers.iter().flat_map(|manager| &manager.leaves);
        let is_whole = |leaf: &Path| !all().any(|other| other != leaf && other.is_within(leaf));
        let owns = |leaf: &Path| leaf.is_within(path) || (path.is_within(leaf) && is_whole(leaf));
        let owners = self.managers.iter().filter(|manager| manager.leaves.iter().any(owns));
        let names: BTreeSet<String> = owners.map(|manager| manager.name.clone()).collect();
        names.into_iter().take(bounds::SHORT_LIST).collect()
    }
}
