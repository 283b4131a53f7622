//! Links lead to files and headings that exist, and every page of `docs/` can be reached from its index.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use super::{Page, pages};
use crate::commands::root;

/// A link to a file of this repository.
struct Link<'a> {
    file: PathBuf,
    heading: Option<&'a str>,
}

fn links(page: &Page) -> Vec<Link<'_>> {
    let targets = page.prose().flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split_once(')')));
    let ours = targets.map(|(target, _)| target).filter(|target| !target.contains("://"));
    ours.map(|target| {
        let (file, heading) = match target.split_once('#') {
            Some((file, heading)) => (file, Some(heading)),
            None => (target, None),
        };
        let folder = page.path.parent().unwrap_or(Path::new(""));
        let file = if file.is_empty() { page.path.clone() } else { normal(&folder.join(file)) };
        Link { file, heading }
    })
    .collect()
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(parts.pop(), "{} leads out of the repository", path.display()),
            part => parts.push(part),
        }
    }
    parts
}

/// What a heading is called in links, as GitHub has it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

fn anchors(page: &Page) -> BTreeSet<String> {
    page.prose().filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading_that_exist() {
    let mut dead = Vec::new();
    for page in pages() {
        for Link { file, heading } in links(&page) {
            let there = root().join(&file).exists();
            let known = heading.is_none_or(|heading| {
                file.extension().is_some_and(|extension| extension == "md")
                    && there
                    && anchors(&Page::at(&file)).contains(heading)
            });
            if !there || !known {
                let heading = heading.map_or_else(String::new, |heading| format!("#{heading}"));
                dead.push(format!("{}: {}{heading}", page.path.display(), file.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

#[test]
fn every_page_of_the_documentation_is_reached_from_its_index() {
    let mut reached = BTreeSet::from([PathBuf::from("docs/README.md")]);
    let mut next: Vec<PathBuf> = reached.iter().cloned().collect();
    while let Some(path) = next.pop() {
        for Link { file, .. } in links(&Page::at(path)) {
            let is_page = file.starts_with("docs") && file.extension().is_some_and(|extension| extension == "md");
            if is_page && reached.insert(file.clone()) {
                next.push(file);
            }
        }
    }
    let all = pages().into_iter().map(|page| page.path).filter(|path| path.starts_with("docs"));
    let orphans: Vec<_> = all.filter(|path| !reached.contains(path)).collect();
    assert!(orphans.is_empty(), "no page leads to {orphans:?}: link them in docs/README.md");
}

#[test]
fn files_of_the_tree_that_pages_name_exist() {
    let mut dead = Vec::new();
    // The changelog names what there was.
    for page in pages().into_iter().filter(|page| page.path != Path::new("CHANGELOG.md")) {
        let named = page.code().into_iter().filter(|code| {
            let ours = ["crates/", "config/", "docs/", "tools/"].iter().any(|folder| code.starts_with(folder));
            ours && !code.contains(['<', '*', ' ', '{'])
        });
        let missing = named.filter(|path| !root().join(path).exists());
        dead.extend(missing.map(|path| format!("{}: {path}", page.path.display())));
    }
    assert!(dead.is_empty(), "files that do not exist:\n{}", dead.join("\n"));
}

#[test]
fn headings_are_linked_as_github_names_them() {
    assert_eq!(anchor(" The stand-in for the descheduler operator"), "the-stand-in-for-the-descheduler-operator");
    assert_eq!(anchor(" `status.phase`"), "statusphase");
    assert_eq!(anchor(" When something fails, and why"), "when-something-fails-and-why");
}
