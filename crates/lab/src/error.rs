//! Why the lab did not start, or why a change to it failed.

use std::{io, time::Duration};

use kube_io::{Class, RequestError};
use standins::descheduler;
use thiserror::Error;

use crate::webhook;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Cluster(#[from] devcluster::Error),
    #[error("{doing}: {cause}")]
    Request { doing: String, cause: Box<kube::Error> },
    #[error("starting the {part}: {cause}")]
    Listen { part: &'static str, cause: io::Error },
    #[error("starting the descheduler: {0}")]
    Descheduler(#[from] descheduler::Error),
    #[error("starting the eviction webhook: {0}")]
    Webhook(#[from] webhook::Error),
    #[error("starting the soft-tainter: {0}")]
    SoftTainter(RequestError),
    #[error("after {} s still not so: {what}", .after.as_secs())]
    Late { what: String, after: Duration },
    #[error("{0}{hint}", hint = hint(.0))]
    Prometheus(RequestError),
    #[error("writing the scenario: {0}")]
    Write(io::Error),
    #[error("{0}")]
    Asset(String),
}

/// What to do about an answer of Prometheus that says no.
fn hint(error: &RequestError) -> &'static str {
    match error.class {
        Class::Unauthenticated | Class::Forbidden => {
            "; a token that may read metrics is given with --prometheus-token-file"
        }
        _ => "",
    }
}

/// Adds what was being done to an error.
pub(crate) trait Context<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Context<T> for kube::Result<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|cause| Error::Request { doing: doing(), cause: Box::new(cause) })
    }
}
