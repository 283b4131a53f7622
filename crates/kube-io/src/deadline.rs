//! The time limit of a request: an answer that does not come in time is an error that says so.

use std::time::Duration;

use tokio::time::timeout;

use crate::RequestError;

/// Waits for a request, or for several that belong together. `doing` says in an error what was being done.
pub async fn within_deadline<T>(
    limit: Duration,
    doing: &str,
    request: impl Future<Output = T>,
) -> Result<T, RequestError> {
    timeout(limit, request).await.map_err(|_| RequestError::timed_out(doing.to_owned(), limit))
}

/// The same for a request of kube, whose error becomes one with a class.
pub async fn answer_within<T>(
    limit: Duration,
    doing: String,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestError> {
    let answer = within_deadline(limit, &doing, request).await?;
    answer.map_err(|error| RequestError::new(doing, &error))
}
