//! Polling until a condition holds, with a time limit.

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

const LIMIT: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(10);

/// Calls `check` until it returns a value. Panics after a minute, and names what did not happen.
pub async fn eventually<T>(what: impl Display, check: impl AsyncFnMut() -> Option<T>) -> T {
    within(LIMIT, what, check).await
}

/// As `eventually`, with another time limit.
pub async fn within<T>(limit: Duration, what: impl Display, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(start.elapsed() < limit, "did not happen within {} s: {what}", limit.as_secs());
        tokio::time::sleep(INTERVAL).await;
    }
}
