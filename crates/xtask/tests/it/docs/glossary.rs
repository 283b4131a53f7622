//! The types that `docs/dev/glossary.md` names exist where it says.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Page, files_under};
use crate::commands::root;

/// Whether a source declares an item of that name.
fn declares(source: &str, kinds: &[&str], name: &str) -> bool {
    source.lines().any(|line| {
        let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        words.windows(2).any(|pair| kinds.contains(&pair[0]) && pair[1] == name)
    })
}

/// The folder of a crate that is called `name` in code.
fn folder(name: &str) -> PathBuf {
    Path::new("crates").join(name.replace('_', "-")).join("src")
}

fn sources(name: &str) -> String {
    let mut files = Vec::new();
    files_under(&folder(name), "rs", &mut files);
    files.iter().map(|file| fs::read_to_string(root().join(file)).unwrap()).collect()
}

#[test]
fn every_word_names_a_type_that_exists() {
    let page = Page::at("docs/dev/glossary.md");
    let rows: Vec<&str> = page.prose().filter(|line| line.starts_with("| **")).collect();
    assert!(rows.len() > 20, "{rows:?}");
    let mut missing = Vec::new();
    for row in rows {
        let path = row.rsplit('`').nth(1).unwrap_or_default();
        let parts: Vec<&str> = path.split("::").collect();
        let [name, modules @ .., item] = &parts[..] else {
            missing.push(format!("no type in: {row}"));
            continue;
        };
        if !root().join(folder(name)).is_dir() {
            missing.push(format!("there is no crate {name}: {path}"));
            continue;
        }
        let source = sources(name);
        let known = modules.iter().all(|module| declares(&source, &["mod"], module))
            && declares(&source, &["struct", "enum", "trait", "type", "fn", "mod"], item);
        if !known {
            missing.push(format!("there is no {path}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn words_are_in_the_order_of_the_alphabet_and_explained_in_one_sentence() {
    let page = Page::at("docs/dev/glossary.md");
    for section in page.text.split("\n## ").skip(1) {
        let rows: Vec<Vec<&str>> =
            section.lines().filter(|line| line.starts_with("| **")).map(|line| line.split(" | ").collect()).collect();
        let words: Vec<String> = rows.iter().map(|row| row[0].replace(['|', '*'], "").to_lowercase()).collect();
        assert!(words.is_sorted(), "{words:?}");
        for meaning in rows.iter().map(|row| row[1]) {
            assert!(meaning.ends_with('.') && !meaning.contains(". "), "not one sentence: {meaning}");
        }
    }
}
