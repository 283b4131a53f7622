//! The rendered text has everything of an object, except for secrets and server-side metadata.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::test_cluster::arbitrary;

fn written(value: Value) -> String {
    yaml(Some(&value))
}

/// Parsed as YAML 1.2, and as kubectl parses it: with old octal numbers, and words for booleans.
fn readings(text: &str) -> [Value; 2] {
    let kubectl = serde_saphyr::options! { legacy_octal_numbers: true, strict_booleans: false };
    [serde_saphyr::from_str(text).unwrap(), serde_saphyr::from_str_with_options(text, kubectl).unwrap()]
}

proptest! {
    #![proptest_config(arbitrary::cases(64))]

    #[test]
    fn what_is_written_reads_back_as_the_same(value in arbitrary::object()) {
        let text = yaml(Some(&value));
        for read in readings(&text) {
            prop_assert_eq!(&read, &value, "{}", text);
        }
    }

    #[test]
    fn blocks_of_text_read_back_as_the_same(text in arbitrary::lines(), breaks in 0..3_usize) {
        let value = json!({"a": [{"text": text.clone() + &"\n".repeat(breaks), "z": 1}], "b": text});
        let text = yaml(Some(&value));
        for read in readings(&text) {
            prop_assert_eq!(&read, &value, "{}", text);
        }
    }

    #[test]
    fn no_line_consists_of_blanks(value in arbitrary::object()) {
        let text = yaml(Some(&value));
        prop_assert!(text.lines().all(|line| line.is_empty() || !line.trim().is_empty()), "{:?}", text);
    }
}

#[test]
fn keys_are_sorted_and_lists_keep_their_order() {
    let text = written(json!({"b": {"d": 1, "c": [3, 1, 2]}, "a": [{"z": 1, "x": 2}], "B": null}));
    let expected = "\
B: null
a:
- x: 2
  z: 1
b:
  c:
  - 3
  - 1
  - 2
  d: 1
";
    assert_eq!(text, expected);
}

#[test]
fn nothing_is_rendered_as_nothing_and_emptiness_is_shown() {
    assert_eq!(yaml(None), "");
    assert_eq!(written(json!({"a": {}, "b": [], "c": "", "d": null})), "a: {}\nb: []\nc: \"\"\nd: null\n");
}

