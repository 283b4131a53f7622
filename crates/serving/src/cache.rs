//! A cache whose entries expire, and which never has more entries than its limit.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// Keys are hashes, so that no secret is kept.
type Key = [u8; 32];

#[derive(Debug)]
pub(crate) struct Cache<V> {
    limit: usize,
    entries: Mutex<HashMap<Key, (Instant, V)>>,
}

impl<V: Clone> Cache<V> {
    pub(crate) fn new(limit: usize) -> Self {
        Cache { limit, entries: Mutex::default() }
    }

    pub(crate) fn get(&self, of: &[u8]) -> Option<V> {
        let entries = self.entries();
        let (until, value) = entries.get(&key(of))?;
        (Instant::now() < *until).then(|| value.clone())
    }

    /// Keeps a value for some time. If there is no room, the entry that expires first has to go.
    pub(crate) fn put(&self, of: &[u8], value: V, lasts: Duration) {
        let (now, key) = (Instant::now(), key(of));
        let mut entries = self.entries();
        if entries.len() >= self.limit && !entries.contains_key(&key) {
            entries.retain(|_, (until, _)| now < *until);
            if entries.len() >= self.limit
                && let Some(first) = entries.iter().min_by_key(|(_, (until, _))| *until).map(|(key, _)| *key)
            {
                entries.remove(&first);
            }
        }
        entries.insert(key, (now + lasts, value));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, (Instant, V)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(of: &[u8]) -> Key {
    Sha256::digest(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn entries_expire_and_never_are_more_than_the_limit() {
        let cache = Cache::new(2);
        cache.put(b"a", 1, 10 * SECOND);
        cache.put(b"b", 2, 5 * SECOND);
        assert_eq!((cache.get(b"a"), cache.get(b"b"), cache.get(b"c")), (Some(1), Some(2), None));
        cache.put(b"c", 3, 20 * SECOND);
        assert_eq!((cache.get(b"a"), cache.get(b"b"), cache.get(b"c")), (Some(1), None, Some(3)), "b expires first");
        cache.put(b"a", 4, 30 * SECOND);
        assert_eq!((cache.get(b"a"), cache.get(b"c")), (Some(4), Some(3)), "a known key needs no room");
        tokio::time::advance(20 * SECOND).await;
        assert_eq!((cache.get(b"a"), cache.get(b"c")), (Some(4), None), "expired");
        for number in 0..1000_u32 {
            cache.put(&number.to_be_bytes(), 0, SECOND);
        }
        assert_eq!(cache.entries().len(), 2);
    }

    #[test]
    fn no_token_is_kept() {
        let cache = Cache::new(2);
        cache.put(b"secret", (), SECOND);
        assert!(!format!("{cache:?}").contains("secret"));
    }
}
