//! Requests with a deadline.

use std::{future::Future, time::Duration};

use kube_io::RequestError;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(10);

/// Waits for the answer to a request. `doing` says in an error what was being done.
pub(crate) async fn within_deadline<T>(
    doing: String,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestError> {
    match timeout(DEADLINE, request).await {
        Ok(answer) => answer.map_err(|error| RequestError::new(doing, &error)),
        Err(_) => Err(RequestError::timed_out(doing, DEADLINE.as_secs())),
    }
}
