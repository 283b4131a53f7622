//! Sends what [`advisor::writing`] asks for to the target of an item.

use advisor::{
    PlannedItem, field_manager,
    machine::{NotWritten, Written},
    writing::{Input, Lock, Outcome, Request, Step, Writing},
};
use kube_io::{ApiServer, Class, RequestError};

use crate::{
    refusal,
    request::{self, TargetWrite, WriteMode},
};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    NotWritten(#[from] NotWritten),
    /// Nothing is known to have been written; or, if the answer was lost, it will be found at the next attempt.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Writes one item of a plan, and only if the target is still what the plan was made for.
pub async fn write(api_server: &ApiServer, planned: &PlannedItem, lock: Lock) -> Result<Written, WriteError> {
    let mut writing = Writing::new(planned.clone(), lock);
    let mut step = writing.start(None);
    loop {
        step = match step {
            Step::Send(request) => writing.next(send(api_server, planned, request).await?),
            Step::Done(Outcome::Finished(result)) => return Ok(result?),
            Step::Done(Outcome::Retry) => {
                let doing = format!("changing {}", planned.target);
                return Err(RequestError::other(doing, "it changed again and again".into(), Class::Conflict).into());
            }
        }
    }
}

/// Sends one request to the target of an item. An error may pass by itself; any other answer is one.
pub(crate) async fn send(
    api_server: &ApiServer,
    planned: &PlannedItem,
    request: Request,
) -> Result<Input, RequestError> {
    let manager = field_manager::of_item(&planned.item);
    let change =
        |change| request::change(api_server, &planned.target, planned.version, manager, change, WriteMode::Write);
    let answer = match &request {
        Request::Read => request::get(api_server, &planned.target, planned.version).await,
        Request::Apply(fields) => change(TargetWrite::Apply { fields, force: true }).await,
        Request::Delete { preconditions } => change(TargetWrite::Delete { preconditions: preconditions.clone() }).await,
        Request::Patch(patch) => change(TargetWrite::JsonPatch(patch)).await,
    };
    match answer {
        Ok(object) => Ok(Input::Object(Box::new(object))),
        Err(error) if error.class == Class::NotFound => Ok(Input::Absent),
        Err(error) if error.class == Class::Conflict => Ok(Input::Conflict),
        // The preview was allowed: an API server that is just starting does not know any roles yet. If that is not it, the
        // next preview will say so.
        Err(error) if error.class == Class::Forbidden => Err(error),
        Err(error) => match refusal::refusal(&error, planned.target.to_string()) {
            Some(refusal) => Ok(Input::Refused(refusal)),
            None => refusal::lasting(error).map(Input::Failed),
        },
    }
}
