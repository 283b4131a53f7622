//! The parts of a running lab, as others find them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A part that runs: where it is, what it says, and how to tell that it is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    pub name: String,
    /// For people: an address, a URL, or nothing.
    pub place: String,
    pub log: PathBuf,
    pub check: Check,
}

/// How to tell that a part is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Check {
    /// A page that is answered.
    Page { url: String, path: String },
    /// Somebody listens there.
    Listens(String),
    /// It is a task of the lab's own process, and is there while that is.
    Task,
}
