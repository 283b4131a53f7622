//! A fingerprint changes exactly when a managed field changes.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::test_cluster::arbitrary;

/// The leaves below `spec` of an object that has only plain members.
fn leaves(names: &[String]) -> Vec<Path> {
    names.iter().map(|name| Path::dotted(&format!("spec.{name}"))).collect()
}

/// An object with these fields below `spec`.
fn object(fields: &BTreeMap<String, Value>) -> Value {
    json!({"metadata": {"name": "a"}, "spec": fields})
}

fn fields() -> impl Strategy<Value = BTreeMap<String, Value>> {
    proptest::collection::btree_map("[a-c]{1,2}", arbitrary::value(), 1..4)
}

/// The same JSON with the members of every map in the opposite order.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let members =
                map.iter().rev().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), reversed(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(reversed).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

proptest! {
    #![proptest_config(arbitrary::cases(64))]

    #[test]
    fn the_order_of_keys_and_of_leaves_does_not_matter(fields in fields()) {
        let object = object(&fields);
        let mut leaves = leaves(&fields.keys().cloned().collect::<Vec<_>>());
        let print = fingerprint(Some(&object), &leaves);
        leaves.reverse();
        let turned: Value = serde_json::from_str(&reversed(&object)).unwrap();
        prop_assert_eq!(fingerprint(Some(&turned), &leaves), print);
        prop_assert_eq!(sha256(&turned), sha256(&object));
    }

    /// W22 (foreign fields as drift): whatever it is.
    #[test]
    fn a_field_that_somebody_adds_beside_ours_changes_nothing(fields in fields(), foreign in arbitrary::value()) {
        let leaves = leaves(&fields.keys().cloned().collect::<Vec<_>>());
        let print = fingerprint(Some(&object(&fields)), &leaves);
        let mut richer = object(&fields);
        richer["spec"]["foreign"] = foreign.clone();
        richer["status"] = foreign.clone();
        richer["metadata"]["labels"] = json!({"foreign": foreign});
        prop_assert_eq!(fingerprint(Some(&richer), &leaves), print);
    }

    #[test]
    fn any_change_of_a_leaf_is_seen(fields in fields(), at in any::<proptest::sample::Index>(), new in arbitrary::value()) {
        let names: Vec<_> = fields.keys().cloned().collect();
        let leaves = leaves(&names);
        let print = fingerprint(Some(&object(&fields)), &leaves);
        let name = &names[at.index(names.len())];

        let mut changed = fields;
        let old = changed.insert(name.clone(), new.clone());
        prop_assert_eq!(fingerprint(Some(&object(&changed)), &leaves) == print, old == Some(new));
        changed.remove(name);
        prop_assert_ne!(&fingerprint(Some(&object(&changed)), &leaves), &print, "a leaf that is gone");
        prop_assert_ne!(&fingerprint(None, &leaves), &print, "an object that is gone");
    }
}

#[test]
fn existence_matters_even_where_nothing_is_managed() {
    assert_ne!(fingerprint(None, &[]), fingerprint(Some(&json!({})), &[]));
    assert_ne!(fingerprint(None, &[Path::dotted("spec.a")]), fingerprint(Some(&json!({})), &[Path::dotted("spec.a")]));
}

#[test]
fn an_empty_leaf_is_not_an_absent_one() {
    let leaves = [Path::dotted("spec.ksmConfiguration.nodeLabelSelector")];
    let print = |ksm: Value| fingerprint(Some(&json!({"spec": {"ksmConfiguration": ksm}})), &leaves);
    let states = [
        json!({"nodeLabelSelector": {}}),
        json!({}),
        json!({"nodeLabelSelector": null}),
        json!({"nodeLabelSelector": []}),
    ];
    for (position, state) in states.iter().enumerate() {
        for other in &states[position + 1..] {
            assert_ne!(print(state.clone()), print(other.clone()), "{state} {other}");
        }
    }
}

#[test]
fn values_do_not_run_into_each_other() {
    let different = [
        json!({"a": "b"}),
        json!({"a": ["b"]}),
        json!(["a", "b"]),
        json!([["a"], "b"]),
        json!("a"),
        json!(1),
        json!("1"),
        json!(1.5),
        json!(true),
        json!("true"),
        json!(null),
        json!({}),
        json!([]),
        json!({"a\":\"b": 1}),
        json!({"a": {"b": 1}}),
    ];
    let prints: std::collections::BTreeSet<_> = different.iter().map(sha256).collect();
    assert_eq!(prints.len(), different.len());
}

#[test]
fn it_is_lowercase_hex_of_a_known_text() {
    let print = sha256(&json!({"b": [1, "x"], "a": null}));
    let expected = Sha256::digest(br#"{"a":null,"b":[1,"x",],}"#);
    assert_eq!(print, HEXLOWER.encode(&expected));
    assert!(print.len() == 64 && print.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)));
}
