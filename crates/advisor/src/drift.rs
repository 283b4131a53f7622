//! Whether the managed fields of an object are as they were applied, and who changed them.
//! The managed fields follow from the item, not from the current ownership: an edit by somebody else takes the ownership away, even
//! if the value is set back later.

mod changed_fields;
mod keep;

use api::virt_platform_config::{DriftedBy, Item, Operation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::{
    field_manager,
    fields::{self, Path},
    fingerprint,
};

pub use changed_fields::{ChangedField, changed_fields};
pub use keep::option_to_keep;

/// The manager of a change if `managedFields` does not name one.
pub const UNKNOWN_MANAGER: &str = "unknown";

/// SHA-256 over the live values of the leaves that the item manages.
pub fn fingerprint(item: &Item, live: Option<&Value>) -> String {
    fingerprint::fingerprint(live, &leaves(item, live))
}

/// The leaves that the item manages: those that it sets or removes, and those that its field manager owns and would give up. Only
/// within the declared fields and the labels.
pub fn leaves(item: &Item, live: Option<&Value>) -> Vec<Path> {
    let mut declared: Vec<Path> = item.managed_fields.iter().map(|path| Path::parsed(path)).collect();
    declared.push(Path::dotted("metadata.labels"));
    let managers = live.map(fields::managers).unwrap_or_default();
    let owned: Vec<&Path> = managers.iter().flat_map(|manager| &manager.leaves).collect();
    // An atomic list or map is owned and compared as a whole. A map of which somebody owns a part is not atomic, even if another
    // manager owns the map itself.
    let is_whole = |path: &Path| !owned.iter().any(|other| *other != path && other.is_within(path));
    let whole = |leaf: Path| {
        owned
            .iter()
            .find(|known| leaf.is_within(known) && is_whole(known))
            .map_or(leaf.clone(), |known| (*known).clone())
    };
    let set = fields::set_by(&json!(item.desired_state)).into_iter().map(whole);
    let ours = live.map(|live| fields::applied_by(live, field_manager::of_item(item))).unwrap_or_default();
    let mut leaves: Vec<Path> = Vec::new();
    // A map that the operator still owns after others have taken its members is not atomic either.
    let ours = ours.into_iter().filter(is_whole);
    for leaf in set.chain(ours).filter(|leaf| declared.iter().any(|path| leaf.is_within(path))) {
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    }
    leaves.extend(item.removes.iter().map(|path| Path::parsed(path)));
    leaves
}

/// What the item sets, without what it takes out afterwards.
pub fn result(item: &Item) -> Value {
    let mut desired = json!(item.desired_state);
    remove(item, &mut desired);
    desired
}

/// Takes out of an object what the item takes out.
pub fn remove(item: &Item, object: &mut Value) {
    item.removes.iter().for_each(|path| Path::parsed(path).remove(object));
}

/// Whether an object already is as the item makes it.
pub fn is_applied(item: &Item, live: Option<&Value>) -> bool {
    match (item.operation, live) {
        (Operation::Delete, live) => live.is_none(),
        (Operation::Apply, Some(live)) => contains(live, &json!(item.desired_state)),
        (Operation::Apply, None) => false,
    }
}

/// Whether an object has all fields of `desired`.
pub fn contains(live: &Value, desired: &Value) -> bool {
    match desired.as_object().filter(|map| !map.is_empty()) {
        Some(map) => map.iter().all(|(name, value)| live.get(name).is_some_and(|live| contains(live, value))),
        None => live == desired,
    }
}

/// An object with the fields of `desired`: maps are merged, everything else is replaced.
pub fn overlaid(live: &Value, desired: &Value) -> Value {
    let (Some(fields), Some(map)) = (desired.as_object(), live.as_object()) else { return desired.clone() };
    let mut map = map.clone();
    for (name, value) in fields {
        let value = map.get(name).map_or_else(|| value.clone(), |live| overlaid(live, value));
        map.insert(name.clone(), value);
    }
    Value::Object(map)
}

/// Who last changed a field that is no longer as the item set it, according to `managedFields`.
pub fn changed_by(item: &Item, live: Option<&Value>) -> DriftedBy {
    let unknown = |deleted: bool| DriftedBy { manager: UNKNOWN_MANAGER.into(), time: None, deleted };
    let Some(live) = live else { return unknown(true) };
    let deleted = live.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string);
    // Of an object that the operator has removed, everything is a change.
    let last = match item.operation {
        Operation::Delete => last_manager(item, live, |_| true),
        Operation::Apply => {
            let changed = changed_leaves(item, live);
            last_manager(item, live, |leaf| changed.iter().any(|path| leaf.overlaps(path)))
        }
    };
    last.map_or_else(|| unknown(deleted), |manager| DriftedBy { deleted, ..by(manager) })
}

