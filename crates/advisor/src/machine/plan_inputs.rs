//! Compares the inputs and items of a plan with those of a plan that would be made now.

use api::virt_platform_config::{Item, ItemState, Operation, PlanInput};
use serde_json::{Value, json};

use super::status_draft::StatusDraft;
use crate::{Change, Draft, Intent, LeftOut, Plan, Planner, autopilot, fields::Path, hyper_converged::sets_nothing};

/// The first changed input that makes the plan different, in words.
pub(super) fn changed(
    planner: &dyn Planner,
    recorded: &[PlanInput],
    items: &[Item],
    plan_draft: &Draft,
) -> Option<String> {
    let now: Vec<&PlanInput> = plan_draft.intents.iter().flat_map(|intent| &intent.inputs).collect();
    let counterpart = |before: &PlanInput| {
        now.iter().copied().find(|input| (&input.source, &input.path) == (&before.source, &before.path))
    };
    let differs = differs(items, plan_draft).is_some();
    if let Some(switched) = autopilot::switched(recorded, &plan_draft.inputs).filter(|_| differs) {
        return Some(switched);
    }
    let pairs = recorded.iter().filter_map(|before| Some((before, counterpart(before)?)));
    let changes = pairs.filter(|(before, after)| has_changed(before, after));
    let effective = |(before, _): &(&PlanInput, &PlanInput)| differs || items.iter().any(|item| manages(item, before));
    changes.filter(effective).map(|(before, after)| planner.input_changed(before, after)).next()
}

/// The first input that differs from the recorded one, in words.
pub(super) fn describe(draft: &StatusDraft<'_>, plan: &Plan) -> Option<String> {
    if let Some(switched) = autopilot::switched(&draft.status.inputs, &plan.inputs) {
        return Some(switched);
    }
    let planner = draft.planner()?;
    let same = |before: &PlanInput, after: &PlanInput| (&before.source, &before.path) == (&after.source, &after.path);
    draft.status.inputs.iter().find_map(|before| {
        let after = plan.inputs.iter().find(|after| same(before, after) && has_changed(before, after))?;
        Some(planner.input_changed(before, after))
    })
}

/// Whether an input has another value. An earlier version recorded an empty map, which sets nothing.
fn has_changed(before: &PlanInput, after: &PlanInput) -> bool {
    let value = |input: &PlanInput| -> Option<Value> {
        let value = serde_json::from_str(input.value.as_deref()?);
        value.ok().filter(|value| !sets_nothing(value))
    };
    before.value != after.value && (value(before), value(after)) != (None, None)
}

/// The first item that would be planned differently, not at all, or that is new. A removal that is no longer planned is done; a new
/// one was not known to be needed when the plan was made.
pub(super) fn differs<'a>(items: &'a [Item], plan_draft: &'a Draft) -> Option<&'a str> {
    // In a review all items are Pending; beside applied items, a Pending item is only a proposal.
    let in_review = items.iter().all(|item| item.applied_fingerprint.is_none());
    let planned = || items.iter().filter(|item| in_review || !is_proposed(item));
    let changed = plan_draft.intents.iter().find(|intent| {
        let stored = planned().find(|item| item.name == intent.name);
        stored.is_none_or(|item| !matches_item(intent, item))
    });
    let is_dropped = |item: &&Item| {
        item.operation == Operation::Apply && !plan_draft.intents.iter().any(|intent| intent.name == item.name)
    };
    let dropped = planned().find(is_dropped);
    changed.map(|intent| intent.name.as_ref()).or(dropped.map(|item| item.name.as_str()))
}

/// Why an item that was applied would be left out of a new plan, because somebody else manages its target now.
pub(super) fn left_out<'a>(items: &[Item], plan_draft: &'a Draft) -> Option<&'a str> {
    let is_applied = |name: &str| {
        items
            .iter()
            .any(|item| item.name == name && item.operation == Operation::Apply && item.applied_fingerprint.is_some())
    };
    plan_draft.left_out.iter().find(|left| is_applied(&left.item)).map(|left| left.why.as_str())
}

/// The text for an item that would be different although no recorded input has changed.
pub(super) fn different(item: &str, left_out: &[LeftOut]) -> String {
    let left = left_out.iter().find(|left| left.item == item);
    left.map_or_else(
        || format!("item '{item}' would come out differently on what is installed now"),
        |left| left.why.clone(),
    )
}

/// Whether an item of an applied plan is only a proposal: a new version of the operator would add it.
pub(super) fn is_proposed(item: &Item) -> bool {
    item.state == ItemState::Pending && item.applied_fingerprint.is_none()
}

/// Whether the intent would become the stored item, as far as managed fields go.
fn matches_item(intent: &Intent, item: &Item) -> bool {
    let is_same_target = intent.target.target(intent.version) == item.target_ref;
    let Change::Apply { fields, remove } = &intent.change else {
        return item.operation == Operation::Delete && is_same_target;
    };
    let managed = |desired: &Value| -> Vec<(String, Option<Value>)> {
        let paths = intent.managed.iter().map(AsRef::as_ref).chain(["metadata.labels"]);
        paths.map(|path| (path.to_owned(), Path::parsed(path).find(desired).cloned())).collect()
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
fn manages(item: &Item, input: &PlanInput) -> bool {
    let source = format!("{}/{}", item.target_ref.kind, item.target_ref.name);
    let path = Path::parsed(&input.path);
    let within = |field: &String| {
        let field = Path::parsed(field);
        path.is_within(&field) || field.is_within(&path)
    };
    input.source == source && item.managed_fields.iter().chain(&item.removes).any(within)
}

/// Sets inputs that the item itself manages to the values after its apply.
pub(super) fn settle(inputs: &mut [PlanInput], item: &Item, object: Option<&Value>) {
    for input in inputs.iter_mut().filter(|input| manages(item, input)) {
        input.value = object.and_then(|object| Path::parsed(&input.path).find(object)).map(Value::to_string);
    }
}
