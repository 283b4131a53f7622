//! Errors of user input: a name that does not exist, a parameter that makes no sense.

use thiserror::Error;

/// A name that does not exist, with the names that do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no {what} {given:?}{}; there are: {}", hint(.closest), .known.join(", "))]
pub struct Unknown {
    pub what: &'static str,
    pub given: String,
    pub closest: Option<String>,
    pub known: Vec<String>,
}

fn hint(closest: &Option<String>) -> String {
    closest.as_ref().map(|closest| format!(" (did you mean {closest:?}?)")).unwrap_or_default()
}

impl Unknown {
    pub(crate) fn new<S: Into<String>>(what: &'static str, given: &str, known: impl IntoIterator<Item = S>) -> Self {
        let known: Vec<String> = known.into_iter().map(Into::into).collect();
        let given_folded = fold(given);
        let likeness = |name: &String| strsim::jaro_winkler(&given_folded, &fold(name));
        let closest = known
            .iter()
            .map(|name| (likeness(name), name))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name.clone());
        Unknown { what, given: given.to_owned(), closest, known }
    }
}

/// Names are compared by their letters and digits only.
pub(crate) fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

/// Why a parameter of an algorithm cannot be set.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ParameterError {
    #[error("{algorithm} has no parameter {given:?}; {}", listed(.known))]
    Unknown { algorithm: String, given: String, known: Vec<&'static str> },
    #[error("{parameter} of {algorithm} cannot be {value}: {expected} was expected")]
    Value { algorithm: String, parameter: &'static str, value: f64, expected: &'static str },
}

fn listed(names: &[&'static str]) -> String {
    match names {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    }
}
