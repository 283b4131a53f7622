//! A diff is a patch that leads from one text to the other.

use base64::{Engine, prelude::BASE64_STANDARD};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::test_cluster::arbitrary;

/// Applies a unified diff as `patch` would and checks its hunk headers on the way.
fn patched(before: &str, diff: &str) -> String {
    let old: Vec<&str> = before.lines().collect();
    let mut rest = diff.lines().skip(2).peekable();
    let (mut new, mut at) = (Vec::new(), 0);
    while let Some(header) = rest.next() {
        let ranges = header.strip_prefix("@@ -").and_then(|rest| rest.strip_suffix(" @@")).unwrap();
        let (from, to) = ranges.split_once(" +").unwrap();
        let (start, length) = range(from);
        while at < start {
            new.push(old[at]);
            at += 1;
        }
        assert_eq!(range(to).0, new.len(), "{header}");
        let (mut removed, mut added) = (0, 0);
        while let Some(line) = rest.next_if(|line| !line.starts_with("@@")) {
            // An empty line is an empty line of context.
            let (sign, text) = if line.is_empty() { (" ", "") } else { line.split_at(1) };
            if sign != "+" {
                assert_eq!(old[at], text, "{header}");
                at += 1;
                removed += 1;
            }
            if sign != "-" {
                new.push(text);
                added += 1;
            }
        }
        assert_eq!((removed, added), (length, range(to).1), "{header}");
    }
    new.extend(&old[at..]);
    new.iter().map(|line| format!("{line}\n")).collect()
}

/// The lines before a range, and its length.
fn range(text: &str) -> (usize, usize) {
    let (start, length) = text.split_once(',').unwrap_or((text, "1"));
    let (start, length): (usize, usize) = (start.parse().unwrap(), length.parse().unwrap());
    (if length == 0 { start } else { start - 1 }, length)
}

proptest! {
    #![proptest_config(arbitrary::cases(48))]

    /// W32 (wrong diffs): every count and every line, blank ones too.
    #[test]
    fn a_diff_leads_from_one_object_to_the_other(before in arbitrary::object(), after in arbitrary::object()) {
        let diff = diff("Thing", "a", Some(&before), Some(&after));
        if before == after {
            prop_assert_eq!(diff, "--- a (Thing)\n+++ a (Thing)\n(no changes)\n");
        } else {
            prop_assert!(diff.starts_with("--- a (Thing)\n+++ a (Thing)\n@@ -"));
            let (old, new) = (object_text::yaml(Some(&before)), object_text::yaml(Some(&after)));
            prop_assert_eq!(patched(&old, &diff), new);
        }
    }

    /// W32 (wrong diffs): not a line more or less than there are.
    #[test]
    fn a_new_object_is_all_additions_and_a_removed_one_all_removals(object in arbitrary::object()) {
        let text = object_text::yaml(Some(&object));
        let lines = text.lines().count();
        let signed = |sign: char| -> String { text.lines().map(|line| format!("{sign}{line}\n")).collect() };
        let created = format!("--- /dev/null\n+++ a (Thing)\n@@ -0,0 +1,{lines} @@\n{}", signed('+'));
        prop_assert_eq!(diff("Thing", "a", None, Some(&object)), created);
        let deleted = format!("--- a (Thing)\n+++ /dev/null\n@@ -1,{lines} +0,0 @@\n{}", signed('-'));
        prop_assert_eq!(diff("Thing", "a", Some(&object), None), deleted);
    }
}

fn config(role: &str, arguments: &[&str]) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": "99-a", "labels": {"role": role}},
        "spec": {"kernelArguments": arguments},
    })
}

#[test]
fn headers_tell_what_becomes_of_the_object() {
    let object = config("worker", &["psi=1"]);
    let created = "\
--- /dev/null
+++ 99-a (MachineConfig)
@@ -0,0 +1,9 @@
+apiVersion: machineconfiguration.openshift.io/v1
+kind: MachineConfig
+metadata:
+  labels:
+    role: worker
+  name: 99-a
+spec:
+  kernelArguments:
+  - psi=1
";
    let deleted = created
        .replace("--- /dev/null\n+++ 99-a (MachineConfig)", "--- 99-a (MachineConfig)\n+++ /dev/null")
        .replace("@@ -0,0 +1,9 @@", "@@ -1,9 +0,0 @@")
        .replace("\n+", "\n-")
        .replace("\n-++ /dev/null", "\n+++ /dev/null");
    let changed = "\
--- 99-a (MachineConfig)
+++ 99-a (MachineConfig)
@@ -2,8 +2,9 @@
 kind: MachineConfig
 metadata:
   labels:
-    role: worker
+    role: master
   name: 99-a
 spec:
   kernelArguments:
+  - quiet
   - psi=1
";
    let unchanged = "--- 99-a (MachineConfig)\n+++ 99-a (MachineConfig)\n(no changes)\n";
    let nothing = "--- /dev/null\n+++ /dev/null\n(no changes)\n";
    let other = config("master", &["quiet", "psi=1"]);
    let cases = [
        (None, Some(&object), created),
        (Some(&object), None, &deleted),
        (Some(&object), Some(&other), changed),
        (Some(&object), Some(&object), unchanged),
        (None, None, nothing),
    ];
    for (before, after, expected) in cases {
        assert_eq!(diff("MachineConfig", "99-a", before, after), expected);
        assert_eq!(readable("MachineConfig", "99-a", before, after), expected);
        assert_eq!(differ(before, after), before != after);
    }
}

