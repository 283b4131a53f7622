//! The files of the repository that belong to profiles, as texts.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context;

/// Where they are: the folder, and how their names end.
const PLACES: [(&str, &[&str]); 8] = [
    (".github", &["CODEOWNERS"]),
    ("config/crd", &[".yaml"]),
    ("config/rbac", &["role.yaml"]),
    ("config/samples", &[".yaml"]),
    ("crates/advisor", &[".rs", ".md"]),
    ("crates/api", &[".rs", ".snap"]),
    ("dist", &["install.yaml"]),
    ("docs", &[".md"]),
];

/// By path from the root of the repository.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree(pub(super) BTreeMap<String, String>);

impl Tree {
    pub(super) fn read(root: &Path) -> anyhow::Result<Tree> {
        let mut tree = Tree::default();
        for (folder, endings) in PLACES {
            tree.add(root, folder, endings).with_context(|| format!("reading {folder}"))?;
        }
        tree.0.insert("CHANGELOG.md".to_owned(), fs::read_to_string(root.join("CHANGELOG.md"))?);
        Ok(tree)
    }

    fn add(&mut self, root: &Path, folder: &str, endings: &[&str]) -> anyhow::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.add(root, &path, endings)?;
            } else if endings.iter().any(|ending| path.ends_with(ending)) {
                let text = fs::read_to_string(entry.path()).with_context(|| path.clone())?;
                self.0.insert(path, text);
            }
        }
        Ok(())
    }

    /// Whether a file is there and contains a text.
    pub(super) fn has(&self, path: &str, text: &str) -> bool {
        self.0.get(path).is_some_and(|found| found.contains(text))
    }

    /// The files in a folder and below it.
    pub(super) fn under(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        let files = self.0.iter().filter(move |(path, _)| path.starts_with(folder));
        files.map(|(path, text)| (path.as_str(), text.as_str()))
    }
}
