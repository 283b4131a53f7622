//! Writes one item of a plan, and only if the target is still what the plan was made for.
//! Every write names the uid and the resourceVersion that were compared, so the API server refuses it if the target has changed.
//! Often only a status has changed, so the target is read and compared again, a bounded number of times.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::virt_platform_config::{Item, Operation};
use serde_json::{Value, json};

use crate::{
    PlannedItem, Refusal, drift, field_manager,
    fields::{self, Path},
    machine::{NotWritten, Written},
    ownership::is_nobody_elses,
};

/// How often a target may change between a read and a write before the write is given up for now.
pub const MAX_ATTEMPTS: usize = 5;

/// Whether a target must be as the plan found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lock {
    Compare,
    Bypass,
}

/// What the API server answered. Errors that may pass by themselves are not passed in: then the whole write is tried again.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Object(Box<Value>),
    Absent,
    /// A precondition of the request did not hold.
    Conflict,
    Refused(Refusal),
    Failed(String),
}

/// What to send to the target.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Read,
    /// Server-side apply of these fields, by force.
    Apply(Value),
    Delete {
        preconditions: Value,
    },
    /// A JSON patch.
    Patch(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Finished(Result<Written, NotWritten>),
    /// The target changes too often: try again after a while.
    Retry,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Send(Request),
    Done(Outcome),
}

impl Step {
    fn written(written: Written) -> Self {
        Step::Done(Outcome::Finished(Ok(written)))
    }