#[test]
fn texts_of_several_lines_are_blocks_that_lose_nothing() {
    let cases = [
        ("a\nb\n", "|\n  a\n  b\n"),
        ("a\nb", "|-\n  a\n  b\n"),
        ("a\n\nb\n", "|\n  a\n\n  b\n"),
        ("a\n\n\n", "|+\n  a\n\n\n"),
        ("\na\n", "|\n\n  a\n"),
        ("  a\nb\n", "|2\n    a\n  b\n"),
        ("a\n  b\n", "|\n  a\n    b\n"),
        ("a\n\tb\n", "|\n  a\n  \tb\n"),
        ("a \nb\n", "|\n  a \n  b\n"),
        ("a\n  \nb\n", "\"a\\n  \\nb\\n\"\n"),
        ("a\r\nb\n", "\"a\\r\\nb\\n\"\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(written(json!({"text": text})), format!("text: {expected}"), "{text:?}");
    }
}

#[test]
fn a_long_text_stays_on_its_line() {
    let words = "word ".repeat(40) + "end";
    assert_eq!(written(json!({"text": words})), format!("text: {words}\n"));
    let token = "a".repeat(2000);
    assert_eq!(written(json!({"text": token})), format!("text: {token}\n"));
}

#[test]
fn texts_that_look_like_something_else_are_quoted() {
    for text in [
        "true",
        "no",
        "null",
        "~",
        "5",
        "0644",
        "1e3",
        "0x1F",
        ".5",
        "3.2.0",
        "12:30:45",
        "2001-12-14",
        "a: b",
        "- a",
        " a",
        "a ",
    ] {
        assert_eq!(written(json!({"text": text})), format!("text: \"{text}\"\n"));
    }
    for text in ["psi=1", "/etc/find-swap-partition", "data:text/plain;charset=utf-8;base64,QQ==", "worker"] {
        assert_eq!(written(json!({"text": text})), format!("text: {text}\n"));
    }
}

#[test]
fn what_the_server_keeps_for_itself_is_left_out_and_nothing_else() {
    let object = json!({
        "kind": "Thing",
        "metadata": {
            "name": "a", "namespace": "b", "labels": {"c": "d"}, "annotations": {"e": "f"}, "finalizers": ["g"],
            "ownerReferences": [], "uid": "1", "resourceVersion": "2", "generation": 3, "creationTimestamp": "4",
            "managedFields": [{}], "selfLink": "5", "deletionTimestamp": "6",
        },
        "spec": {"status": "kept", "uid": "kept", "metadata": {"uid": "kept"}},
        "status": {"phase": "gone"},
    });
    let expected = json!({
        "kind": "Thing",
        "metadata": {
            "name": "a", "namespace": "b", "labels": {"c": "d"}, "annotations": {"e": "f"}, "finalizers": ["g"],
            "ownerReferences": [], "deletionTimestamp": "6",
        },
        "spec": {"status": "kept", "uid": "kept", "metadata": {"uid": "kept"}},
    });
    assert_eq!(sanitized(&object), expected);
    assert_eq!(sanitized(&json!({"spec": 1})), json!({"spec": 1}));
    assert_eq!(sanitized(&Value::Null), Value::Null);
}

#[test]
fn values_of_secrets_are_hidden_and_their_changes_are_not() {
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    let secret = |data: Value, texts: Value, annotation: &str| {
        json!({
            "kind": "Secret",
            "metadata": {"annotations": {last_applied: annotation, "other": "x"}},
            "data": data,
            "stringData": texts,
            "type": "Opaque",
        })
    };
    let before =
        secret(json!({"same": "c2FtZQ==", "changed": "b2xk", "gone": "Z29uZQ=="}), json!({"t": "old"}), "b2xk");
    let after = secret(json!({"same": "c2FtZQ==", "changed": "bmV3", "new": "bmV3"}), json!({"t": "new"}), "bmV3");
    let (before, after) = masked(Some(before), Some(after));
    let expected = secret(
        json!({"same": "***", "changed": "*** (before)", "gone": "***"}),
        json!({"t": "*** (before)"}),
        "*** (before)",
    );
    assert_eq!(before, Some(expected));
    let expected = secret(
        json!({"same": "***", "changed": "*** (after)", "new": "***"}),
        json!({"t": "*** (after)"}),
        "*** (after)",
    );
    assert_eq!(after, Some(expected));
}

#[test]
fn other_objects_are_not_masked() {
    let object = || Some(json!({"kind": "ConfigMap", "data": {"a": "b"}}));
    assert_eq!(masked(object(), None), (object(), None));
    assert_eq!(masked(None, object()), (None, object()));
}

#[test]
fn payloads_of_files_are_shown_in_clear_with_their_modes_in_octal() {
    let file =
        |contents: Value, mode: Value| json!({"path": "/a", "overwrite": true, "contents": contents, "mode": mode});
    let decoded_file = |contents: Value, mode: Value| {
        let object =
            json!({"kind": "MachineConfig", "spec": {"config": {"storage": {"files": [file(contents, mode)]}}}});
        decoded(&object).pointer("/spec/config/storage/files/0").unwrap().clone()
    };
    let cases = [
        ("base64", json!({"source": "data:text/plain;charset=utf-8;base64,YQpiCg=="}), json!({"text": "a\nb\n"})),
        ("base64 without a type", json!({"source": "data:;base64,YQ=="}), json!({"text": "a"})),
        ("percent-encoded", json!({"source": "data:,a%20b%0Ac%25%C3%A9"}), json!({"text": "a b\nc%é"})),
        ("empty", json!({"source": "data:,"}), json!({"text": ""})),
        (
            "the rest stays",
            json!({"source": "data:,a", "compression": "", "verification": {"hash": "sha512-0"}}),
            json!({"text": "a", "compression": "", "verification": {"hash": "sha512-0"}}),
        ),
        ("binary", json!({"source": "data:;base64,AAEC/w=="}), json!({"source": "data:;base64,AAEC/w=="})),
        ("control characters", json!({"source": "data:,a%00"}), json!({"source": "data:,a%00"})),
        ("not base64", json!({"source": "data:;base64,?"}), json!({"source": "data:;base64,?"})),
        ("a broken escape", json!({"source": "data:,a%2"}), json!({"source": "data:,a%2"})),
        ("no escape at all", json!({"source": "data:,a%zz"}), json!({"source": "data:,a%zz"})),
        ("another source", json!({"source": "https://example.com/a"}), json!({"source": "https://example.com/a"})),
        ("nothing", json!({}), json!({})),
    ];
    for (case, contents, expected) in cases {
        assert_eq!(decoded_file(contents, json!(420)), file(expected, json!("0644")), "{case}");
    }
    for (mode, expected) in
        [(json!(493), json!("0755")), (json!(0), json!("0000")), (json!(2541), json!("4755")), (json!("x"), json!("x"))]
    {
        assert_eq!(decoded_file(json!({}), mode.clone())["mode"], expected, "{mode}");
    }
}

#[test]
fn objects_without_files_are_shown_as_they_are() {
    for object in
        [json!({}), json!({"spec": {"config": {}}}), json!({"spec": {"config": {"storage": {"files": [1, {}]}}}})]
    {
        assert_eq!(decoded(&object), object);
    }
}
