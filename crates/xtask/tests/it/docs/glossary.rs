//! The types that `docs/dev/glossary.md` names are declared where it says.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Page, files_under};
use crate::commands::root;

/// Whether a line declares an item of that name: `pub(crate) struct Name`, for example, and no use of it.
fn declares(line: &str, name: &str) -> bool {
    let is_type = name.starts_with(char::is_uppercase);
    let kinds: &[&str] = if is_type { &["struct", "enum", "trait", "type"] } else { &["fn", "mod"] };
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').map_or(rest, |(_, rest)| rest));
    let Some((kind, rest)) = line.split_once(' ') else { return false };
    let rest = rest.strip_prefix(name);
    kinds.contains(&kind) && rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The sources of a module: its file, and all files of its folder. A crate has one folder.
fn sources(name: &str, modules: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new("crates").join(name.replace('_', "-")).join("src").join(modules.join("/"));
    let mut files = vec![folder.with_extension("rs")];
    files.retain(|file| root().join(file).is_file());
    if root().join(&folder).is_dir() {
        files_under(&folder, "rs", &mut files);
    }
    files
}

/// Why the item of a path such as `advisor::plan::Plan` is not where the path says, if so.
fn problem(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split("::").collect();
    let [name, modules @ .., item] = &parts[..] else { return Some(format!("{path:?} is no path of an item")) };
    let files = sources(name, modules);
    let is_declared =
        |file: &PathBuf| fs::read_to_string(root().join(file)).unwrap().lines().any(|line| declares(line, item));
    match (files.is_empty(), files.iter().any(is_declared)) {
        (true, _) => Some(format!("{path}: there is no such module")),
        (false, false) => Some(format!("{path}: declared in none of {files:?}")),
        (false, true) => None,
    }
}

#[test]
fn a_declaration_is_told_from_a_use() {
    for (line, name, expected) in [
        ("pub struct Plan {", "Plan", true),
        ("    pub(crate) enum Plan {", "Plan", true),
        ("trait Plan: Sized {", "Plan", true),
        ("pub type Plan = Vec<Item>;", "Plan", true),
        ("pub fn plan(config: &Config) -> Plan {", "plan", true),
        ("mod plan;", "plan", true),
        ("pub struct PlanView {", "Plan", false),
        ("pub use plan::Plan;", "Plan", false),
        ("/// The type Plan is one of ours.", "Plan", false),
        ("pub fn Plan() {", "Plan", false),
        ("type plan = u8;", "plan", false),
    ] {
        assert_eq!(declares(line, name), expected, "{line}");
    }
}

#[test]
fn an_item_counts_only_where_the_path_says() {
    assert_eq!(problem("advisor::plan::Plan"), None);
    for path in ["advisor::drift::Plan", "advisor::nowhere::Plan", "nobody::plan::Plan", "advisor::plan::Plane", "Plan"]
    {
        assert!(problem(path).is_some(), "{path}");
    }
}

#[test]
fn every_word_names_an_item_that_its_module_declares() {
    let page = Page::at("docs/dev/glossary.md");
    let rows: Vec<&str> = page.prose().filter(|line| line.starts_with("| **")).collect();
    assert!(rows.len() > 20, "{rows:?}");
    let problems: Vec<String> =
        rows.iter().filter_map(|row| problem(row.rsplit('`').nth(1).unwrap_or_default())).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
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
