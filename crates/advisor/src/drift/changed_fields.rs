//! The managed fields of one object that are not as they were applied, each with who changed it.

use api::virt_platform_config::{DriftedBy, Item, Operation};
use serde_json::Value;

use super::{by, changed_leaves, fingerprint, last_manager, result};
use crate::{fields::Path, object_text};

/// Stands for a value of a Secret.
const MASKED: &str = "***";

#[derive(Debug, Clone, PartialEq)]
pub struct ChangedField {
    pub path: Path,
    /// None if the item takes the field out.
    pub applied: Option<Value>,
    /// None if the field is gone.
    pub now: Option<Value>,
    /// None if the object does not tell, as when a field was removed.
    pub by: Option<DriftedBy>,
}

/// The fields that drifted. None for an object that is gone, or is there again: then it drifted as a whole. Empty if nothing did.
pub fn changed_fields(item: &Item, live: Option<&Value>) -> Option<Vec<ChangedField>> {
    let applied = item.applied_fingerprint.as_ref();
    // Before it was applied there is nothing to compare with.
    if applied.is_none_or(|applied| *applied == fingerprint(item, live)) {
        return Some(Vec::new());
    }
    let live = live.filter(|_| item.operation == Operation::Apply)?;
    let desired = result(item);
    let field = |path: Path| {
        let masked = object_text::is_masked(&item.target_ref.kind, &path);
        let value = |found: Option<&Value>| found.map(|value| if masked { MASKED.into() } else { value.clone() });
        ChangedField {
            applied: value(path.find(&desired)),
            now: value(path.find(live)),
            by: last_manager(item, live, |leaf| leaf.overlaps(&path)).map(by),
            path,
        }
    };
    Some(changed_leaves(item, live).into_iter().map(field).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(data: Value) -> Value {
        let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": {"f:data": fields}});
        let managers = json!([
            entry("argocd", "2026-01-01T00:00:00Z", json!({"f:a": {}, "f:b": {}})),
            entry("ed", "2026-01-02T00:00:00Z", json!({"f:a": {}})),
        ]);
        json!({"metadata": {"managedFields": managers}, "data": data})
    }

    fn item(desired: Value) -> Item {
        let mut item = Item {
            managed_fields: vec!["data".into()],
            desired_state: json!({"data": desired}).as_object().cloned(),
            ..Item::default()
        };
        item.applied_fingerprint = Some(fingerprint(&item, Some(&json!({"data": desired}))));
        item
    }

    /// `path applied now manager`
    fn told(item: &Item, live: Option<&Value>) -> Option<Vec<String>> {
        let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
        let line = |field: ChangedField| {
            let by = field.by.map_or("-".to_owned(), |by| by.manager);
            format!("{} {} {} {by}", field.path, text(&field.applied), text(&field.now))
        };
        changed_fields(item, live).map(|fields| fields.into_iter().map(line).collect())
    }

    #[test]
    fn each_field_is_told_with_both_values_and_who_changed_it_last() {
        let item = item(json!({"a": 1, "b": 2, "c": 3, "d": 4}));
        let live = object(json!({"a": 9, "b": 8, "c": 3, "more": 1}));
        assert_eq!(told(&item, Some(&live)).unwrap(), ["data.a 1 9 ed", "data.b 2 8 argocd", "data.d 4 - -"]);
    }

    #[test]
    fn what_is_as_it_was_applied_or_was_never_applied_has_not_drifted() {
        let mut item = item(json!({"a": 1}));
        assert_eq!(told(&item, Some(&object(json!({"a": 1, "more": 2})))), Some(vec![]));
        assert_eq!(told(&item, None), None, "deleted");
        item.applied_fingerprint = None;
        assert_eq!(told(&item, Some(&object(json!({"a": 2})))), Some(vec![]));
    }

    #[test]
    fn an_object_that_was_removed_and_is_there_again_drifted_as_a_whole() {
        let mut item = Item { operation: Operation::Delete, ..Item::default() };
        item.applied_fingerprint = Some(fingerprint(&item, None));
        assert_eq!(told(&item, None), Some(vec![]));
        assert_eq!(told(&item, Some(&object(json!({})))), None);
    }

    #[test]
    fn values_of_secrets_stay_hidden() {
        let mut item = item(json!({"a": "old"}));
        item.target_ref.kind = "Secret".into();
        assert_eq!(told(&item, Some(&object(json!({"a": "new"})))).unwrap(), ["data.a \"***\" \"***\" ed"]);
    }
}
