//! Code and documentation use the words of Kubernetes, of Rust and of the glossary, and none of their own for the same things.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::files_under;
use crate::commands::root;

/// Words that a reader cannot guess, each with the ones to use.
const PRIVATE: &[(&str, &str)] = &[
    ("audience", "subscribers"),
    ("camera", "recorder"),
    ("cast", "users"),
    ("circumstances", "context"),
    ("desk", "status draft"),
    ("dice", "random numbers"),
    ("door", "proxy, endpoint"),
    ("fate", "effect, outcome"),
    ("film", "recording"),
    ("hall", "subscribers"),
    ("happening", "event note, node event"),
    ("inbox", "work queue"),
    ("keeper", "manager, watchdog"),
    ("law", "rule"),
    ("ledger", "known records"),
    ("patience", "timeout"),
    ("sighting", "observation"),
    ("stage", "setup, phase"),
    ("steward", "reconciler"),
    ("stranded", "unschedulable"),
    ("surroundings", "clock"),
    ("verdict", "result, state, decision"),
    ("world", "model, cluster"),
];

/// The same for two words, which may stand in a name or in a text.
const PHRASES: &[([&str; 2], &str)] =
    &[(["draw", "up"], "make"), (["drawn", "up"], "made"), (["in", "force"], "in effect, applied")];

/// Where such a word is somebody else's: the word, the beginning of the path, and whose it is.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("cast", "crates/standins/src/descheduler/policy.rs", "a function of Rust"),
    ("cast", "crates/lab/src/import/mod.rs", "a function of Rust"),
    ("cast", "crates/sim/src/scenario/samples.rs", "a function of Rust"),
    ("stage", "crates/devcluster/src/audit/", "a field of the API server's audit log"),
    ("stage", "crates/operator/tests/it/approval_policy/requests.rs", "a field of the API server's audit log"),
    ("stage", "crates/devcluster/src/components/kwok.rs", "a kind of KWOK"),
    ("stage", "crates/lab/src/kwok.rs", "a kind of KWOK"),
    ("stage", "crates/xtask/src/image", "a part of a Dockerfile"),
];

/// The words of a text in lower case. Those of `snake_case` and of `CamelCase` count one by one.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.chars() {
        let ends = !c.is_alphabetic() || (c.is_uppercase() && was_lower);
        if ends {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn names_and_texts_are_split_into_words() {
    for (text, expected) in [
        ("let steward_of = Steward::new();", &["let", "steward", "of", "steward", "new"][..]),
        ("StatusDesk, IODesk", &["status", "desk", "iodesk"]),
        ("no hallway", &["no", "hallway"]),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn no_private_word_stands_for_a_thing_that_has_a_common_one() {
    let (mut files, this) = (Vec::new(), Path::new("crates/xtask/tests/it/docs/words.rs"));
    for (folder, extension) in [("crates", "rs"), ("docs", "md")] {
        files_under(Path::new(folder), extension, &mut files);
    }
    files.retain(|file: &PathBuf| file != this);
    let mut found = Vec::new();
    for file in files {
        let path = file.to_str().unwrap();
        for (number, line) in fs::read_to_string(root().join(&file)).unwrap().lines().enumerate() {
            let words = words(line);
            for pair in words.windows(2) {
                if let Some((_, better)) = PHRASES.iter().find(|(phrase, _)| pair == phrase) {
                    found.push(format!("{path}:{}: {:?}; better: {better}", number + 1, pair.join(" ")));
                }
            }
            for word in words {
                let Some((_, better)) = PRIVATE.iter().find(|(private, _)| word == *private) else { continue };
                if !ALLOWED.iter().any(|(allowed, place, _)| word == *allowed && path.starts_with(place)) {
                    found.push(format!("{path}:{}: {word:?}; better: {better}", number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "words that nobody can guess:\n{}", found.join("\n"));
}