/// The managed leaves that are not as the item set them.
fn changed_leaves(item: &Item, live: &Value) -> Vec<Path> {
    let desired = result(item);
    leaves(item, Some(live)).into_iter().filter(|leaf| leaf.find(live) != leaf.find(&desired)).collect()
}

/// Who else has last written one of these fields.
fn last_manager(item: &Item, live: &Value, is_meant: impl Fn(&Path) -> bool) -> Option<fields::Manager> {
    let others = fields::managers(live).into_iter().filter(|manager| manager.name != field_manager::of_item(item));
    let suspects = others.filter(|manager| manager.leaves.iter().any(&is_meant));
    suspects.max_by(|a, b| a.time.cmp(&b.time))
}

fn by(manager: fields::Manager) -> DriftedBy {
    let time = manager.time.and_then(|time| time.parse().ok()).map(Time);
    DriftedBy { manager: manager.name, time, deleted: false }
}

#[cfg(test)]
mod tests {
    use api::names::FIELD_MANAGER;

    use super::*;

    fn object(data: Value) -> Value {
        json!({"kind": "ConfigMap", "metadata": {"name": "it"}, "data": data})
    }

    /// An object with entries of `managedFields`: manager, operation, fields.
    fn managed(mut object: Value, managers: &[(&str, &str, Value)]) -> Value {
        let entry = |(manager, operation, fields): &(&str, &str, Value)| {
            json!({
                "manager": manager, "operation": operation, "time": format!("2026-01-01T00:00:0{}Z", manager.len() % 10),
                "fieldsV1": {"f:data": fields},
            })
        };
        object["metadata"]["managedFields"] = managers.iter().map(entry).collect();
        object
    }

    fn item(desired: Value) -> Item {
        let desired_state = object(desired).as_object().cloned();
        Item { managed_fields: vec!["data".into()], desired_state, ..Item::default() }
    }

    fn watched(item: &Item, live: Option<&Value>) -> Vec<String> {
        leaves(item, live).iter().map(ToString::to_string).collect()
    }

    /// W22 (foreign fields as drift): labels too, and no field of others.
    #[test]
    fn what_is_watched_is_what_the_item_sets_takes_out_or_gives_up() {
        let mut item = item(json!({"a": "1"}));
        item.removes = vec!["data.b".into()];
        let desired = item.desired_state.as_mut().unwrap();
        desired["metadata"]["labels"] = json!({"ours": "x"});
        desired["metadata"]["annotations"] = json!({"not": "watched"});
        desired.insert("other".into(), json!({"not": "declared"}));
        assert_eq!(watched(&item, None), ["data.a", "metadata.labels.ours", "data.b"]);
        let live = managed(
            object(json!({"foreign": "1"})),
            &[("kubectl", "Update", json!({"f:foreign": {}})), (FIELD_MANAGER, "Apply", json!({"f:dropped": {}}))],
        );
        assert_eq!(watched(&item, Some(&live)), ["data.a", "metadata.labels.ours", "data.dropped", "data.b"]);
    }

