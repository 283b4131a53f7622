//! Waiting for what happens in its own time.

use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "did not happen: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
