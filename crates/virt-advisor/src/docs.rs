//! The pages in `docs/cli`, made from the command line and the types: one page per command, an index, and the JSON schema of the outputs.
//! The tests compare them with what is committed, and write them when `UPDATE_DOCS` is set.

mod page;
mod schema;

use std::{fs, path::PathBuf};

use clap::{Command, CommandFactory};

use crate::{Cli, failure::Failure, program};

const UPDATE: &str = "run `UPDATE_DOCS=1 cargo test -p virt-advisor` and commit the result";
const START: &str = "<!-- output: kept current by a test -->\n";
const END: &str = "<!-- end of output -->\n";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli")
}

/// The command line as the plugin has it.
fn plugin() -> Command {
    let mut command = program::named(Cli::command(), "kubectl virt-advisor");
    command.build();
    command
}

fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| below.get_name() != "help")
}

fn check(file: &str, expected: &str) {
    let path = folder().join(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(folder()).unwrap();
        return fs::write(path, expected).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), expected, "docs/cli/{file}: {UPDATE}");
}

/// What an integration test has written into a page: it runs the command.
fn output(file: &str) -> String {
    let page = fs::read_to_string(folder().join(file)).unwrap_or_default();
    let inside = page.split_once(START).and_then(|(_, rest)| rest.split_once(END));
    inside.map(|(inside, _)| inside.to_owned()).unwrap_or_default()
}

#[test]
fn every_command_has_a_page_with_its_options_its_examples_and_real_output() {
    let command = plugin();
    for below in commands(&command) {
        let (file, output) = (format!("{}.md", below.get_name()), output(&format!("{}.md", below.get_name())));
        check(&file, &(page::page(below) + &format!("\n## What it shows\n\n{START}{output}{END}")));
        let is_real = output.contains(&format!("$ kubectl virt-advisor {}", below.get_name()));
        assert!(is_real || std::env::var_os("UPDATE_DOCS").is_some(), "docs/cli/{file} shows no output: {UPDATE}");
    }
}

#[test]
fn the_index_has_all_commands_and_exit_codes() {
    let command = plugin();
    check("README.md", &page::index(&command, commands(&command), Failure::EXIT_CODES));
}

#[test]
fn no_page_is_about_a_command_that_is_gone() {
    let command = plugin();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_known = |page: &str| page == "README" || commands(&command).any(|below| below.get_name() == page);
        assert!(name == "schema.json" || name.strip_suffix(".md").is_some_and(is_known), "docs/cli/{name}");
    }
}

#[test]
fn the_schema_of_outputs_is_that_of_the_types() {
    check("schema.json", &(serde_json::to_string_pretty(&schema::schema()).unwrap() + "\n"));
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let command = plugin();
    for below in commands(&command) {
        let help = below.clone().render_long_help().to_string();
        let example = format!("\nExamples:\n  kubectl virt-advisor {}", below.get_name());
        assert!(help.contains(&example), "{}: {help}", below.get_name());
    }
}

/// The text as a manual page has it.
fn roff(text: &str) -> String {
    text.replace('-', "\\-")
}

#[test]
fn every_command_has_a_manual_page_with_its_examples() {
    let folder = tempfile::tempdir().unwrap();
    clap_mangen::generate_to(crate::documented(), folder.path()).unwrap();
    let page =
        |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let command = plugin();
    for below in commands(&command) {
        let name = below.get_name();
        let page = page(&format!("virt-advisor-{name}.1"));
        assert!(page.contains(&format!("virt\\-advisor {name}")), "{name}: {page}");
        assert!(page.contains("Examples:"), "{name}: {page}");
    }
    assert!(page("virt-advisor.1").contains("virt\\-advisor\\-plan(1)"));
    let program = page("virt-advisor.1");
    for (code, meaning) in Failure::EXIT_CODES {
        let is_told = |line: &str| line.trim_start().starts_with(&code.to_string()) && line.contains(&roff(meaning));
        assert!(program.lines().any(is_told), "{code} {meaning}: {program}");
    }
}
