//! The parts of a running lab, for `status` and `logs`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    pub name: String,
    /// An address, a URL, or empty. Only shown.
    pub place: String,
    pub log: PathBuf,
    pub check: Check,
}

/// How to check that a part is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Check {
    /// A GET of the page succeeds.
    Page { url: String, path: String },
    /// The address accepts connections.
    Listens(String),
    /// A task of the lab's process, which runs as long as the process.
    Task,
}
