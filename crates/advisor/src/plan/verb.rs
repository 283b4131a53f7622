//! What a plan does to a target, in one word.

use api::{
    virt_platform_config::{Item, Operation},
    virt_platform_plan_record::RecordedItem,
};

/// What would be done to a target, in the terms of Flux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Created,
    Configured,
    Unchanged,
    Deleted,
    Refused,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Created => "created",
            Verb::Configured => "configured",
            Verb::Unchanged => "unchanged",
            Verb::Deleted => "deleted",
            Verb::Refused => "refused",
        }
    }

    /// Whether the target is written.
    pub fn is_change(self) -> bool {
        !matches!(self, Verb::Unchanged | Verb::Refused)
    }

    /// What a stored item does, as its diff tells. An item without one was refused.
    pub fn of_item(item: &Item) -> Self {
        let Some(diff) = &item.diff else { return Verb::Refused };
        let mut lines = diff.lines();
        match (lines.next(), lines.next(), lines.next()) {
            (.., Some("(no changes)")) => Verb::Unchanged,
            (Some("--- /dev/null"), ..) => Verb::Created,
            (_, Some("+++ /dev/null"), _) => Verb::Deleted,
            _ => Verb::Configured,
        }
    }

    /// What a recorded item has done.
    pub fn of_record(item: &RecordedItem) -> Self {
        match item.operation {
            _ if !item.changes_something() => Verb::Unchanged,
            Operation::Delete => Verb::Deleted,
            Operation::Apply if !item.existed => Verb::Created,
            Operation::Apply => Verb::Configured,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff;

    #[test]
    fn the_diff_of_a_stored_item_tells_what_it_does() {
        let (old, new) = (json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}));
        for (before, after, expected) in [
            (None, Some(&new), Verb::Created),
            (Some(&old), Some(&new), Verb::Configured),
            (Some(&old), Some(&old), Verb::Unchanged),
            (Some(&old), None, Verb::Deleted),
            (None, None, Verb::Unchanged),
        ] {
            let item = Item { diff: Some(diff::diff("K", "n", before, after)), ..Item::default() };
            assert_eq!(Verb::of_item(&item), expected, "{:?}", item.diff);
        }
        assert_eq!(Verb::of_item(&Item::default()), Verb::Refused);
    }

    #[test]
    fn a_recorded_item_tells_it_without_a_diff() {
        let item = |existed, leaf: bool, operation| RecordedItem {
            existed,
            operation,
            leaves: leaf.then(Default::default).into_iter().collect(),
            ..RecordedItem::default()
        };
        assert_eq!(Verb::of_record(&item(false, true, Operation::Apply)), Verb::Created);
        assert_eq!(Verb::of_record(&item(true, true, Operation::Apply)), Verb::Configured);
        assert_eq!(Verb::of_record(&item(true, false, Operation::Apply)), Verb::Unchanged);
        assert_eq!(Verb::of_record(&item(true, true, Operation::Delete)), Verb::Deleted);
    }
}
