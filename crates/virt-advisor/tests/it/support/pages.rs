//! The pages for people in trouble: their outputs are real, their commands work, and the reasons that they explain exist.

use std::{collections::BTreeSet, path::Path};

use devcluster::Identity;

use super::{program, run_as, settled, site, text};
use crate::guide::{
    document::Document,
    terminal::{Terminal, root},
};

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

#[tokio::test]
async fn the_page_on_trouble_shows_a_real_doctor() {
    let output = run_as(site().await.cluster.access(), &Identity::Admin, &program(), &["doctor"], &[]).await;
    Document::of(format!("$ virt-advisor doctor\n{}", settled(&text(&output.stdout)))).check("docs/troubleshooting.md");
}

#[tokio::test]
async fn the_page_on_collecting_shows_a_real_summary() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("case");
    let args = ["gather", "-o", target.to_str().unwrap()];
    let output = run_as(site().await.cluster.access(), &Identity::user("victor", &[]), &program(), &args, &[]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let summary = std::fs::read_to_string(target.join("summary.txt")).unwrap();
    let line = |line: &str| match line {
        line if line.starts_with("virt-advisor gather, ") => "virt-advisor gather, 2026-01-12T09:30:00Z\n".to_owned(),
        line if line.starts_with("API server ") => "API server   v1.36.0\n".to_owned(),
        line => format!("{line}\n"),
    };
    let summary: String = summary.lines().map(line).collect();
    let commands = "$ virt-advisor gather -o case-4711\ncase-4711\n$ cat case-4711/summary.txt\n";
    Document::of(format!("{commands}{summary}")).check("docs/gather.md");
}

/// The lines of all blocks that are for a shell.
fn commands(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        match line {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            line if is_inside => found.push(line),
            _ => {}
        }
    }
    found
}

#[tokio::test]
async fn every_command_of_the_page_on_trouble_works() {
    let terminal = Terminal::open(site().await.cluster.access()).await;
    let commands: Vec<String> = commands(&page("troubleshooting.md")).into_iter().map(str::to_owned).collect();
    assert!(commands.len() > 10, "{commands:?}");
    let folder = program().parent().unwrap().to_owned();
    for command in commands {
        terminal.run(&format!("PATH=\"$PATH:{}\"; {command}", folder.display())).await;
    }
}

/// The names in the first cells of tables.
fn explained(text: &str) -> BTreeSet<&str> {
    text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)).collect()
}

/// All texts of the product's own code, without its tests.
fn sources() -> String {
    let mut text = String::new();
    let mut folders: Vec<_> =
        ["advisor", "api", "operator"].map(|name| root().join("crates").join(name).join("src")).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|name| name == "tests");
            match path.is_dir() {
                _ if is_test => {}
                true => folders.push(path),
                false if path.extension() == Some(Path::new("rs").as_os_str()) => {
                    text += std::fs::read_to_string(path).unwrap().split("#[cfg(test)]\nmod tests {").next().unwrap();
                }
                false => {}
            }
        }
    }
    text
}

#[test]
fn every_reason_that_the_page_explains_is_written_by_the_operator() {
    let (page, sources) = (page("troubleshooting.md"), sources());
    let explained = explained(&page);
    assert!(explained.len() > 25, "{explained:?}");
    for name in explained {
        assert!(sources.contains(&format!("\"{name}\"")), "{name} is nowhere in the code");
    }
}

#[test]
fn every_reason_that_waits_for_a_person_is_explained() {
    let (page, sources) = (page("troubleshooting.md"), sources());
    let explained = explained(&page);
    let mut written: BTreeSet<&str> = sources
        .split("with_reason(")
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .collect();
    let refusals = sources
        .split("Refusal::")
        .filter_map(|rest| rest.split_once(" => \"").filter(|(variant, _)| variant.ends_with("{ .. }")));
    written.extend(refusals.filter_map(|(_, rest)| rest.split('"').next()));
    assert!(written.len() > 5, "{written:?}");
    for reason in written {
        assert!(explained.contains(reason), "{reason} is not explained in docs/troubleshooting.md");
    }
    // Reasons that have a name in the code; modules may use the same name for others.
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let named = sources.split("with_reason(").skip(1).filter_map(|rest| rest.trim_start().split([',', ')']).next());
    let named: BTreeSet<&str> = named.filter(|name| !name.is_empty() && is_name(name)).collect();
    assert!(named.len() > 7, "{named:?}");
    for name in named {
        let definition = format!("const {name}: &str = \"");
        let values = sources.split(definition.as_str()).skip(1);
        let values: Vec<&str> = values.filter_map(|rest| rest.split('"').next()).collect();
        let is_explained = values.iter().any(|value| explained.contains(value));
        assert!(is_explained, "{name}, one of {values:?}, is not explained in docs/troubleshooting.md");
    }
}
