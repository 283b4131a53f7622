//! Bytes with their SHA-256 digest.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Bytes that others refer to by their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    /// As `sha256:0a1b…`.
    pub(crate) digest: String,
    pub(crate) bytes: Vec<u8>,
}

impl Blob {
    pub(crate) fn new(bytes: Vec<u8>) -> Blob {
        Blob { digest: format!("sha256:{}", sha256(&bytes)), bytes }
    }

    /// The digits alone.
    pub(crate) fn hex(&self) -> &str {
        self.digest.trim_start_matches("sha256:")
    }
}

/// The digits of the digest of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}
