//! Waiting for what happens in its own time, for as long as a test should.

use std::time::Duration;

use crate::wait::within;

const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, || what.to_owned(), check).await
}
