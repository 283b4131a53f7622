//! The result of one check, and how results are shown.

use anstyle::{AnsiColor, Style};
use kube_io::RequestError;
use schemars::JsonSchema;
use serde::Serialize;
use terminal::{Signs, table};

use crate::{prose, reader::why};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Level {
    Ok,
    /// It could not be found out, for example without the right to look.
    Unknown,
    /// It works, and somebody should know.
    Warning,
    /// It does not work until somebody does something.
    Problem,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Unknown => "unknown",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }

    fn sign(self, signs: Signs) -> char {
        match (self, signs) {
            (Level::Ok, Signs::Unicode) => '✔',
            (Level::Ok, Signs::Ascii) => '+',
            (Level::Unknown, _) => '?',
            (Level::Warning, _) => '!',
            (Level::Problem, Signs::Unicode) => '✘',
            (Level::Problem, Signs::Ascii) => 'x',
        }
    }

    fn style(self) -> Style {
        match self {
            Level::Ok => AnsiColor::Green.on_default(),
            Level::Unknown => Style::new().dimmed(),
            Level::Warning => AnsiColor::Yellow.on_default(),
            Level::Problem => AnsiColor::Red.on_default().bold(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) level: Level,
    pub(crate) message: String,
    /// What to do. A problem always has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Finding { check, level: Level::Ok, message: message.into(), remedy: None }
    }

    pub(crate) fn warning(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { level: Level::Warning, remedy: Some(remedy.into()), ..Finding::ok(check, message) }
    }

    pub(crate) fn problem(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { level: Level::Problem, remedy: Some(remedy.into()), ..Finding::ok(check, message) }
    }

    /// For what could not be read.
    pub(crate) fn unknown(check: &'static str, what: &str, error: &RequestError) -> Self {
        let message = format!("{what}: {}", why(&error.class));
        Finding { level: Level::Unknown, ..Finding::ok(check, message) }
    }
}

const INDENT: usize = 11;
/// Programs by whose names a command begins.
const COMMANDS: [&str; 2] = ["kubectl", "virt-advisor"];

/// All findings for people, no line wider than `width`.
pub(crate) fn render(findings: &[Finding], width: usize, signs: Signs) -> String {
    let arrow = if signs == Signs::Unicode { "→" } else { "->" };
    let mut text = String::new();
    for finding in findings {
        let style = finding.level.style();
        let head = format!("{} {}", finding.level.sign(signs), finding.level.word());
        let blank = " ".repeat(INDENT - head.chars().count());
        let body = wrapped(&format!("{}: {}", finding.check, finding.message), width);
        text += &format!("{style}{head}{style:#}{blank}{}\n", body.join(&next_line()));
        if let Some(remedy) = &finding.remedy {
            text += &advice(arrow, remedy, width);
        }
    }
    text + &format!("\n{}\n", summary(findings))
}

/// What to do. A command that ends it stays one that can be copied.
fn advice(arrow: &str, remedy: &str, width: usize) -> String {
    let blank = " ".repeat(INDENT);
    let lines = wrapped(&format!("{arrow} {remedy}"), width);
    let command = COMMANDS.iter().filter_map(|program| Some(remedy.rfind(&format!(": {program} "))? + 2)).max();
    match command {
        Some(start) if lines.len() > 1 => {
            let words = wrapped(&format!("{arrow} {}", &remedy[..start]), width);
            format!("{blank}{}\n{}", words.join(&next_line()), prose::command(&remedy[start..], INDENT + 2, width))
        }
        _ => format!("{blank}{}\n", lines.join(&next_line())),
    }
}

fn next_line() -> String {
    format!("\n{}", " ".repeat(INDENT))
}

/// `1 problem, 2 warnings, 1 not checked`
fn summary(findings: &[Finding]) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let plural = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {word}s")),
    };
    let unknown = count(Level::Unknown);
    let unknown = (unknown > 0).then(|| format!("{unknown} not checked"));
    let parts = [plural(count(Level::Problem), "problem"), plural(count(Level::Warning), "warning"), unknown];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "Everything is in order.".into() } else { format!("{}.", parts.join(", ")) }
}

/// The lines of a text, whose own lines begin anew.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(INDENT).max(20);
    let paragraphs = text.lines().filter(|line| !line.trim().is_empty());
    paragraphs.flat_map(|paragraph| table::wrapped(paragraph, room)).collect()
}

#[cfg(test)]
mod tests {
    use kube_io::Class;

    use super::*;
    use crate::golden;

    fn findings() -> Vec<Finding> {
        let denied = RequestError::other("reading x".into(), "no".into(), Class::Forbidden);
        vec![
            Finding::ok("API server", "v1.36.0 at https://127.0.0.1:6443"),
            Finding::unknown("webhooks", "may not be listed", &denied),
            Finding::warning(
                "clock",
                "the clock here is 40 s behind the one of the API server, and times in logs differ by that",
                "set the clock",
            ),
            Finding::problem(
                "operator",
                "no pod runs",
                "read why: kubectl -n openshift-cnv describe pods -l app.kubernetes.io/name=virt-advisor-operator",
            ),
        ]
    }

    #[test]
    fn each_has_a_sign_and_a_word_and_fits_the_terminal() {
        golden::assert("doctor", |width| render(&findings(), width, Signs::Unicode));
        let plain = anstream::adapter::strip_str(&render(&findings(), 80, Signs::Ascii)).to_string();
        assert!(plain.is_ascii(), "for terminals that show nothing else: {plain}");
    }

    #[test]
    fn color_is_on_sign_and_word_only() {
        let text = render(&findings()[3..], 80, Signs::Unicode);
        let (colored, rest) = text.split_once("\u{1b}[0m").unwrap();
        assert!(colored.ends_with("✘ problem") && !rest.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn without_findings_there_is_nothing_to_do() {
        assert_eq!(summary(&findings()[..1]), "Everything is in order.");
        assert_eq!(summary(&[findings(), findings()].concat()), "2 problems, 2 warnings, 2 not checked.");
    }

    #[test]
    fn lines_of_a_message_stay_lines_and_empty_ones_go() {
        let word = "x".repeat(40);
        assert_eq!(wrapped(&format!("a {word} {word} b\n\nc"), 80), [&format!("a {word}"), &format!("{word} b"), "c"]);
    }
}
