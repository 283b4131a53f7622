//! The diagram and the tables of `docs/dev/architecture.md` show the crates as their manifests have them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use serde_json::Value;

use super::Page;
use crate::commands::{printed, root};

type Uses = BTreeMap<String, BTreeSet<String>>;

/// Which crates of ours each of our crates uses: in its code, and in its tests only. By the names of their folders.
fn manifests() -> (Uses, Uses) {
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(root());
    let metadata: Value = serde_json::from_str(&printed(&output.output().unwrap())).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let folder = |path: &str| Path::new(path).file_name().unwrap().to_str().unwrap().to_owned();
    let (mut code, mut tests) = (Uses::new(), Uses::new());
    for package in packages {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let name = folder(manifest.parent().unwrap().to_str().unwrap());
        for dependency in package["dependencies"].as_array().unwrap() {
            let Some(used) = dependency["path"].as_str().map(folder) else { continue };
            let uses = if dependency["kind"] == "dev" { &mut tests } else { &mut code };
            uses.entry(name.clone()).or_default().insert(used);
        }
        code.entry(name).or_default();
    }
    for (name, used) in &mut tests {
        // A crate may use itself in tests, with a feature.
        used.retain(|used| !code[name].contains(used) && used != name);
    }
    tests.retain(|_, used| !used.is_empty());
    (code, tests)
}

fn page() -> Page {
    Page::at("docs/dev/architecture.md")
}

/// What follows a heading, up to the next one of its rank.
fn section<'a>(page: &'a Page, heading: &str) -> &'a str {
    let (_, rest) =
        page.text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap()
}

#[test]
fn arrows_of_the_diagram_are_the_dependencies_of_the_crates() {
    let page = page();
    let diagram = section(&page, "Crates").split_once("```mermaid\n").unwrap().1.split("```").next().unwrap();
    let mut drawn = Uses::new();
    for (from, to) in diagram.lines().filter_map(|line| line.trim().split_once(" --> ")) {
        drawn.entry(from.to_owned()).or_default().extend(to.split(" & ").map(str::to_owned));
    }
    let (code, _) = manifests();
    let named = |name: &str| diagram.lines().any(|line| line.split([' ', '&']).any(|word| word == name));
    for (name, used) in &code {
        assert!(named(name), "the crate {name} is not in the diagram");
        assert_eq!(drawn.get(name).unwrap_or(&BTreeSet::new()), used, "what the diagram and Cargo.toml of {name} say");
    }
    let unknown: Vec<_> = drawn.keys().filter(|name| !code.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "crates that do not exist: {unknown:?}");
}

#[test]
fn crates_that_only_tests_use_are_listed_apart() {
    let page = page();
    let (_, tests) = manifests();
    let mut users = Uses::new();
    for (name, used) in tests {
        for used in used {
            users.entry(used).or_default().insert(name.clone());
        }
    }
    let (_, table) = section(&page, "Crates").split_once("| only for tests | of |\n|---|---|\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let names = |text: &str| text.split(", ").map(|name| name.trim_matches('`').to_owned()).collect::<BTreeSet<_>>();
    let listed: Uses = rows.map(|(used, by)| (used.trim_matches('`').to_owned(), names(by))).collect();
    assert_eq!(listed, users);
}

#[test]
fn every_crate_has_a_line_that_says_what_it_is_for() {
    let page = page();
    let (_, table) =
        section(&page, "Crates").split_once("| crate | what it is for | may touch |\n|---|---|---|\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| `")?.split_once("` | "));
    let listed: BTreeSet<&str> = rows.map(|(name, _)| name).collect();
    let (code, _) = manifests();
    assert_eq!(listed, code.keys().map(String::as_str).collect());
}

#[test]
fn the_way_of_an_edit_and_of_a_busy_vm_is_told_with_one_file_per_step() {
    let page = page();
    for (heading, steps) in [
        ("An edit of a configuration", &["noticed", "decided", "previewed", "recorded", "written"][..]),
        ("A busy VM", &["measured", "scored", "evicted", "moved"]),
    ] {
        let section = section(&page, heading);
        for step in steps {
            let row = section.lines().find(|line| line.starts_with(&format!("| {step} | `")));
            let row = row.unwrap_or_else(|| panic!("{heading}: no row for {step}"));
            let path = row.split('`').nth(1).unwrap();
            assert!(path.ends_with(".rs") && root().join(path).is_file(), "{heading}: {step}: there is no {path}");
        }
    }
}
