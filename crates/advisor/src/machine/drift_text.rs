//! The texts about drift: in items, events and conditions.
//!
//! An object says who changed a field. Nothing says who deleted an object, so nobody is named.

use api::virt_platform_config::{DriftedBy, Item, Operation, TargetRef};
use serde_json::Value;

use crate::{autopilot, drift::UNKNOWN_MANAGER};

const DELETED: &str = "was deleted";
/// Of an object that the operator has removed.
const CREATED: &str = "was created again";
const CHANGED: &str = "was changed";
const BEING_DELETED: &str = "is being deleted";
const DRIFTED: &str = "Configuration has drifted from desired state";

/// `MachineConfig '99-worker-psi-karg' was changed by kubectl-edit`, or was deleted.
pub(super) fn sentence(target: &TargetRef, live: Option<&Value>, by: &DriftedBy) -> String {
    deletion(live).map_or_else(|| changed_as(CHANGED, target, by), |deletion| about(target, deletion))
}

/// The message of an item that has drifted.
pub(super) fn item_message(item: &Item, live: Option<&Value>, by: &DriftedBy) -> String {
    let target = &item.target_ref;
    match (deletion(live), known_manager(by)) {
        (Some(deletion), _) => about(target, deletion),
        _ if item.operation == Operation::Delete => changed_as(CREATED, target, by),
        (None, Some(autopilot::MANAGER)) => {
            let command = autopilot::opt_out(target);
            format!("{DRIFTED} (changed by {}). To keep it away: {command}", autopilot::MANAGER)
        }
        (None, Some(manager)) => format!("{DRIFTED} (changed by {manager})"),
        (None, None) => DRIFTED.into(),
    }
}

/// The drift of an item, if the item says that it has drifted.
pub(super) fn recorded(item: &Item) -> Option<String> {
    let by = item.drifted_by.as_ref()?;
    let target = &item.target_ref;
    if by.deleted {
        // Whether it is gone already is told in the message only.
        let is_leaving = item.message.as_ref() == Some(&about(target, BEING_DELETED));
        return Some(about(target, if is_leaving { BEING_DELETED } else { DELETED }));
    }
    let time = by.time.as_ref().map_or_else(String::new, |time| format!(" at {}", time.0));
    let what = if item.operation == Operation::Delete { CREATED } else { CHANGED };
    Some(changed_as(what, target, by) + &time)
}

fn deletion(live: Option<&Value>) -> Option<&'static str> {
    let Some(live) = live else { return Some(DELETED) };
    live.pointer("/metadata/deletionTimestamp").filter(|time| time.is_string()).map(|_| BEING_DELETED)
}

fn changed_as(what: &str, target: &TargetRef, by: &DriftedBy) -> String {
    let by = known_manager(by).map_or_else(String::new, |manager| format!(" by {manager}"));
    about(target, &format!("{what}{by}"))
}

fn about(target: &TargetRef, what: &str) -> String {
    format!("{} '{}' {what}", target.kind, target.name)
}

fn known_manager(by: &DriftedBy) -> Option<&str> {
    Some(by.manager.as_str()).filter(|manager| *manager != UNKNOWN_MANAGER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target() -> TargetRef {
        TargetRef { kind: "MachineConfig".into(), name: "it".into(), ..TargetRef::default() }
    }

    fn by(manager: &str) -> DriftedBy {
        DriftedBy { manager: manager.into(), ..DriftedBy::default() }
    }

    #[test]
    fn a_deletion_reads_as_one_and_who_made_a_change_is_named_if_known() {
        let there = json!({"metadata": {"name": "it"}});
        let leaving = json!({"metadata": {"name": "it", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        for (live, manager, expected, message) in [
            (None, UNKNOWN_MANAGER, "MachineConfig 'it' was deleted", "MachineConfig 'it' was deleted"),
            (
                Some(&leaving),
                UNKNOWN_MANAGER,
                "MachineConfig 'it' is being deleted",
                "MachineConfig 'it' is being deleted",
            ),
            (Some(&leaving), "ed", "MachineConfig 'it' is being deleted", "MachineConfig 'it' is being deleted"),
            (
                Some(&there),
                "ed",
                "MachineConfig 'it' was changed by ed",
                "Configuration has drifted from desired state (changed by ed)",
            ),
            (
                Some(&there),
                UNKNOWN_MANAGER,
                "MachineConfig 'it' was changed",
                "Configuration has drifted from desired state",
            ),
        ] {
            let by = DriftedBy { deleted: deletion(live).is_some(), ..by(manager) };
            assert_eq!(sentence(&target(), live, &by), expected);
            let mut item = Item { target_ref: target(), ..Item::default() };
            assert_eq!(item_message(&item, live, &by), message);
            (item.message, item.drifted_by) = (Some(message.to_owned()), Some(by));
            assert_eq!(recorded(&item).as_deref(), Some(expected), "the item is enough to tell");
        }
    }

    #[test]
    fn an_object_that_was_removed_and_is_there_again_was_created() {
        let there = json!({"metadata": {"name": "it"}});
        let mut item = Item { target_ref: target(), operation: Operation::Delete, ..Item::default() };
        let expected = "MachineConfig 'it' was created again by ed";
        assert_eq!(item_message(&item, Some(&there), &by("ed")), expected);
        item.drifted_by = Some(by("ed"));
        assert_eq!(recorded(&item).as_deref(), Some(expected));
    }

    /// Found by random edits: a deletion read as a change by nobody knows whom.
    #[test]
    fn a_deletion_is_told_whatever_the_message_of_the_item_says() {
        let by = DriftedBy { deleted: true, ..by(UNKNOWN_MANAGER) };
        let message = Some("MachineConfigPool 'worker' is updating".to_owned());
        let item = Item { target_ref: target(), drifted_by: Some(by), message, ..Item::default() };
        assert_eq!(recorded(&item).as_deref(), Some("MachineConfig 'it' was deleted"));
    }

    #[test]
    fn a_change_is_recorded_with_its_time_and_an_item_as_it_was_left_has_nothing_to_tell() {
        let time = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        let mut item = Item { target_ref: target(), drifted_by: Some(by("ed")), ..Item::default() };
        item.drifted_by.as_mut().unwrap().time = time;
        let expected = "MachineConfig 'it' was changed by ed at 2026-01-01T00:00:00Z";
        assert_eq!(recorded(&item).as_deref(), Some(expected));
        item.drifted_by = None;
        assert_eq!(recorded(&item), None);
    }
}