    #[test]
    fn what_is_atomic_is_compared_as_a_whole_whoever_owns_it() {
        let item = item(json!({"map": {"x": {"y": 1}}}));
        let atomic =
            |manager: &'static str, value: Value| managed(object(value), &[(manager, "Update", json!({"f:map": {}}))]);
        let ours = managed(object(json!({"map": {"x": {"y": 1}}})), &[(FIELD_MANAGER, "Apply", json!({"f:map": {}}))]);
        assert_eq!(watched(&item, Some(&ours)), ["data.map"]);
        let edited = atomic("kubectl", json!({"map": {"x": {"y": 1}, "z": 2}}));
        assert_ne!(fingerprint(&item, Some(&ours)), fingerprint(&item, Some(&edited)), "a member more is a change");
        let restored = atomic("kubectl", json!({"map": {"x": {"y": 1}}}));
        assert_eq!(
            fingerprint(&item, Some(&ours)),
            fingerprint(&item, Some(&restored)),
            "the value counts, not the owner"
        );
    }

    /// W22 (foreign fields as drift): the members that others add are theirs.
    #[test]
    fn a_map_that_somebody_owns_in_part_is_not_atomic() {
        let item = item(json!({"limits": {"total": 5}}));
        let live = |limits: Value| {
            managed(
                object(json!({"limits": limits})),
                &[
                    (FIELD_MANAGER, "Apply", json!({"f:limits": {"f:total": {}}})),
                    // The entry of a manager that owned the map and lost all of its members.
                    ("creator", "Update", json!({"f:limits": {}})),
                ],
            )
        };
        assert_eq!(watched(&item, Some(&live(json!({"total": 5})))), ["data.limits.total"]);
        let (before, after) = (live(json!({"total": 5})), live(json!({"total": 5, "node": 2})));
        assert_eq!(
            fingerprint(&item, Some(&before)),
            fingerprint(&item, Some(&after)),
            "what we do not set is not ours"
        );
    }

    #[test]
    fn the_culprit_is_who_last_touched_what_differs() {
        let item = item(json!({"a": "1", "b": "2"}));
        let live = managed(
            object(json!({"a": "9", "b": "2"})),
            &[
                ("installer", "Apply", json!({"f:b": {}})),
                ("argocd", "Apply", json!({"f:a": {}})),
                ("ed", "Update", json!({"f:a": {}})),
                (FIELD_MANAGER, "Apply", json!({"f:b": {}})),
            ],
        );
        let by = changed_by(&item, Some(&live));
        assert_eq!(by.manager, "argocd", "the later of two, and not who owns what is as it was");
        assert_eq!(by.time, Some(Time("2026-01-01T00:00:06Z".parse().unwrap())));
        let removed = managed(object(json!({"b": "2"})), &[(FIELD_MANAGER, "Apply", json!({"f:b": {}}))]);
        assert_eq!(changed_by(&item, Some(&removed)).manager, "unknown", "a removal leaves no trace");
        let deleted = changed_by(&item, None);
        assert_eq!((deleted.manager.as_str(), deleted.deleted, by.deleted), ("unknown", true, false));
    }

    #[test]
    fn an_item_is_applied_when_its_fields_are_there_or_its_target_gone() {
        let apply = item(json!({"a": "1", "empty": {}}));
        for (live, applied) in [
            (Some(object(json!({"a": "1", "empty": {}, "more": "x"}))), true),
            (Some(object(json!({"a": "1"}))), false),
            (Some(object(json!({"a": "2", "empty": {}}))), false),
            (Some(object(json!({"a": "1", "empty": {"not": "so"}}))), false),
            (None, false),
        ] {
            assert_eq!(is_applied(&apply, live.as_ref()), applied, "{live:?}");
        }
        let delete = Item { operation: Operation::Delete, ..Item::default() };
        assert!(is_applied(&delete, None));
        assert!(!is_applied(&delete, Some(&object(json!({})))));
    }
}
