//! The pages in docs/cli show what commands print: each is compared with a real run. Here are those of commands that need no more than
//! a cluster with the operator; the others are with the tests of their commands.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use devcluster::{Access, Identity};
use tempfile::TempDir;

use crate::{
    guide::{document::Document, terminal::shown},
    published,
    support::{self, program, run_as, site, text},
};

/// A folder with the program under the names by which kubectl finds it.
pub(crate) fn plugin() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["kubectl-virt_advisor", "kubectl_complete-virt_advisor"] {
        symlink(program(), folder.path().join(name)).unwrap();
    }
    let plugin = folder.path().join("kubectl-virt_advisor");
    (folder, plugin)
}

/// Runs the plugin as somebody.
pub(crate) async fn run(access: &Access, who: &Identity, args: &[&str]) -> Output {
    let (_folder, plugin) = plugin();
    run_as(access, who, &plugin, args, &[("TZ", Path::new("UTC"))]).await
}

/// What a command that succeeds prints.
pub(crate) fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Compares what the page of a command shows with commands and what they have printed, or rewrites it when asked to.
pub(crate) fn check(name: &str, commands: &[(&str, &str)]) {
    let block = |(command, output): &(&str, &str)| format!("$ {command}\n{output}");
    Document::of(commands.iter().map(block).collect()).check(&format!("docs/cli/{name}.md"));
}

/// Output with fixed times: `2026-11-17 21:20`, `21:20:05Z` and ages such as `12s` are different in every run.
pub(crate) fn settled(output: &str) -> String {
    let is_age = |word: &str| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_digit());
        digits.len() < word.len() && ["s", "m", "h"].iter().any(|unit| digits.starts_with(unit)) && word.len() < 7
    };
    let is_day = |word: &str| {
        word.len() == 10 && word.starts_with(|c: char| c.is_ascii_digit()) && word.matches('-').count() == 2
    };
    let is_hour = |word: &str| word.len() == 5 && word.as_bytes()[2] == b':';
    let is_second = |word: &str| word.len() == 9 && word.as_bytes()[2] == b':' && word.ends_with('Z');
    let mut settled = String::new();
    for part in output.split_inclusive([' ', '\n', '(']) {
        let word = part.trim_end_matches([' ', '\n', '(']);
        settled += &match word {
            word if is_age(word) => part.replace(word, "12m"),
            word if is_day(word) => part.replace(word, "2026-03-02"),
            word if is_hour(word) => part.replace(word, "22:00"),
            word if is_second(word) => part.replace(word, "22:00:00Z"),
            _ => part.to_owned(),
        };
    }
    settled
}

#[tokio::test]
async fn preview_shows_a_fresh_plan() {
    let access = site().await.cluster.access();
    let args = ["preview", "virt-higher-density"];
    let output = run(access, &Identity::Admin, &args).await;
    check("preview", &[("kubectl virt-advisor preview virt-higher-density", &printed(&output))]);
    let draft = run(access, &Identity::Admin, &["plan", "virt-higher-density", "--draft"]).await;
    assert_eq!(printed(&output), printed(&draft), "it is another name");
    let json = run(access, &Identity::Admin, &[&args[..], &["-o", "json"]].concat()).await;
    assert_eq!(published::document(&json)["kind"], "PlanReport");
}

#[tokio::test]
async fn doctor_tells_that_everything_is_in_order() {
    let output = run(site().await.cluster.access(), &Identity::Admin, &["doctor"]).await;
    check("doctor", &[("kubectl virt-advisor doctor", &support::settled(&printed(&output)))]);
}

#[tokio::test]
async fn gather_names_the_place_and_what_is_missing_there() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("case-4711.tar.gz");
    let args = ["gather", "-o", target.to_str().unwrap()];
    let output = run(site().await.cluster.access(), &Identity::user("victor", &[]), &args).await;
    let place = printed(&output).replace(&format!("{}/", folder.path().display()), "");
    let listed = Command::new("tar").arg("-tf").arg(&target).output().unwrap();
    check(
        "gather",
        &[
            ("kubectl virt-advisor gather -o case-4711.tar.gz", &(text(&output.stderr) + &place)),
            ("tar -tf case-4711.tar.gz", &printed(&listed)),
        ],
    );
}

#[tokio::test]
async fn the_operator_tells_when_it_begins() {
    let operator = &site().await.operator;
    let log = shown(operator, |log| log.contains("the operator is running")).await;
    let line = |line: &str| {
        let (_, told) = line.split_once(' ').unwrap();
        let told = told.trim_start().split(" id=").next().unwrap();
        let id = if line.contains(" id=") { " id=\"virt-advisor-operator-0_5f0c2d7f1f0a4b5e\"" } else { "" };
        format!("2026-03-02T22:00:00.000000Z  {told}{id}\n")
    };
    let until = log.lines().position(|line| line.contains("the operator is running")).unwrap();
    let first: String = log.lines().take(until + 1).map(line).collect();
    let command =
        "kubectl virt-advisor operator --leader-elect --leader-election-namespace openshift-cnv --log-format text";
    check("operator", &[(command, &first)]);
}

#[test]
fn completion_prints_a_script() {
    let (_folder, plugin) = plugin();
    let script = printed(&Command::new(plugin).args(["completion", "bash"]).output().unwrap());
    let first: String = script.lines().take(3).map(|line| format!("{line}\n")).collect();
    check("completion", &[("kubectl virt-advisor completion bash | head -n 3", &first)]);
}

#[test]
fn man_writes_a_page_for_every_command() {
    let (_folder, plugin) = plugin();
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &Path, args: &[&str]| {
        printed(&Command::new(program).args(args).current_dir(folder.path()).output().unwrap())
    };
    let place = run(&plugin, &["man", "man1"]);
    let listed = run(Path::new("ls"), &["man1"]);
    check("man", &[("kubectl virt-advisor man man1", &place), ("ls man1", &listed)]);
}
