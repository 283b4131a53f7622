//! The commit that an image is built from: its name, and its time instead of the time of the build.

use std::process::Command;

use anyhow::Context;
use jiff::Timestamp;

use crate::root;

/// Overrides the time, as other tools have it: <https://reproducible-builds.org/specs/source-date-epoch/>.
const TIME: &str = "SOURCE_DATE_EPOCH";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    hash: Option<String>,
    /// Whether files differ from those of the commit.
    is_modified: bool,
    time: Timestamp,
}

impl Commit {
    /// The commit of this tree. A tree without git has none, and began with the epoch unless the variable says otherwise.
    pub(crate) fn current() -> anyhow::Result<Commit> {
        let hash = git(&["rev-parse", "--verify", "HEAD"]);
        let is_modified =
            hash.is_some() && git(&["status", "--porcelain", "--untracked-files=no"]) != Some(String::new());
        let seconds = match std::env::var(TIME) {
            Ok(text) => Some(text),
            Err(_) => git(&["log", "-1", "--format=%ct"]),
        };
        let seconds = seconds.unwrap_or_else(|| "0".to_owned());
        let time = seconds.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
        let time = time.with_context(|| format!("{TIME} is {seconds}, which is no number of seconds since 1970"))?;
        Ok(Commit { hash, is_modified, time })
    }

    #[cfg(test)]
    pub(crate) fn at(hash: &str, seconds: i64) -> Commit {
        Commit { hash: Some(hash.to_owned()), is_modified: false, time: Timestamp::from_second(seconds).unwrap() }
    }

    pub(crate) fn hash(&self) -> Option<&str> {
        self.hash.as_deref()
    }

    pub(crate) fn is_modified(&self) -> bool {
        self.is_modified
    }

    /// The hash, with a mark if the tree is another one.
    pub(crate) fn revision(&self) -> Option<String> {
        let mark = if self.is_modified { "-modified" } else { "" };
        self.hash.as_ref().map(|hash| format!("{hash}{mark}"))
    }

    pub(crate) fn time(&self) -> String {
        self.time.to_string()
    }

    pub(crate) fn seconds(&self) -> u64 {
        u64::try_from(self.time.as_second()).unwrap_or_default()
    }
}

/// What git says about this tree. None if there is no git, or no repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