    fn not_written(error: NotWritten) -> Self {
        Step::Done(Outcome::Finished(Err(error)))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Writing {
    planned: Arc<PlannedItem>,
    lock: Lock,
    attempts: usize,
    state: State,
    /// The fingerprint of the managed fields before fields are removed.
    applied: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Changing,
    /// Removes fields that somebody else has set, which an apply cannot do. The apply is done, so a target that changes now is only
    /// read again: compared with the plan it would look stale.
    Removing {
        was_applied: bool,
    },
    Rereading {
        was_applied: bool,
    },
}

impl Writing {
    pub fn new(planned: PlannedItem, lock: Lock) -> Self {
        Writing { planned: Arc::new(planned), lock, attempts: 0, state: State::Reading, applied: None }
    }

    pub fn planned(&self) -> &Arc<PlannedItem> {
        &self.planned
    }

    /// `live` is the target if it was just read; inside, `None` is a target that does not exist.
    pub fn start(&mut self, live: Option<Option<Value>>) -> Step {
        match live {
            Some(live) => self.compare(live),
            None => Step::Send(Request::Read),
        }
    }

    pub fn next(&mut self, input: Input) -> Step {
        match (self.state, input) {
            (_, Input::Refused(refusal)) => Step::not_written(NotWritten::Refused(refusal)),
            (_, Input::Failed(message)) => Step::not_written(NotWritten::Failed(message)),
            (State::Reading, Input::Object(object)) => self.compare(Some(*object)),
            (State::Reading, Input::Absent) => self.compare(None),
            (State::Changing, Input::Conflict) => self.read_again(State::Reading),
            (State::Changing, Input::Object(_) | Input::Absent) if self.planned.item.operation == Operation::Delete => {
                Step::written(Written::Gone)
            }
            (State::Changing, Input::Object(object)) => self.remove_fields(object, false),
            // Somebody has changed what was just applied. If it were recorded as applied, that change would never be noticed.
            (State::Rereading { .. }, Input::Object(object))
                if self.applied.as_ref() != Some(&drift::fingerprint(&self.planned.item, Some(&object))) =>
            {
                self.compare(Some(*object))
            }
            (State::Removing { was_applied } | State::Rereading { was_applied }, Input::Object(object)) => {
                self.remove_fields(object, was_applied)
            }
            (State::Removing { was_applied }, Input::Conflict) => self.read_again(State::Rereading { was_applied }),
            (_, Input::Conflict | Input::Absent) => Step::Done(Outcome::Retry),
        }
    }

    fn read_again(&mut self, state: State) -> Step {
        self.attempts += 1;
        if self.attempts == MAX_ATTEMPTS {
            return Step::Done(Outcome::Retry);
        }
        self.state = state;
        Step::Send(Request::Read)
    }

    /// Compares the target with what the plan found and with what the plan makes of it. Whatever the lock, nothing is taken from
    /// another profile, nothing that the plan does not name is taken from the autopilot, and no object of others is deleted.
    fn compare(&mut self, live: Option<Value>) -> Step {
        if let Some(refusal) = self.planned.conflict(live.as_ref()) {
            return Step::not_written(NotWritten::Refused(refusal));
        }
        let item = &self.planned.item;
        let as_found = drift::fingerprint(item, live.as_ref()) == self.planned.fingerprint;
        if self.lock == Lock::Compare && !as_found {
            // An earlier write may have succeeded although its answer was lost.
            return match (drift::is_applied(item, live.as_ref()), live) {
                (true, Some(live)) => self.remove_fields(Box::new(live), true),
                (true, None) => Step::written(Written::Gone),
                (false, _) => Step::not_written(NotWritten::Stale { target: self.planned.target.to_string() }),
            };
        }
        if let Some(refusal) = self.planned.taken_by_autopilot(live.as_ref()) {
            return Step::not_written(NotWritten::Refused(refusal));
        }
        self.state = State::Changing;
        let manager = field_manager::of_item(item);
        match (item.operation, live) {
            (Operation::Delete, None) => Step::written(Written::Gone),
            (Operation::Delete, Some(live)) if !is_nobody_elses(&live, manager) => {
                Step::not_written(NotWritten::Stale { target: self.planned.target.to_string() })
            }
            (Operation::Delete, Some(live)) => Step::Send(Request::Delete { preconditions: identity(&live) }),
            (Operation::Apply, live) => {
                let fields = with_kept_fields(&json!(item.desired_state), &removes(item), live.as_ref(), manager);
                Step::Send(Request::Apply(at_version(&fields, live.as_ref())))
            }
        }
    }

    /// Removes the fields that the item removes, if any are left, and gives up what a restored target needs no more. `was_applied`: the apply was found done, not made just now.
    fn remove_fields(&mut self, object: Box<Value>, was_applied: bool) -> Step {
        let left = left(&self.planned, &object);
        let owned = match self.planned.restores {
            true => fields::entries_of(&object, field_manager::of_item(&self.planned.item)),
            false => Vec::new(),
        };
        if left.is_empty() && owned.is_empty() {
            return Step::written(match was_applied {
                true => Written::AlreadyApplied(object),
                false => Written::Applied(object),
            });
        }
        let live = Some(object.as_ref());
        if let Some(refusal) = self.planned.conflict(live).or_else(|| self.planned.taken_by_autopilot(live)) {
            return Step::not_written(NotWritten::Refused(refusal));
        }
        if matches!(self.state, State::Removing { .. }) {
            self.attempts += 1;
            if self.attempts == MAX_ATTEMPTS {
                return Step::Done(Outcome::Retry);
            }
        }
        self.applied = Some(drift::fingerprint(&self.planned.item, Some(&object)));
        self.state = State::Removing { was_applied };
        Step::Send(Request::Patch(removal(&object, &left, &owned)))
    }
}

/// The fields that the item removes and that still exist. A field in whose place a default comes stays, as the preview has shown.
fn left(planned: &PlannedItem, object: &Value) -> Vec<Path> {
    let default = |path: &Path| planned.after.as_ref().and_then(|after| path.find(after)).cloned();
    let is_left = |path: &Path| path.find(object).is_some_and(|value| Some(value) != default(path).as_ref());
    removes(&planned.item).into_iter().filter(is_left).collect()
}

fn removes(item: &Item) -> Vec<Path> {
    item.removes.iter().map(|path| Path::parsed(path)).collect()
}

/// A JSON patch that removes fields and entries of `managedFields`, and fails unless the object has this version.
pub fn removal(object: &Value, paths: &[Path], owned: &[usize]) -> Value {
    let test =
        |name: &str| json!({"op": "test", "path": format!("/metadata/{name}"), "value": object["metadata"][name]});
    let removals = paths.iter().map(|path| json!({"op": "remove", "path": path.pointer()}));
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(0, Vec::len);
    let given_up: Vec<Value> = match !owned.is_empty() && owned.len() == entries {
        // The API server takes an empty list for one that was left out.
        true => vec![json!({"op": "replace", "path": "/metadata/managedFields", "value": [{}]})],
        // The last entry first: the others keep their positions.
        false => {
            let remove = |at: &usize| json!({"op": "remove", "path": format!("/metadata/managedFields/{at}")});
            owned.iter().rev().map(remove).collect()
        }
    };
    [test("uid"), test("resourceVersion")].into_iter().chain(removals).chain(given_up).collect()
}

/// The uid and the resourceVersion of an object, as preconditions.
pub fn identity(object: &Value) -> Value {
    json!({"uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"]})
}

/// The fields of an apply, with those that are removed after it if they are in a map that somebody else has set: a map that loses its
/// last member by an apply becomes null, and the API server refuses that.
pub fn with_kept_fields(fields: &Value, remove: &[Path], live: Option<&Value>, manager: &str) -> Value {
    let mut fields = fields.clone();
    let Some(live) = live else { return fields };
    let ours = fields::applied_by(live, manager);
    let managers = fields::managers(live);
    let others = || managers.iter().filter(|other| other.name != manager).flat_map(|other| &other.leaves);
    let is_ours = |path: &Path| ours.iter().any(|leaf| leaf.is_within(path));
    let is_in_their_map = |path: &Path| others().any(|leaf| leaf != path && path.is_within(leaf));
    for path in remove.iter().filter(|path| is_ours(path) && is_in_their_map(path)) {
        if let Some(value) = path.find(live) {
            path.set(&mut fields, value.clone());
        }
    }
    fields
}

/// The fields of an apply that fails unless the object has this version, or does not exist if `live` is `None`.
pub fn at_version(fields: &Value, live: Option<&Value>) -> Value {
    // No object has version 1: with it, an apply creates the object, or fails if the object exists.
    let identity = live.map_or_else(|| json!({"resourceVersion": "1"}), identity);
    let mut fields = fields.clone();
    if let (Some(metadata), Value::Object(identity)) = (fields["metadata"].as_object_mut(), identity) {
        metadata.extend(identity);
    }
    fields
}
