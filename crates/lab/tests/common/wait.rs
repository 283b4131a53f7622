//! Waiting for what happens in its own time.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);

/// Asks until there is an answer.
pub(crate) async fn within<T>(
    patience: Duration,
    what: impl Fn() -> String,
    mut check: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(start.elapsed() < patience, "did not happen within {} s: {}", patience.as_secs(), what());
        tokio::time::sleep(PAUSE).await;
    }
}
