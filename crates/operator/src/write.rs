//! Carries out one item of a plan, and only if the target is still what the plan was drawn up for.
//!
//! Every write names the uid and the resourceVersion of the object that was compared, so that the API server refuses it when
//! anything happened in between; a creation is refused when the object appeared meanwhile. A refusal of that kind only means
//! that something moved, often just a status: the object is read and compared again, a bounded number of times.

use advisor::{PlannedItem, Refusal, drift, fields::Path, machine::Written};
use api::virt_platform_config::{Item, Operation};
use serde_json::{Value, json};

use crate::{
    Class, Kubernetes, RequestError,
    request::{ATTEMPTS, Change, Mode},
};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WriteError {
    #[error("{target} has been modified since the plan was drawn up")]
    Stale { target: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing is known to have been written; or, if the answer was lost, it will be found at the next attempt.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Whether a target must be as the plan found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    Compare,
    Bypass,
}

impl Kubernetes {
    pub async fn write(&self, planned: &PlannedItem, lock: Lock) -> Result<Written, WriteError> {
        self.write_to(planned, lock, None).await
    }

    /// The same, and `seen` is the target as it was read a moment ago, if it was. The API server is told which version that
    /// was and refuses when there is a newer one.
    pub(crate) async fn write_to(
        &self,
        planned: &PlannedItem,
        lock: Lock,
        mut seen: Option<Option<Value>>,
    ) -> Result<Written, WriteError> {
        let target = planned.target.to_string();
        let mut moved = None;
        for _ in 0..ATTEMPTS {
            let live = match seen.take() {
                Some(live) => live,
                None => self.find(&planned.target, planned.version).await?,
            };
            if lock == Lock::Compare && drift::fingerprint(&planned.item, live.as_ref()) != planned.fingerprint {
                return match live {
                    Some(live) if drift::is_applied(&planned.item, Some(&live)) => {
                        let object = self.take_out(planned, live).await.map_err(|error| refused(error, target))?;
                        Ok(Written::Found(Box::new(object)))
                    }
                    None if planned.item.operation == Operation::Delete => Ok(Written::Gone),
                    _ => Err(WriteError::Stale { target }),
                };
            }
            match self.attempt(planned, live).await {
                Ok(written) => return Ok(written),
                Err(error) if error.class == Class::Conflict => moved = Some(error),
                Err(error) => return Err(refused(error, target)),
            }
        }
        Err(moved.map_or(WriteError::Stale { target }, WriteError::Request))
    }

    async fn attempt(&self, planned: &PlannedItem, live: Option<Value>) -> Result<Written, RequestError> {
        let send = |change| self.change(&planned.target, planned.version, change, Mode::Write);
        match (planned.item.operation, live) {
            (Operation::Delete, None) => Ok(Written::Gone),
            (Operation::Delete, Some(live)) => match send(Change::Delete { preconditions: identity(&live) }).await {
                Err(error) if error.class != Class::NotFound => Err(error),
                _ => Ok(Written::Gone),
            },
            (Operation::Apply, live) => {
                let fields = at_version(&json!(planned.item.desired_state), live.as_ref());
                let object = send(Change::Apply { fields: &fields, force: true }).await?;
                Ok(Written::Applied(Box::new(self.take_out(planned, object).await?)))
            }
        }
    }

    /// Removes what an apply cannot: fields that somebody else has set. The apply is done by now, so a target that moves is
    /// read again here; compared with the plan it would look stale.
    async fn take_out(&self, planned: &PlannedItem, mut object: Value) -> Result<Value, RequestError> {
        let mut attempt = 1;
        loop {
            let left = left(&planned.item, &object);
            if left.is_empty() {
                return Ok(object);
            }
            let patch = removal(&object, &left);
            match self.change(&planned.target, planned.version, Change::JsonPatch(&patch), Mode::Write).await {
                Err(error) if error.class == Class::Conflict && attempt < ATTEMPTS => {
                    attempt += 1;
                    object = self.get(&planned.target, planned.version).await?;
                }
                result => return result,
            }
        }
    }
}

/// An error about the change itself is a refusal; any other may be gone next time.
fn refused(error: RequestError, target: String) -> WriteError {
    error.refusal(target).map_or(WriteError::Request(error), WriteError::Refused)
}

/// The fields that the item takes out and that are still there.
fn left(item: &Item, object: &Value) -> Vec<Path> {
    item.removes.iter().map(|path| Path::dotted(path)).filter(|path| path.find(object).is_some()).collect()
}

/// A JSON patch that removes fields of this very version of an object.
pub(crate) fn removal(object: &Value, paths: &[Path]) -> Value {
    let test =
        |name: &str| json!({"op": "test", "path": format!("/metadata/{name}"), "value": object["metadata"][name]});
    let removals = paths.iter().map(|path| json!({"op": "remove", "path": path.pointer()}));
    [test("uid"), test("resourceVersion")].into_iter().chain(removals).collect()
}

/// What tells one version of one object from all others.
pub(crate) fn identity(object: &Value) -> Value {
    json!({"uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"]})
}

/// The fields of an apply that must find this very version of an object, or none.
pub(crate) fn at_version(fields: &Value, live: Option<&Value>) -> Value {
    // No object has version 1: with it an apply creates, or fails if somebody else just did.
    let identity = live.map_or_else(|| json!({"resourceVersion": "1"}), identity);
    let mut fields = fields.clone();
    if let (Some(metadata), Value::Object(identity)) = (fields["metadata"].as_object_mut(), identity) {
        metadata.extend(identity);
    }
    fields
}
