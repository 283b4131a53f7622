//! Answers the queries of a profile, as many at once as there are, each with one request.

use advisor::{Answer, Facts, Kind, ObjectRef, Planner, Query};
use futures::future::try_join_all;
use kube_io::{ApiServer, Class, RequestError};

use crate::request;

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
pub(crate) async fn answer_all(
    api_server: &ApiServer,
    queries: Vec<Query>,
    facts: &mut Facts,
) -> Result<(), RequestError> {
    let answers = try_join_all(queries.iter().map(|query| answer(api_server, query))).await?;
    for (query, answer) in queries.into_iter().zip(answers) {
        facts.insert(query, answer);
    }
    Ok(())
}

async fn answer(api_server: &ApiServer, query: &Query) -> Result<Answer, RequestError> {
    match query {
        Query::Object(reference) => object(api_server, reference).await,
        Query::Optional(reference) => match object(api_server, reference).await {
            Err(error) if error.class == Class::Forbidden => Ok(Answer::Denied),
            answer => answer,
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
