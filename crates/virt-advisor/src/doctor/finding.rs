//! The result of one check, and how results are shown.

use anstyle::{AnsiColor, Style};
use operator::RequestError;
use serde::Serialize;

use crate::reader::why;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// Which characters the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signs {
    Unicode,
    Ascii,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
            let lines = wrapped(&format!("{arrow} {remedy}"), width);
            text += &format!("{}{}\n", " ".repeat(INDENT), lines.join(&next_line()));
        }
    }
    text + &format!("\n{}\n", verdict(findings))
}

fn next_line() -> String {
    format!("\n{}", " ".repeat(INDENT))
}

/// `1 problem, 2 warnings, 1 not checked`
fn verdict(findings: &[Finding]) -> String {
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

/// The lines of a text. A word that is wider than a line is not broken: it may have to be copied.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(INDENT).max(20);
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use operator::Class;

    use super::*;

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
    fn one_line_each_with_a_word_and_a_sign_within_80_columns() {
        let plain = |signs| anstream::adapter::strip_str(&render(&findings(), 80, signs)).to_string();
        let text = plain(Signs::Unicode);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text, @r"
        ✔ ok       API server: v1.36.0 at https://127.0.0.1:6443
        ? unknown  webhooks: may not be listed: forbidden (403)
        ! warning  clock: the clock here is 40 s behind the one of the API server, and
                   times in logs differ by that
                   → set the clock
        ✘ problem  operator: no pod runs
                   → read why: kubectl -n openshift-cnv describe pods -l
                   app.kubernetes.io/name=virt-advisor-operator

        1 problem, 1 warning, 1 not checked.
        ");
        assert!(plain(Signs::Ascii).is_ascii(), "for terminals that show nothing else");
    }

    #[test]
    fn color_is_on_sign_and_word_only() {
        let text = render(&findings()[3..], 80, Signs::Unicode);
        let (colored, rest) = text.split_once("\u{1b}[0m").unwrap();
        assert!(colored.ends_with("✘ problem") && !rest.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn without_findings_there_is_nothing_to_do() {
        assert_eq!(verdict(&findings()[..1]), "Everything is in order.");
        assert_eq!(verdict(&[findings(), findings()].concat()), "2 problems, 2 warnings, 2 not checked.");
    }

    #[test]
    fn a_long_word_is_not_broken() {
        let word = "x".repeat(100);
        assert_eq!(wrapped(&format!("a {word} b"), 80), ["a", word.as_str(), "b"]);
    }
}