#[test]
fn what_the_server_keeps_for_itself_is_no_change() {
    let (before, mut after) = (config("worker", &["a"]), config("worker", &["a"]));
    after["metadata"]["resourceVersion"] = "2".into();
    after["metadata"]["managedFields"] = json!([{"manager": "us"}]);
    after["status"] = json!({"phase": "Ready"});
    assert!(!differ(Some(&before), Some(&after)));
    assert!(diff("MachineConfig", "99-a", Some(&before), Some(&after)).ends_with("\n(no changes)\n"));
}

fn script(text: &str, encode: impl Fn(&str) -> String) -> Value {
    let file = json!({"path": "/etc/a", "mode": 493, "contents": {"source": encode(text)}});
    json!({"kind": "MachineConfig", "metadata": {"name": "a"}, "spec": {"config": {"storage": {"files": [file]}}}})
}

fn base64(text: &str) -> String {
    format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text))
}

/// W32 (wrong diffs): payloads are read in clear.
#[test]
fn people_see_which_line_of_a_script_changes() {
    let (before, after) = (script("set -e\n\nrun 1\n", base64), script("set -e\n\nrun 2\n", base64));
    let expected = "\
--- a (MachineConfig)
+++ a (MachineConfig)
@@ -9,6 +9,6 @@
           text: |
             set -e

-            run 1
+            run 2
         mode: \"0755\"
         path: /etc/a
";
    assert_eq!(readable("MachineConfig", "a", Some(&before), Some(&after)), expected);
    assert_eq!(
        patched(&object_text::yaml(Some(&object_text::decoded(&before))), expected),
        object_text::yaml(Some(&object_text::decoded(&after)))
    );
    assert!(
        diff("MachineConfig", "a", Some(&before), Some(&after)).contains("base64,"),
        "the status keeps what is stored"
    );
}

#[test]
fn a_change_that_reading_hides_is_shown_as_it_is_stored() {
    let before = script("a", base64);
    let after = script("a", |text| format!("data:,{text}"));
    let shown = readable("MachineConfig", "a", Some(&before), Some(&after));
    assert!(shown.contains("\n-          source: data:text/plain;charset=utf-8;base64,YQ==\n"), "{shown}");
    assert!(shown.contains("\n+          source: data:,a\n"), "{shown}");
}

#[test]
fn no_line_of_a_diff_ends_in_a_blank_that_is_not_in_the_text() {
    let (before, after) = (script("a\n\nb\n\nc\n", base64), script("a\n\nB\n\nc\n", base64));
    for shown in [readable("M", "a", Some(&before), Some(&after)), readable("M", "a", None, Some(&after))] {
        assert!(shown.lines().all(|line| line == line.trim_end()), "kubectl would show it escaped: {shown:?}");
    }
}

#[test]
fn values_of_secrets_are_in_no_rendering_and_their_changes_are() {
    let secret = |value: &str, key: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "a",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":\"{value}\"}}")},
            },
            "data": {"password": value, key: value},
            "stringData": {"text": value},
        })
    };
    let (before, after) = (secret("b2xkLXZhbHVl", "a"), secret("bmV3LXZhbHVl", "b"));
    for render in [diff, readable] {
        for (before, after) in [(Some(&before), Some(&after)), (None, Some(&after)), (Some(&before), None)] {
            let shown = render("Secret", "a", before, after);
            assert!(!shown.contains("LXZhbHVl"), "{shown}");
            assert!(shown.contains("password: \"***"), "{shown}");
        }
        let shown = render("Secret", "a", Some(&before), Some(&after));
        assert!(
            shown.contains(
                "\n-  a: \"***\"\n-  password: \"*** (before)\"\n+  b: \"***\"\n+  password: \"*** (after)\"\n"
            ),
            "{shown}"
        );
        let shown = render("Secret", "a", Some(&before), Some(&secret("b2xkLXZhbHVl", "a")));
        assert!(shown.ends_with("\n(no changes)\n"), "{shown}");
    }
}

#[test]
fn an_annotation_that_gives_a_secret_away_is_hidden_too_and_its_change_is_told() {
    let secret = |annotation: &str| {
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": annotation});
        json!({"kind": "Secret", "metadata": {"name": "a", "annotations": annotations}})
    };
    let shown = diff("Secret", "a", Some(&secret("hunter1")), Some(&secret("hunter2")));
    assert!(!shown.contains("hunter"), "{shown}");
    assert!(shown.contains("*** (before)") && shown.contains("*** (after)"), "{shown}");
}
