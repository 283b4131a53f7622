//! Arbitrary values for property tests.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// This many random cases per run.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Texts that YAML could parse as something else, and ordinary ones.
pub fn text() -> impl Strategy<Value = String> {
    const TRICKY: [&str; 47] = [
        "",
        " ",
        "~",
        "null",
        "Null",
        "true",
        "False",
        "yes",
        "on",
        "y",
        "N",
        "off",
        "0",
        "-1",
        "+1",
        "007",
        "0644",
        "0o17",
        "0x1F",
        "0b1",
        "1_000",
        "1e3",
        "1.",
        ".5",
        ".inf",
        "-.INF",
        ".nan",
        "NaN",
        "12:30:45",
        "2001-12-14",
        "=",
        "<<",
        "-",
        "- a",
        "? a",
        "a: b",
        "a:",
        "#",
        "a #b",
        "[a]",
        "{a: b}",
        "*a",
        "&a",
        "!a",
        "|",
        "%a",
        "---",
    ];
    prop_oneof![
        proptest::sample::select(&TRICKY[..]).prop_map(str::to_owned),
        "[a-zA-Z./-]{1,12}",
        lines(),
        "[a-z :#,]{60,120}",
        "\\PC{0,6}",
        proptest::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter),
    ]
}

/// Texts of several lines, with blanks and special characters at their beginnings and ends.
pub fn lines() -> impl Strategy<Value = String> {
    proptest::collection::vec("[ \t]{0,2}[a-z:#|>'\"{}-]{0,6}[ \t]{0,1}", 1..6).prop_map(|lines| lines.join("\n"))
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 16.0)),
        text().prop_map(Value::from),
    ]
}

pub fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |below| {
        prop_oneof![
            proptest::collection::vec(below.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((text(), below), 0..4).prop_map(map),
        ]
    })
}

/// An object with an arbitrary spec.
pub fn object() -> impl Strategy<Value = Value> {
    proptest::collection::vec((text(), value()), 0..5).prop_map(
        |entries| json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": map(entries)}),
    )
}

fn map(entries: Vec<(String, Value)>) -> Value {
    Value::Object(entries.into_iter().collect::<Map<_, _>>())
}
