//! Answers the queries of a profile and of a rollout, each with one request.

#[cfg(test)]
mod tests;

use advisor::{Answer, Facts, Kind, ObjectRef, Planner, Query};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use kube_io::{ApiServer, Class, RequestError};

use crate::request;

/// How many requests are under way at a time. Each of them has a connection of its own.
const AT_A_TIME: usize = 8;

/// Profiles ask in rounds (pools, then what their nodes run). None needs more than this.
const ROUNDS: usize = 5;

/// Everything that a planner wants to know.
pub async fn fetch_facts(api_server: &ApiServer, planner: &dyn Planner) -> Result<Facts, RequestError> {
    fetch(api_server, planner, Facts::default()).await
}

/// Fetches what is not known yet, until the planner wants nothing more.
pub(crate) async fn fetch(
    api_server: &ApiServer,
    planner: &dyn Planner,
    mut facts: Facts,
) -> Result<Facts, RequestError> {
    for _ in 0..ROUNDS {
        let queries = facts.unanswered(planner.wants(&facts));
        if queries.is_empty() {
            return Ok(facts);
        }
        answer_all(api_server, queries, &mut facts).await?;
    }
    let message = format!("it wants more after {ROUNDS} rounds; this is an error in the profile");
    Err(RequestError::other("fetching what the profile wants to know".into(), message, Class::Other))
}

/// Adds the answers to these queries.
async fn answer_all(api_server: &ApiServer, queries: Vec<Query>, facts: &mut Facts) -> Result<(), RequestError> {
    let mut answers = answers(api_server, queries);
    while let Some((query, answer)) = answers.try_next().await? {
        facts.insert(query, answer);
    }
    Ok(())
}

/// Adds the answers to those of these queries that can be answered now, and returns the first error. After some errors no more is
/// asked, because then the API server is in trouble and not one object.
pub(crate) async fn answer_some(
    api_server: &ApiServer,
    queries: Vec<Query>,
    facts: &mut Facts,
) -> Option<RequestError> {
    let mut answers = answers(api_server, queries);
    let mut errors = Vec::new();
    while let Some(answer) = answers.next().await {
        match answer {
            Ok((query, answer)) => facts.insert(query, answer),
            Err(error) => errors.push(error),
        }
        if errors.len() == AT_A_TIME {
            break;
        }
    }
    errors.into_iter().next()
}

/// The answers as they come.
fn answers(
    api_server: &ApiServer,
    queries: Vec<Query>,
) -> impl Stream<Item = Result<(Query, Answer), RequestError>> + Unpin {
    let answered = move |query: Query| async move { answer(api_server, &query).await.map(|answer| (query, answer)) };
    Box::pin(stream::iter(queries).map(answered).buffer_unordered(AT_A_TIME))
}

async fn answer(api_server: &ApiServer, query: &Query) -> Result<Answer, RequestError> {
    match query {
        Query::Object(reference) => object(api_server, reference).await,
        Query::Optional(reference) => match object(api_server, reference).await {
            Err(error) if error.class == Class::Forbidden => Ok(Answer::Denied),
            answer => answer.map(|answer| query.needed(answer)),
        },
        Query::List(kind) => list(api_server, kind).await,
    }
}

async fn object(api_server: &ApiServer, reference: &ObjectRef) -> Result<Answer, RequestError> {
    for version in reference.kind.versions {
        match request::get(api_server, reference, version).await {
            Ok(object) => return Ok(Answer::Object { version, object }),
            Err(error) if error.class == Class::NotFound => return Ok(Answer::Absent { version }),
            Err(error) if error.class == Class::KindMissing => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Answer::KindMissing)
}

async fn list(api_server: &ApiServer, kind: &'static Kind) -> Result<Answer, RequestError> {
    for version in kind.versions {
        match request::list(api_server, kind, version).await {
            Ok(items) => return Ok(Answer::List { version, items }),
            Err(error) if error.class == Class::KindMissing => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Answer::KindMissing)
}
