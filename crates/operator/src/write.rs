//! Sends what [`advisor::writing`] asks for to the target of an item.

use advisor::{
    PlannedItem, field_manager,
    machine::{NotWritten, Written},
    writing::{Do, Lock, Said, Writing},
};
use serde_json::Value;

use crate::{
    ApiServer, Class, RequestError, refusal,
    request::{self, Change, Mode},
};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    NotWritten(#[from] NotWritten),
    /// Nothing is known to have been written; or, if the answer was lost, it will be found at the next attempt.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Carries out one item of a plan, and only if the target is still what the plan was drawn up for.
pub async fn write(api_server: &ApiServer, planned: &PlannedItem, lock: Lock) -> Result<Written, WriteError> {
    let (mut writing, mut next) = Writing::start(planned.clone(), lock, None);
    loop {
        next = match next {
            Do::End(result) => return Ok(result?),
            Do::Later => {
                let doing = format!("changing {}", planned.target);
                return Err(RequestError::other(doing, "it does not stand still".into(), Class::Conflict).into());
            }
            request => writing.next(send(api_server, planned, request).await?),
        }
    }
}

/// Sends one request to the target of an item. An error may pass by itself; any other answer is one.
pub(crate) async fn send(api_server: &ApiServer, planned: &PlannedItem, next: Do) -> Result<Said, RequestError> {
    let manager = field_manager::of_item(&planned.item);
    let change = |change| request::change(api_server, &planned.target, planned.version, manager, change, Mode::Write);
    let answer = match &next {
        Do::Read => request::get(api_server, &planned.target, planned.version).await,
        Do::Apply(fields) => change(Change::Apply { fields, force: true }).await,
        Do::Delete { preconditions } => change(Change::Delete { preconditions: preconditions.clone() }).await,
        Do::Patch(patch) => change(Change::JsonPatch(patch)).await,
        Do::End(_) | Do::Later => Ok(Value::Null),
    };
    match answer {
        Ok(object) => Ok(Said::Object(Box::new(object))),
        Err(error) if error.class == Class::NotFound => Ok(Said::Absent),
        Err(error) if error.class == Class::Conflict => Ok(Said::Conflict),
        // The preview was allowed: an API server that is just starting does not know any roles yet. If that is not it, the
        // next preview will say so.
        Err(error) if error.class == Class::Forbidden => Err(error),
        Err(error) => match refusal::refusal(&error, planned.target.to_string()) {
            Some(refusal) => Ok(Said::Refused(refusal)),
            None => refusal::lasting(error).map(Said::Failed),
        },
    }
}
