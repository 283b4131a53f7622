//! Outputs in a guide of ours: commands are run, what they print is put where the guide has a place for it, and a guide
//! that shows anything else is out of date.

use std::path::Path;

use super::terminal::{Terminal, root};
use crate::{cli_page, support};

const START: &str = "<!-- output: kept current by a test -->\n";
const END: &str = "<!-- end of output -->";

/// What stands for every time, uid and resource version, which no two runs have in common.
const TIME: &str = "2026-01-12T09:30:00Z";
const AGE: &str = "5m";

#[derive(Debug, Default)]
pub(crate) struct Document {
    blocks: Vec<String>,
}

impl Document {
    /// For a page with one place, and this text in it: commands and what they print.
    pub(crate) fn of(block: String) -> Self {
        Document { blocks: vec![block] }
    }

    /// Runs commands for the next place in the guide.
    pub(crate) async fn show(&mut self, terminal: &Terminal, commands: &[&str]) {
        self.blocks.push(String::new());
        self.also(terminal, commands).await;
    }

    /// Runs more commands for the same place.
    pub(crate) async fn also(&mut self, terminal: &Terminal, commands: &[&str]) {
        for command in commands {
            let output = terminal.run(command).await;
            self.add(command, &output);
        }
    }

    /// Runs a command that is refused for the next place in the guide, and shows what it says.
    pub(crate) async fn show_refused(&mut self, terminal: &Terminal, command: &str) {
        let output = terminal.try_run(command).await;
        assert!(!output.status.success(), "{command}: {}", support::text(&output.stdout));
        self.blocks.push(String::new());
        self.add(command, &support::text(&output.stderr));
    }

    fn add(&mut self, command: &str, output: &str) {
        let is_ours = command.starts_with("kubectl virt-advisor ");
        let output = if is_ours { cli_page::settled(output) } else { settled(output) };
        if let Some(block) = self.blocks.last_mut() {
            *block += &format!("$ {command}\n{output}");
        }
    }

    /// Compares the guide with what was shown, or rewrites it when asked to.
    pub(crate) fn check(self, path: &str) {
        let path = root().join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        let current = filled(&text, &self.blocks).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, current).unwrap();
        } else {
            assert_current(&path, &text, &current);
        }
    }
}

fn assert_current(path: &Path, text: &str, current: &str) {
    let line = text.lines().zip(current.lines()).position(|(old, new)| old != new).unwrap_or(text.lines().count());
    let nearby = |text: &str| text.lines().skip(line).take(5).collect::<Vec<_>>().join("\n");
    assert!(
        text == current,
        "{} is out of date from line {}: run `UPDATE_DOCS=1 cargo test -p virt-advisor` and commit the result. It has\n{}\nand now it is\n{}",
        path.display(),
        line + 1,
        nearby(text),
        nearby(current),
    );
}

/// The guide with these blocks in its places, one after the other.
fn filled(text: &str, blocks: &[String]) -> Result<String, String> {
    let places = text.matches(START).count();
    if places != blocks.len() {
        return Err(format!("there are {places} places for output and {} outputs", blocks.len()));
    }
    let mut parts = text.split(START);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for (part, block) in parts.zip(blocks) {
        let (_, after) = part.split_once(END).ok_or_else(|| format!("a place for output has no {END}"))?;
        filled += &format!("{START}```console\n{block}```\n{END}{after}");
    }
    Ok(filled)
}

/// Output without what is different in every run.
fn settled(output: &str) -> String {
    let ages = output.lines().next().is_some_and(|header| header.split_whitespace().next_back() == Some("AGE"));
    let line = |(number, line): (usize, &str)| {
        let indent = &line[..line.len() - line.trim_start().len()];
        match line.trim_start().split_once(' ') {
            Some(("uid:", _)) => format!("{indent}uid: 1f6d2c1e-8d5b-4f55-9d3c-0f6a3c5a7b21\n"),
            Some(("resourceVersion:", _)) => format!("{indent}resourceVersion: \"1234\"\n"),
            Some(_) if ages && number > 0 => {
                let age = line.split_whitespace().next_back().unwrap_or_default();
                format!("{}{AGE}\n", line.trim_end().trim_end_matches(age))
            }
            _ => format!("{}\n", with_fixed_times(line).trim_end()),
        }
    };
    output.lines().enumerate().map(line).collect()
}

fn with_fixed_times(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = (0..rest.len()).find(|&at| is_time_at(rest, at)) {
        text += &rest[..at];
        text += TIME;
        rest = &rest[at + TIME.len()..];
    }
    text + rest
}

fn is_time_at(text: &str, at: usize) -> bool {
    let Some(part) = text.get(at..at + TIME.len()) else { return false };
    part.bytes().zip(TIME.bytes()).all(|(byte, model)| byte == model || byte.is_ascii_digit() && model.is_ascii_digit())
}

#[test]
fn what_differs_in_every_run_reads_the_same_in_a_guide() {
    let yaml = "metadata:\n  creationTimestamp: \"2025-11-16T00:12:13Z\"\n  uid: abc\n  resourceVersion: \"77\"\n";
    let expected = format!(
        "metadata:\n  creationTimestamp: \"{TIME}\"\n  uid: 1f6d2c1e-8d5b-4f55-9d3c-0f6a3c5a7b21\n  resourceVersion: \"1234\"\n"
    );
    assert_eq!(settled(yaml), expected);
    let table = "NAME   PHASE     AGE\na      Ignored   44s\nb      Ignored   3m2s\n";
    assert_eq!(settled(table), "NAME   PHASE     AGE\na      Ignored   5m\nb      Ignored   5m\n");
    assert_eq!(settled("one\ntwo"), "one\ntwo\n");
}

#[test]
fn outputs_go_where_the_guide_has_places_for_them_and_nothing_else_changes() {
    let guide = format!("a\n{START}old\n{END}\nb\n{START}{END}\nc");
    let blocks = ["new\n".to_owned(), "more\n".to_owned()];
    let block = |text: &str| format!("{START}```console\n{text}```\n{END}");
    assert_eq!(filled(&guide, &blocks).unwrap(), format!("a\n{}\nb\n{}\nc", block("new\n"), block("more\n")));
    assert_eq!(filled(&guide, &blocks[..1]).unwrap_err(), "there are 2 places for output and 1 outputs");
}
