//! Polling until a condition holds, with a time limit.

use std::time::{Duration, Instant};

/// Calls `check` until it succeeds. After the time limit its last error is returned, which says what was there instead.
pub async fn poll<T, E>(
    interval: Duration,
    limit: Duration,
    mut check: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let start = Instant::now();
    loop {
        match check().await {
            Ok(found) => return Ok(found),
            Err(error) if start.elapsed() >= limit => return Err(error),
            Err(_) => tokio::time::sleep(interval).await,
        }
    }
}
