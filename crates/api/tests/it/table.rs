//! Tables of requests and expected answers. A table always runs to its end: the failure shows every failed case with its answer.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    manifest::{Change, Manifest},
    server::{Answer, Server},
};

#[derive(Debug)]
pub(crate) struct Case {
    subject: Subject,
    validation: &'static str,
    expected: Expected,
}

#[derive(Debug)]
pub(crate) enum Subject {
    Object(Manifest),
    Change(Change),
}

#[derive(Debug)]
enum Expected {
    Accepted,
    Stored { path: &'static str, value: Value },
    Refused(String),
    Warned(&'static str),
}

impl From<Manifest> for Subject {
    fn from(manifest: Manifest) -> Self {
        Subject::Object(manifest)
    }
}

impl From<Change> for Subject {
    fn from(change: Change) -> Self {
        Subject::Change(change)
    }
}

/// The server accepts it.
pub(crate) fn accept(subject: impl Into<Subject>) -> Case {
    Case { subject: subject.into(), validation: "Strict", expected: Expected::Accepted }
}

/// The server accepts it, and the object then has this value at the dotted path, written as YAML; null means absent.
pub(crate) fn store(subject: impl Into<Subject>, path: &'static str, value: &str) -> Case {
    let expected = Expected::Stored { path, value: from_yaml(value) };
    Case { subject: subject.into(), validation: "Strict", expected }
}

/// The server refuses it, with this text as part of its message.
pub(crate) fn reject(subject: impl Into<Subject>, message: impl Into<String>) -> Case {
    Case { subject: subject.into(), validation: "Strict", expected: Expected::Refused(message.into()) }
}

/// The server accepts it with this warning, in the validation mode that kubectl uses by default.
pub(crate) fn warn(subject: impl Into<Subject>, warning: &'static str) -> Case {
    Case { subject: subject.into(), validation: "Warn", expected: Expected::Warned(warning) }
}

/// One case for each of the words, which are separated by bars.
pub(crate) fn each(words: &str, case: impl FnMut(&str) -> Case) -> Vec<Case> {
    words.split(" | ").map(case).collect()
}

/// Checks that the types, too, can read the good words and not the bad ones, all of them written as YAML.
pub(crate) fn check_types<T: DeserializeOwned>(good: &str, bad: &str, read: impl Fn(&T) -> bool) {
    for (words, readable) in [(good, true), (bad, false)] {
        for word in words.split(" | ") {
            let value: T = serde_json::from_value(from_yaml(word)).unwrap();
            assert_eq!(read(&value), readable, "{word}");
        }
    }
}

/// What the server says when a rule does not hold for the value, written as YAML, of the field at the path.
pub(crate) fn invalid(path: &str, value: &str, rule: &str) -> String {
    format!("{path}: Invalid value: {}: {rule}", from_yaml(value))
}

/// What the server says about a value of another type.
pub(crate) fn of_type(path: &str, found: &str, wanted: &str) -> String {
    format!(r#"{path}: Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}""#)
}

pub(crate) fn from_yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl Case {
    /// The same, with unknown fields dropped without a word.
    pub(crate) fn silently(self) -> Self {
        Case { validation: "Ignore", ..self }
    }

    async fn run(&self, server: &Server) -> Answer {
        match &self.subject {
            Subject::Object(manifest) => server.dry_run(manifest, self.validation).await,
            Subject::Change(change) => server.dry_run_change(change, self.validation).await,
        }
    }

    /// What is wrong with the answer, if anything.
    fn complaint(&self, answer: &Answer) -> Option<String> {
        let said = format!("the server said {} {:?}", answer.code, answer.message());
        if let Expected::Refused(message) = &self.expected {
            let refused = matches!(answer.code, 400 | 413 | 422) && answer.message().contains(message);
            return (!refused).then(|| format!("expected a refusal with {message:?}\n{said}"));
        }
        if !answer.is_success() {
            return Some(format!("expected it to be accepted\n{said}"));
        }
        match &self.expected {
            Expected::Stored { path, value } => {
                let stored = answer.body.pointer(&format!("/{}", path.replace('.', "/"))).unwrap_or(&Value::Null);
                (stored != value).then(|| format!("expected {path} to be stored as {value}\nit is stored as {stored}"))
            }
            Expected::Warned(warning) if answer.warnings.iter().any(|said| said.contains(warning)) => None,
            Expected::Warned(warning) => Some(format!("expected the warning {warning:?}, got {:?}", answer.warnings)),
            Expected::Accepted | Expected::Refused(_) => None,
        }
    }

    /// What was asked of the server, as far as it fits on a page.
    fn text(&self) -> String {
        let text = match &self.subject {
            Subject::Object(manifest) => manifest.yaml(),
            Subject::Change(change) => format!("{}\n{}\n", change.path(), change.yaml),
        };
        text.chars().take(2_000).collect()
    }
}

/// Goes through a table on the shared server.
pub(crate) async fn check(cases: impl IntoIterator<Item = Case>) {
    check_on(&Server::shared().await, cases).await;
}

pub(crate) async fn check_on(server: &Server, cases: impl IntoIterator<Item = Case>) {
    let mut complaints = Vec::new();
    let mut count = 0;
    for case in cases {
        count += 1;
        let answer = case.run(server).await;
        if let Some(complaint) = case.complaint(&answer) {
            complaints.push(format!("{}{complaint}\n", case.text()));
        }
    }
    assert!(count > 0, "the table is empty");
    assert!(complaints.is_empty(), "{} of {count} cases failed:\n\n{}", complaints.len(), complaints.join("\n"));
}
