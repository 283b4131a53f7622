//! Polling until a condition holds, with a time limit.

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

/// For a machine that is busy with other tests. An operator with its usual intervals makes no recheck meanwhile.
const LIMIT: Duration = Duration::from_secs(100);
const INTERVAL: Duration = Duration::from_millis(10);

/// Calls `check` until it returns a value. Panics after a time that only a hang takes, and names what did not happen.
pub async fn eventually<T>(what: impl Display, check: impl AsyncFnMut() -> Option<T>) -> T {
    within(LIMIT, what, check).await
}

/// As `eventually`, with another time limit.
pub async fn within<T>(limit: Duration, what: impl Display, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let found = poll(limit, async || check().await.ok_or(())).await;
    found.unwrap_or_else(|()| panic!("did not happen within {} s: {what}", limit.as_secs()))
}

/// Calls `check` until it succeeds. After the time limit its last error is returned, which says what was there instead.
pub async fn poll<T, E>(limit: Duration, check: impl AsyncFnMut() -> Result<T, E>) -> Result<T, E> {
    devcluster::poll(INTERVAL, limit, check).await
}

/// As `poll`, in a test without a runtime.
pub fn poll_blocking<T, E>(limit: Duration, mut check: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let start = Instant::now();
    loop {
        match check() {
            Ok(found) => return Ok(found),
            Err(error) if start.elapsed() >= limit => return Err(error),
            Err(_) => std::thread::sleep(INTERVAL),
        }
    }
}
