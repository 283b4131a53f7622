//! What a plan was derived from, compared with what it would be derived from now.

use api::virt_platform_config::{Input, Item, ItemState, Operation};
use serde_json::{Value, json};

use super::desk::Desk;
use crate::{Change, Draft, Intent, Plan, Planner, fields::Path};

/// What changed of that from which the items were derived, if the plan would come out differently for it.
pub(super) fn changed(planner: &dyn Planner, recorded: &[Input], items: &[Item], draft: &Draft) -> Option<String> {
    let now: Vec<&Input> = draft.intents.iter().flat_map(|intent| &intent.inputs).collect();
    let counterpart = |before: &Input| {
        now.iter().copied().find(|input| (&input.source, &input.path) == (&before.source, &before.path))
    };
    let differs = differs(items, draft).is_some();
    let pairs = recorded.iter().filter_map(|before| Some((before, counterpart(before)?)));
    let changes = pairs.filter(|(before, after)| before.value != after.value);
    let effective = |(before, _): &(&Input, &Input)| differs || items.iter().any(|item| manages(item, before));
    changes.filter(effective).map(|(before, after)| planner.input_changed(before, after)).next()
}

/// The first input that is not as recorded, in words.
pub(super) fn describe(desk: &Desk<'_>, plan: &Plan) -> Option<String> {
    let planner = desk.planner()?;
    let same = |before: &Input, after: &Input| (&before.source, &before.path) == (&after.source, &after.path);
    desk.status.inputs.iter().find_map(|before| {
        let after = plan.inputs.iter().find(|after| same(before, after) && before.value != after.value)?;
        Some(planner.input_changed(before, after))
    })
}

/// The first item that would be planned differently, or is no longer planned, or is new. A removal that is no longer planned
/// has been made; one that is new was not seen to be needed when the plan was drawn up.
pub(super) fn differs<'a>(items: &'a [Item], draft: &'a Draft) -> Option<&'a str> {
    // A plan in review is all Pending; beside what was applied, a Pending item is only shown.
    let in_review = items.iter().all(|item| item.applied_fingerprint.is_none());
    let planned = || items.iter().filter(|item| in_review || !is_proposed(item));
    let changed = draft.intents.iter().find(|intent| {
        let stored = planned().find(|item| item.name == intent.name);
        stored.is_none_or(|item| !comes_out_as(intent, item))
    });
    let is_dropped = |item: &&Item| {
        item.operation == Operation::Apply && !draft.intents.iter().any(|intent| intent.name == item.name)
    };
    let dropped = planned().find(is_dropped);
    changed.map(|intent| intent.name).or(dropped.map(|item| item.name.as_str()))
}

/// How it is told that an item would come out differently although no input that is recorded has changed.
pub(super) fn different(item: &str) -> String {
    format!("item '{item}' would come out differently on what is installed now")
}

/// Whether an item of something in force is only shown: what a new version of the operator would add.
pub(super) fn is_proposed(item: &Item) -> bool {
    item.state == ItemState::Pending && item.applied_fingerprint.is_none()
}

/// Whether a stored item is what the intent would become, in what it manages.
fn comes_out_as(intent: &Intent, item: &Item) -> bool {
    let is_same_target = intent.target.target(intent.version) == item.target_ref;
    let Change::Apply { fields, remove } = &intent.change else {
        return item.operation == Operation::Delete && is_same_target;
    };
    let managed = |desired: &Value| -> Vec<(String, Option<Value>)> {
        let paths = intent.managed.iter().copied().chain(["metadata.labels"]);
        paths.map(|path| (path.to_owned(), Path::dotted(path).find(desired).cloned())).collect()
    };
    let removes: Vec<String> = remove.iter().map(Path::to_string).collect();
    item.operation == Operation::Apply
        && is_same_target
        && intent.managed == item.managed_fields
        && removes == item.removes
        && managed(fields) == managed(&json!(item.desired_state))
}

/// Whether two items write the same.
pub(super) fn is_same(a: &Item, b: &Item) -> bool {
    (&a.target_ref, a.operation, &a.desired_state, &a.removes)
        == (&b.target_ref, b.operation, &b.desired_state, &b.removes)
}

/// Whether an input is a field that the item itself sets.
fn manages(item: &Item, input: &Input) -> bool {
    let source = format!("{}/{}", item.target_ref.kind, item.target_ref.name);
    let path = Path::dotted(&input.path);
    let within = |field: &String| {
        let field = Path::dotted(field);
        path.is_within(&field) || field.is_within(&path)
    };
    input.source == source && item.managed_fields.iter().chain(&item.removes).any(within)
}

/// Inputs that the item sets itself are from now on what its apply left behind.
pub(super) fn settle(inputs: &mut [Input], item: &Item, object: Option<&Value>) {
    for input in inputs.iter_mut().filter(|input| manages(item, input)) {
        input.value = object.and_then(|object| Path::dotted(&input.path).find(object)).map(Value::to_string);
    }
}
