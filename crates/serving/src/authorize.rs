//! Decides who may send a request: by the client certificate, or by a token that the API server reviews. What it says is kept for a
//! while, in caches of a limited size. Tokens that it does not know are kept apart, so that nobody can push out the others by
//! guessing.

use std::{future::Future, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::cache::Cache;

/// The path on which a client certificate suffices.
pub const METRICS_PATH: &str = "/metrics";

/// The common name of the client certificate of OpenShift's Prometheus.
pub const PROMETHEUS: &str = "system:serviceaccount:openshift-monitoring:prometheus-k8s";

/// How long answers are kept, as the controllers of the Kubernetes project keep them.
const TOKEN: Duration = Duration::from_secs(60);
const ALLOWED: Duration = Duration::from_secs(5 * 60);
const DENIED: Duration = Duration::from_secs(30);
/// How long a failure is not told again.
const TOLD: Duration = Duration::from_secs(10 * 60);
/// Entries of each cache.
const ENTRIES: usize = 256;
/// Reviews on their way at a time: strangers must not make us flood the API server.
const AT_ONCE: usize = 4;
/// Bytes of a token. Those of service accounts have about a thousand.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Who sent a request, as the API server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    /// User name, uid, groups and extra fields, as a SubjectAccessReview takes them.
    pub(crate) review: Value,
}

/// Asks the API server. An error is a sentence for the log, without the token.
pub(crate) trait Reviews: Send + Sync + 'static {
    /// Who has a token; none if nobody has.
    fn token(&self, token: &str) -> impl Future<Output = Result<Option<User>, String>> + Send;
    /// Whether a user may do something to a path.
    fn access(&self, user: &User, path: &str, verb: &str) -> impl Future<Output = Result<bool, String>> + Send;
}

/// A request, as far as its permission depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The common name of a client certificate that was verified.
    pub(crate) peer: Option<&'a str>,
    pub(crate) token: Option<&'a str>,
    pub(crate) path: &'a str,
    /// The method in lower case.
    pub(crate) verb: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authorization {
    Allowed,
    /// Nobody knows who that is.
    Unauthenticated,
    /// This user may not.
    Denied(String),
    /// The API server could not be asked.
    Failed(String),
}

#[derive(Debug)]
pub(crate) struct Authorizer<R> {
    reviews: R,
    client_names: Vec<String>,
    users: Cache<User>,
    strangers: Cache<()>,
    access: Cache<bool>,
    failures: Cache<()>,
    slots: Semaphore,
}

impl<R: Reviews> Authorizer<R> {
    /// `client_names` are the common names of client certificates that may read the metrics.
    pub(crate) fn new(reviews: R, client_names: Vec<String>) -> Self {
        Authorizer {
            reviews,
            client_names,
            users: Cache::new(ENTRIES),
            strangers: Cache::new(ENTRIES),
            access: Cache::new(ENTRIES),
            failures: Cache::new(ENTRIES),
            slots: Semaphore::new(AT_ONCE),
        }
    }

    pub(crate) async fn decide(&self, asked: Asked<'_>) -> Authorization {
        let is_read = asked.path == METRICS_PATH && asked.verb == "get";
        if is_read && asked.peer.is_some_and(|peer| self.client_names.iter().any(|name| name == peer)) {
            return Authorization::Allowed;
        }
        let token = match asked.token {
            Some(token) if !token.is_empty() && token.len() <= LONGEST_TOKEN => token,
            _ => return Authorization::Unauthenticated,
        };
        let user = match self.user(token).await {
            Ok(Some(user)) => user,
            Ok(None) => return Authorization::Unauthenticated,
            Err(error) => return Authorization::Failed(error),
        };
        match self.may(&user, asked.path, asked.verb).await {
            Ok(true) => Authorization::Allowed,
            Ok(false) => Authorization::Denied(user.name),
            Err(error) => Authorization::Failed(error),
        }
    }

    /// Whether a failure was not told for a while. Anybody who asks could fill the log otherwise.
    pub(crate) fn is_new(&self, failure: &str) -> bool {
        let is_new = self.failures.get(failure.as_bytes()).is_none();
        if is_new {
            self.failures.put(failure.as_bytes(), (), TOLD);
        }
        is_new
    }

    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        let known = || match self.users.get(token.as_bytes()) {
            Some(user) => Some(Some(user)),
            None => self.strangers.get(token.as_bytes()).map(|()| None),
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        let _slot = self.slots.acquire().await.map_err(|error| error.to_string())?;
        // Another request with the same token may have been answered meanwhile.
        if let Some(known) = known() {
            return Ok(known);
        }
        let user = self.reviews.token(token).await?;
        match &user {
            Some(user) => self.users.put(token.as_bytes(), user.clone(), TOKEN),
            None => self.strangers.put(token.as_bytes(), (), TOKEN),
        }
        Ok(user)
    }

    async fn may(&self, user: &User, path: &str, verb: &str) -> Result<bool, String> {
        let key = json!([user.review, path, verb]).to_string();
        if let Some(known) = self.access.get(key.as_bytes()) {
            return Ok(known);
        }
        let _slot = self.slots.acquire().await.map_err(|error| error.to_string())?;
        if let Some(known) = self.access.get(key.as_bytes()) {
            return Ok(known);
        }
        let may = self.reviews.access(user, path, verb).await?;
        self.access.put(key.as_bytes(), may, if may { ALLOWED } else { DENIED });
        Ok(may)
    }
}

#[cfg(test)]
pub(crate) mod tests;
