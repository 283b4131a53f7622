//! Sends what [`advisor::writing`] asks for to the target of an item.

use advisor::{
    PlannedItem, field_manager,
    machine::{NotWritten, Written},
    writing::{Do, Lock, Said, Writing},
};
use serde_json::Value;

use crate::{
    Class, Kubernetes, RequestError,
    request::{Change, Mode},
};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    NotWritten(#[from] NotWritten),
    /// Nothing is known to have been written; or, if the answer was lost, it will be found at the next attempt.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Kubernetes {
    /// Carries out one item of a plan, and only if the target is still what the plan was drawn up for.
    pub async fn write(&self, planned: &PlannedItem, lock: Lock) -> Result<Written, WriteError> {
        let (mut writing, mut next) = Writing::start(planned.clone(), lock, None);
        loop {
            next = match next {
                Do::End(result) => return Ok(result?),
                Do::Later => {
                    let doing = format!("changing {}", planned.target);
                    return Err(RequestError::other(doing, "it does not stand still".into(), Class::Conflict).into());
                }
                request => writing.next(self.send_to(planned, request).await?),
            }
        }
    }

    /// Sends one request to the target of an item. An error may pass by itself; any other answer is one.
    pub(crate) async fn send_to(&self, planned: &PlannedItem, request: Do) -> Result<Said, RequestError> {
        let manager = field_manager::of_item(&planned.item);
        let send = |change| self.change(&planned.target, planned.version, manager, change, Mode::Write);
        let answer = match &request {
            Do::Read => self.get(&planned.target, planned.version).await,
            Do::Apply(fields) => send(Change::Apply { fields, force: true }).await,
            Do::Delete { preconditions } => send(Change::Delete { preconditions: preconditions.clone() }).await,
            Do::Patch(patch) => send(Change::JsonPatch(patch)).await,
            Do::End(_) | Do::Later => Ok(Value::Null),
        };
        match answer {
            Ok(object) => Ok(Said::Object(Box::new(object))),
            Err(error) if error.class == Class::NotFound => Ok(Said::Absent),
            Err(error) if error.class == Class::Conflict => Ok(Said::Conflict),
            // The preview was allowed: an API server that is just starting does not know any roles yet. If that is not it, the
            // next preview will say so.
            Err(error) if error.class == Class::Forbidden => Err(error),
            Err(error) => match error.refusal(planned.target.to_string()) {
                Some(refusal) => Ok(Said::Refused(refusal)),
                None => error.lasting().map(Said::Failed),
            },
        }
    }
}
