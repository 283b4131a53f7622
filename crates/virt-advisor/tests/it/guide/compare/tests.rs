//! The comparison itself: it tells every difference, and every one that is listed in vain.

use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "metadata": {"name": "x", "generation": 2, "uid": "893b77f0-692d-4886-ba74-8b0e14bb577a", "resourceVersion": "69234"},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-18T21:13:17Z"},
                {"type": "Pending", "status": "True", "lastTransitionTime": "2025-12-18T21:13:17Z"},
            ],
            "items": [{"name": "one", "diff": "@@ -0,0 +1,10 @@\n+a\n"}],
            "observedGeneration": 6,
        },
    })
}

fn changed(pointer: &str, value: Value) -> Value {
    let mut object = object();
    *object.pointer_mut(pointer).unwrap() = value;
    object
}

fn listed(path: &str, what: What) -> Difference {
    Difference { path: path.to_owned(), what, because: "of the test" }
}

#[test]
fn what_differs_in_every_run_is_not_a_difference_as_long_as_it_has_the_right_shape() {
    let mut other = object();
    other["metadata"]["uid"] = "14f1838b-7df4-47a3-8bf9-85b41b4731f5".into();
    other["metadata"]["resourceVersion"] = "7".into();
    other["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(complaints(&object(), &other, &[]), [""; 0]);
    let bad = changed("/status/conditions/0/lastTransitionTime", json!("yesterday"));
    let said = complaints(&object(), &bad, &[]);
    assert!(said[0].starts_with("status.conditions[Ready].lastTransitionTime: differs, and is not listed"), "{said:?}");
    assert_eq!(complaints(&object(), &changed("/metadata/uid", json!("")), &[]).len(), 1);
}

#[test]
fn a_difference_that_is_not_listed_is_told_with_both_values() {
    let said = complaints(&object(), &changed("/status/observedGeneration", json!(2)), &[]);
    assert_eq!(said, ["status.observedGeneration: differs, and is not listed\n  guide: 6\n  ours:  2\n"]);
    let mut more = object();
    more["status"]["planDigest"] = "abc".into();
    assert_eq!(
        complaints(&object(), &more, &[]),
        ["status.planDigest: differs, and is not listed\n  guide: nothing\n  ours:  \"abc\"\n"]
    );
}

#[test]
fn a_listed_difference_that_is_gone_is_told() {
    let list = [listed("status.observedGeneration", What::Differs { theirs: json!(6), ours: json!(2) })];
    assert_eq!(
        complaints(&object(), &object(), &list),
        ["status.observedGeneration: no longer differs, although it is listed because of the test\n"]
    );
    let ours = changed("/status/observedGeneration", json!(2));
    assert_eq!(complaints(&object(), &ours, &list), [""; 0]);
    let other = changed("/status/observedGeneration", json!(3));
    assert_eq!(complaints(&object(), &other, &list).len(), 1, "it differs in another way than is listed");
}

#[test]
fn a_text_may_read_differently_in_places_and_only_there() {
    let reads = |theirs, ours: &str| listed("status.items[one].diff", What::Reads { theirs, ours: ours.to_owned() });
    let ours = changed("/status/items/0/diff", json!("@@ -0,0 +1,9 @@\n+a\n+b\n"));
    let (header, line) = (reads("+1,10 @@", "+1,9 @@"), reads("+a\n", "+a\n+b\n"));
    assert_eq!(complaints(&object(), &ours, &[header.clone(), line.clone()]), [""; 0]);
    assert_eq!(complaints(&object(), &ours, std::slice::from_ref(&header)).len(), 1, "the other is not listed");
    let only_header = changed("/status/items/0/diff", json!("@@ -0,0 +1,9 @@\n+a\n"));
    assert_eq!(complaints(&object(), &only_header, &[header, line]).len(), 1, "the other no longer occurs");
    let nowhere = reads("+c\n", "");
    assert_eq!(complaints(&object(), &only_header, &[nowhere]).len(), 1, "and one that the guide does not have");
}

#[test]
fn what_the_guide_does_not_show_has_to_have_the_listed_shape() {
    let with = |value: Value| {
        let mut ours = object();
        for condition in ours["status"]["conditions"].as_array_mut().unwrap() {
            condition["observedGeneration"] = value.clone();
        }
        ours
    };
    let path = "status.conditions[*].observedGeneration";
    let list = [listed(path, What::Adds(Shape::Generation))];
    assert_eq!(complaints(&object(), &with(json!(2)), &list), [""; 0], "for every element of the list");
    assert_eq!(complaints(&object(), &with(json!(1)), &list).len(), 2);
    let digest = json!("4f0dbe9837eacbf99ad4aeab7189d8b5552f64287164112e311507178f3fdcbc");
    for (shape, fits, does_not) in [
        (Shape::Digest, digest, json!("4f0d")),
        (Shape::Time, json!("2025-12-18T21:45:20Z"), json!("21:45")),
        (Shape::Exactly(json!([1])), json!([1]), json!([2])),
    ] {
        let list = [listed(path, What::Adds(shape))];
        assert_eq!(complaints(&object(), &with(fits), &list), [""; 0]);
        assert_eq!(complaints(&object(), &with(does_not), &list).len(), 2);
    }
    let list = [listed(path, What::Lacks)];
    assert_eq!(complaints(&with(json!(2)), &object(), &list), [""; 0]);
    assert_eq!(complaints(&object(), &with(json!(2)), &list).len(), 2, "we have more, not less");
}

#[test]
fn lists_are_compared_by_name_and_their_order_counts() {
    let mut ours = object();
    ours["status"]["conditions"].as_array_mut().unwrap().reverse();
    let said = complaints(&object(), &ours, &[]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("status.conditions (order): differs"), "{said:?}");
    ours["status"]["conditions"].as_array_mut().unwrap().remove(0);
    let said = complaints(&object(), &ours, &[]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("status.conditions[Pending]: differs"), "{said:?}");
    let list = [listed("status.conditions[*]", What::Lacks)];
    assert_eq!(complaints(&object(), &ours, &list), [""; 0], "an element that is left out altogether");
    assert!(!matches("status.conditions[*]", "status.conditions[Pending].status"));
}

#[test]
fn of_an_object_only_what_an_extract_shows_is_compared() {
    let shown = json!({"status": {"items": [{"name": "one", "diff": "(a diff)"}], "observedGeneration": 6}});
    let extract = extract(&shown, &object());
    assert_eq!(extract["status"]["items"], object()["status"]["items"]);
    let list = [listed("status.items[one].diff", What::Illustrated)];
    assert_eq!(complaints(&shown, &extract, &list), [""; 0]);
    let missing = json!({"status": {"phase": "Ready"}});
    assert_eq!(complaints(&missing, &super::extract(&missing, &object()), &[]).len(), 1, "what is missing is told");
}
