//! The documentation leads where it says, and what it shows of the code is true.

mod architecture;
mod glossary;
mod guides;
mod links;
mod sources;
mod words;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::commands::root;

/// A page: its path from the root of the repository, and its text.
struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    fn at(path: impl Into<PathBuf>) -> Page {
        let path = path.into();
        let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Page { path, text }
    }

    /// The lines outside of blocks of code.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut in_block = false;
        self.text.lines().filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            in_block ^= fence;
            !fence && !in_block
        })
    }

    /// What is written as code in the prose: `like this`.
    fn code(&self) -> Vec<&str> {
        self.prose().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
    }
}

/// Every page of the repository.
fn pages() -> Vec<Page> {
    let mut files = Vec::new();
    for file in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        files.push(PathBuf::from(file));
    }
    for folder in ["docs", "crates"] {
        files_under(Path::new(folder), "md", &mut files);
    }
    assert!(files.len() > 30, "{files:?}");
    files.into_iter().map(Page::at).collect()
}

/// The files with an extension in a folder and below it.
fn files_under(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            files_under(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}
