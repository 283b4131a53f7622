//! Carries out one item of a plan, and only if the target is still what the plan was drawn up for: request by request, as
//! values. Whoever sends them passes the answers back.
//!
//! Every write names the uid and the resourceVersion of the object that was compared, so that the API server refuses it when
//! anything happened in between; a creation is refused when the object appeared meanwhile. A refusal of that kind only means
//! that something moved, often just a status: the object is read and compared again, a bounded number of times.

use api::virt_platform_config::{Item, Operation};
use serde_json::{Value, json};

use crate::{
    PlannedItem, Refusal, drift,
    fields::Path,
    machine::{NotWritten, Written},
};

/// How often a target may move under our hands before we give up for now.
pub const ATTEMPTS: usize = 5;

/// Whether a target must be as the plan found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lock {
    Compare,
    Bypass,
}

/// What to send next.
#[derive(Debug, Clone, PartialEq)]
pub enum Do {
    Read,
    /// Server-side apply of these fields, by force.
    Apply(Value),
    Delete {
        preconditions: Value,
    },
    /// A JSON patch.
    Patch(Value),
    End(Result<Written, NotWritten>),
    /// The target does not stand still; try again another time.
    Later,
}

/// What the API server said. What may pass by itself is not among it: then the whole is tried again.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    Object(Box<Value>),
    Absent,
    /// Not what the request said it should be.
    Conflict,
    Refused(Refusal),
    Failed(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Writing {
    planned: PlannedItem,
    lock: Lock,
    attempts: usize,
    stage: Stage,
    /// What is managed, as it was before fields are taken out.
    applied: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    Changing,
    /// What an apply cannot do: remove fields that somebody else has set. The apply is done by now, so a target that moves
    /// is only read again; compared with the plan it would look stale.
    Removing {
        found: bool,
    },
    Rereading {
        found: bool,
    },
}

impl Writing {
    /// `seen` is the target as it was read a moment ago, if it was. The API server is told which version that was and
    /// refuses when there is a newer one.
    pub fn start(planned: PlannedItem, lock: Lock, seen: Option<Option<Value>>) -> (Self, Do) {
        let mut writing = Writing { planned, lock, attempts: 0, stage: Stage::Reading, applied: None };
        let first = match seen {
            Some(live) => writing.compare(live),
            None => Do::Read,
        };
        (writing, first)
    }

    pub fn planned(&self) -> &PlannedItem {
        &self.planned
    }

    pub fn next(&mut self, said: Said) -> Do {
        match (self.stage, said) {
            (_, Said::Refused(refusal)) => Do::End(Err(NotWritten::Refused(refusal))),
            (_, Said::Failed(message)) => Do::End(Err(NotWritten::Failed(message))),
            (Stage::Reading, Said::Object(object)) => self.compare(Some(*object)),
            (Stage::Reading, Said::Absent) => self.compare(None),
            (Stage::Changing, Said::Conflict) => self.again(Stage::Reading),
            (Stage::Changing, Said::Object(_) | Said::Absent) if self.planned.item.operation == Operation::Delete => {
                Do::End(Ok(Written::Gone))
            }
            (Stage::Changing, Said::Object(object)) => self.take_out(object, false),
            // Somebody has changed what was just applied. Taken for what we left behind, that would be hidden for good.
            (Stage::Rereading { .. }, Said::Object(object))
                if self.applied.as_ref() != Some(&drift::fingerprint(&self.planned.item, Some(&object))) =>
            {
                self.compare(Some(*object))
            }
            (Stage::Removing { found } | Stage::Rereading { found }, Said::Object(object)) => {
                self.take_out(object, found)
            }
            (Stage::Removing { found }, Said::Conflict) => self.again(Stage::Rereading { found }),
            (_, Said::Conflict | Said::Absent) => Do::Later,
        }
    }

    fn again(&mut self, stage: Stage) -> Do {
        self.attempts += 1;
        if self.attempts == ATTEMPTS {
            return Do::Later;
        }
        self.stage = stage;
        Do::Read
    }

    /// The target as it is: what the plan found, what the plan makes of it already, or something else. What another profile
    /// holds is not taken from it under any lock.
    fn compare(&mut self, live: Option<Value>) -> Do {
        if let Some(refusal) = self.planned.conflict(live.as_ref()) {
            return Do::End(Err(NotWritten::Refused(refusal)));
        }
        let item = &self.planned.item;
        let as_found = drift::fingerprint(item, live.as_ref()) == self.planned.fingerprint;
        if self.lock == Lock::Compare && !as_found {
            // An earlier write of ours may have gone through unheard.
            return match (drift::is_applied(item, live.as_ref()), live) {
                (true, Some(live)) => self.take_out(Box::new(live), true),
                (true, None) => Do::End(Ok(Written::Gone)),
                (false, _) => Do::End(Err(NotWritten::Stale { target: self.planned.target.to_string() })),
            };
        }
        self.stage = Stage::Changing;
        match (item.operation, live) {
            (Operation::Delete, None) => Do::End(Ok(Written::Gone)),
            (Operation::Delete, Some(live)) => Do::Delete { preconditions: identity(&live) },
            (Operation::Apply, live) => Do::Apply(at_version(&json!(item.desired_state), live.as_ref())),
        }
    }

    fn take_out(&mut self, object: Box<Value>, found: bool) -> Do {
        let left = left(&self.planned.item, &object);
        if left.is_empty() {
            return Do::End(Ok(if found { Written::Found(object) } else { Written::Applied(object) }));
        }
        if let Some(refusal) = self.planned.conflict(Some(&object)) {
            return Do::End(Err(NotWritten::Refused(refusal)));
        }
        self.applied = Some(drift::fingerprint(&self.planned.item, Some(&object)));
        self.stage = Stage::Removing { found };
        Do::Patch(removal(&object, &left))
    }
}

/// The fields that the item takes out and that are still there.
fn left(item: &Item, object: &Value) -> Vec<Path> {
    item.removes.iter().map(|path| Path::dotted(path)).filter(|path| path.find(object).is_some()).collect()
}

/// A JSON patch that removes fields of this very version of an object.
pub fn removal(object: &Value, paths: &[Path]) -> Value {
    let test =
        |name: &str| json!({"op": "test", "path": format!("/metadata/{name}"), "value": object["metadata"][name]});
    let removals = paths.iter().map(|path| json!({"op": "remove", "path": path.pointer()}));
    [test("uid"), test("resourceVersion")].into_iter().chain(removals).collect()
}

/// What tells one version of one object from all others.
pub fn identity(object: &Value) -> Value {
    json!({"uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"]})
}

/// The fields of an apply that must find this very version of an object, or none.
pub fn at_version(fields: &Value, live: Option<&Value>) -> Value {
    // No object has version 1: with it an apply creates, or fails if somebody else just did.
    let identity = live.map_or_else(|| json!({"resourceVersion": "1"}), identity);
    let mut fields = fields.clone();
    if let (Some(metadata), Value::Object(identity)) = (fields["metadata"].as_object_mut(), identity) {
        metadata.extend(identity);
    }
    fields
}
