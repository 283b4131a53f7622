//! Shared values that know their own hash, so that a state of the model is cheap to copy, to hash and to compare.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

use serde::Serialize;

#[derive(Debug)]
pub(crate) struct Hashed<T> {
    value: Arc<T>,
    hash: u64,
}

impl<T: Serialize> Hashed<T> {
    pub(crate) fn new(value: T) -> Self {
        let hash = digest(serde_json::to_vec(&value).unwrap());
        Hashed::known(value, hash)
    }
}

impl<T> Hashed<T> {
    /// A value whose hash is known.
    pub(crate) fn known(value: T, hash: u64) -> Self {
        Hashed { value: Arc::new(value), hash }
    }
}

impl<T> Clone for Hashed<T> {
    fn clone(&self) -> Self {
        Hashed { value: self.value.clone(), hash: self.hash }
    }
}

impl<T> Deref for Hashed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl<T> PartialEq for Hashed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

/// The same value has the same digest in every run.
pub(crate) fn digest(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
