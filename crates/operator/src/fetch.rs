//! Answers the queries of a profile, as many at once as there are, each with one request.

use advisor::{Answer, Facts, Kind, ObjectRef, Planner, Query};
use futures::future::try_join_all;

use crate::{Class, Kubernetes, RequestError};

/// Profiles ask in rounds (pools, then what their nodes run). None needs more than this.
const ROUNDS: usize = 5;

/// Fetches what is not known yet, until the planner wants nothing more.
pub(crate) async fn fetch(
    kubernetes: &Kubernetes,
    planner: &dyn Planner,
    mut facts: Facts,
) -> Result<Facts, RequestError> {
    for _ in 0..ROUNDS {
        let queries = facts.unanswered(planner.wants(&facts));
        if queries.is_empty() {
            return Ok(facts);
        }
        let answers = try_join_all(queries.iter().map(|query| answer(kubernetes, query))).await?;
        for (query, answer) in queries.into_iter().zip(answers) {
            facts.insert(query, answer);
        }
    }
    let message = format!("it wants more after {ROUNDS} rounds; this is an error in the profile");
    Err(RequestError::other("fetching what the profile wants to know".into(), message, Class::Other))
}

async fn answer(kubernetes: &Kubernetes, query: &Query) -> Result<Answer, RequestError> {
    match query {
        Query::Object(reference) => object(kubernetes, reference).await,
        Query::Evidence(reference) => match object(kubernetes, reference).await {
            Err(error) if error.class == Class::Forbidden => Ok(Answer::Denied),
            answer => answer,
        },
        Query::List(kind) => list(kubernetes, kind).await,
    }
}

async fn object(kubernetes: &Kubernetes, reference: &ObjectRef) -> Result<Answer, RequestError> {
    for version in reference.kind.versions {
        match kubernetes.get(reference, version).await {
            Ok(object) => return Ok(Answer::Object { version, object }),
            Err(error) if error.class == Class::NotFound => return Ok(Answer::Absent { version }),
            Err(error) if error.class == Class::KindMissing => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Answer::KindMissing)
}

async fn list(kubernetes: &Kubernetes, kind: &'static Kind) -> Result<Answer, RequestError> {
    for version in kind.versions {
        match kubernetes.list(kind, version).await {
            Ok(items) => return Ok(Answer::List { version, items }),
            Err(error) if error.class == Class::KindMissing => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Answer::KindMissing)
}
