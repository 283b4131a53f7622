//! What a restore does when the object is no longer as the plan left it.

use super::*;

/// The object after the change, and the recorded item.
fn applied(live: Option<Value>, change: Change) -> (Option<Value>, RecordedItem) {
    let plan = plan(live, change);
    let record = recorded(&plan).unwrap();
    (plan.items[0].after.clone(), record.spec.items[0].clone())
}

fn kubectls(data: Value) -> Value {
    set_by("kubectl", "Update", object("ConfigMap", data))
}

/// What is set and stays, and what is removed.
fn change_of(restored: &Restored) -> (Value, Vec<String>) {
    match restored.change.clone() {
        Some(Change::Apply { mut fields, remove }) => {
            remove.iter().for_each(|path| path.remove(&mut fields));
            (fields["data"].clone(), remove.iter().map(Path::to_string).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn paths(paths: &[Path]) -> Vec<String> {
    paths.iter().map(Path::to_string).collect()
}

#[test]
fn what_was_there_is_set_and_what_was_not_is_taken_out() {
    let change = apply(json!({"a": "2", "same": "s", "map": {"x": {"y": 1}}}), &["data.gone"]);
    let (after, item) = applied(Some(kubectls(json!({"a": "1", "same": "s", "gone": "g", "theirs": "t"}))), change);
    let restored = restored(after.as_ref(), &[&item]);
    let (fields, remove) = change_of(&restored);
    assert_eq!(fields, json!({"a": "1", "same": "s", "gone": "g"}), "left out, it would be given up");
    assert_eq!(remove, ["data.map"]);
    assert_eq!(restored, Restored { change: restored.change.clone(), ..Restored::default() });
}

#[test]
fn a_map_stays_if_somebody_has_put_something_into_it() {
    let (after, item) = applied(Some(kubectls(json!({"a": "1"}))), apply(json!({"map": {"x": {"y": 1}}}), &[]));
    let mut now = after.unwrap();
    now["data"]["map"]["theirs"] = json!(2);
    let (_, remove) = change_of(&restored(Some(&now), &[&item]));
    assert_eq!(remove, ["data.map.x"]);
}

#[test]
fn what_somebody_changed_since_is_named() {
    let (after, item) = applied(
        Some(kubectls(json!({"a": "1", "b": "1", "c": "1"}))),
        apply(json!({"a": "2", "b": "2", "c": "2", "d": "2"}), &[]),
    );
    let mut now = after.unwrap();
    now["data"]["a"] = json!("3");
    now["data"]["b"] = json!("1");
    now["data"]["d"] = json!("3");
    let by_ourselves = restored(Some(&now), &[&item]);
    assert_eq!(paths(&by_ourselves.changed_since), [""; 0], "a record in between is not kept any longer");
    ["/data/a", "/data/b", "/data/d"].iter().for_each(|path| server_side_apply::disown(&mut now, path));
    let restored = restored(Some(&now), &[&item]);
    assert_eq!(paths(&restored.changed_since), ["data.a", "data.d"], "b is as it was before");
    assert_eq!(change_of(&restored), (json!({"a": "1", "b": "1", "c": "1"}), vec!["data.d".to_owned()]));
}

#[test]
fn an_object_that_we_created_is_deleted_unless_others_use_it() {
    let (after, item) = applied(None, apply(json!({"a": "1", "b": "1"}), &[]));
    assert_eq!(restored(after.as_ref(), &[&item]).change, Some(Change::Delete));
    assert_eq!(restored(None, &[&item]), Restored::default(), "it is gone already");
    let mut now = after.unwrap();
    let beside = object("ConfigMap", json!({"theirs": "1"}));
    let used = server_side_apply::apply(Some(&now), &beside, None, "argocd").0;
    let (fields, remove) = change_of(&restored(Some(&used), &[&item]));
    assert_eq!((fields, remove), (json!({}), vec!["data.a".to_owned(), "data.b".to_owned()]), "theirs stays");
    let theirs = object("ConfigMap", json!({"theirs": "1", "b": "1"}));
    now = server_side_apply::apply(Some(&now), &theirs, None, "argocd").0;
    let restored = restored(Some(&now), &[&item]);
    assert_eq!(paths(&restored.shared), ["data.b"]);
    assert_eq!(change_of(&restored), (json!({}), vec!["data.a".to_owned()]));
}

#[test]
fn an_object_that_we_deleted_is_created_again() {
    let live = set_by(US, "Apply", object("ConfigMap", json!({"a": "1", "empty": {}})));
    let (_, item) = applied(Some(live), Change::Delete);
    let Some(Change::Apply { fields, remove }) = restored(None, &[&item]).change else { panic!("not created") };
    assert_eq!((fields, remove), (object("ConfigMap", json!({"a": "1", "empty": {}})), vec![]));
    let restored = restored(Some(&kubectls(json!({"a": "5", "more": "6"}))), &[&item]);
    assert_eq!(paths(&restored.changed_since), ["data.a"], "somebody has created it with another value");
    assert_eq!(change_of(&restored), (json!({"a": "1", "empty": {}}), vec![]));
}

#[test]
fn an_object_that_was_replaced_since_is_named() {
    let with_uid = |uid: &str, mut object: Value| {
        object["metadata"]["uid"] = uid.into();
        object
    };
    let (after, item) = applied(Some(with_uid("1", kubectls(json!({"a": "1"})))), apply(json!({"a": "2"}), &[]));
    let after = after.unwrap();
    assert!(!restored(Some(&after), &[&item]).replaced);
    assert!(restored(Some(&with_uid("2", after)), &[&item]).replaced);
    let gone = restored(None, &[&item]);
    assert_eq!((gone.change, gone.replaced), (None, true), "one field does not make an object");
}

/// Somebody deletes the object, and the next plan creates it: what was there before that is not known as a whole.
#[test]
fn an_object_that_we_created_again_is_taken_back_to_its_deletion() {
    let (_, first) = applied(Some(kubectls(json!({"a": "1"}))), apply(json!({"a": "2"}), &[]));
    let (second, created) = applied(None, apply(json!({"a": "2"}), &[]));
    let (third, changed) = applied(second.clone(), apply(json!({"a": "3", "b": "3"}), &[]));
    for (now, items) in [(&second, vec![&created, &first]), (&third, vec![&changed, &created, &first])] {
        let result = restored(now.as_ref(), &items);
        assert_eq!((result.change, result.created_again, result.replaced), (Some(Change::Delete), true, false));
    }
    let theirs = object("ConfigMap", json!({"theirs": "1"}));
    let now = server_side_apply::apply(third.as_ref(), &theirs, None, "argocd").0;
    let used = restored(Some(&now), &[&changed, &created, &first]);
    assert_eq!(change_of(&used), (json!({}), vec!["data.a".to_owned(), "data.b".to_owned()]), "others use it");
    let gone = restored(None, &[&changed, &created, &first]);
    assert_eq!((gone.change, gone.created_again, gone.replaced), (None, false, true), "it is gone once more");

    let live = set_by(US, "Apply", object("ConfigMap", json!({"a": "1"})));
    let (_, deleted) = applied(Some(live), Change::Delete);
    let by_us = restored(second.as_ref(), &[&created, &deleted]);
    assert_eq!(
        (change_of(&by_us).0, by_us.created_again),
        (json!({"a": "1"}), false),
        "we deleted it, and know all of it"
    );
}

#[test]
fn a_masked_field_stays_as_it_is() {
    let (after, mut item) =
        applied(Some(kubectls(json!({"a": "1", "b": "1"}))), apply(json!({"a": "2", "b": "2"}), &[]));
    item.leaves[0] = Leaf { before: None, after: None, masked: true, ..item.leaves[0].clone() };
    let restored = restored(after.as_ref(), &[&item]);
    assert_eq!(paths(&restored.not_recorded), ["data.a"]);
    assert_eq!(change_of(&restored), (json!({"a": "2", "b": "1"}), vec![]), "left out, it would be removed");
}

#[test]
fn several_records_lead_back_to_what_was_there_before_the_first() {
    let first = kubectls(json!({"a": "1", "theirs": "t"}));
    let (second, one) = applied(Some(first), apply(json!({"a": "2", "map": {"x": 1}}), &[]));
    let (third, two) = applied(second, apply(json!({"a": "3", "map": {"y": 1}, "more": "m"}), &[]));
    let restored = restored(third.as_ref(), &[&two, &one]);
    let (fields, mut remove) = change_of(&restored);
    remove.sort();
    assert_eq!((fields, remove), (json!({"a": "1"}), vec!["data.map".to_owned(), "data.more".to_owned()]));
    assert_eq!(restored.changed_since, [], "compared with the end of the newest plan");
}

/// An object that was created again is ours as a whole, and an older record does not know all of it.
#[test]
fn what_we_own_besides_the_record_is_not_given_up() {
    let (after, item) = applied(Some(kubectls(json!({"a": "1"}))), apply(json!({"a": "2"}), &[]));
    let more = object("ConfigMap", json!({"a": "2", "b": {"c": "3"}}));
    let now = server_side_apply::apply(after.as_ref(), &more, None, US).0;
    assert_eq!(change_of(&restored(Some(&now), &[&item])), (json!({"a": "1", "b": {"c": "3"}}), vec![]));
}

/// Found by reading: everything was taken out that was in a map which the plan had created, and the metadata as a whole.
#[test]
fn what_others_have_added_to_an_object_that_we_created_stays() {
    let mut change = apply(json!({"a": "1"}), &[]);
    if let Change::Apply { fields, .. } = &mut change {
        fields["metadata"]["labels"] = json!({"ours": "1"});
    }
    let (after, item) = applied(None, change);
    let mut now = after.unwrap();
    now["data"]["theirs"] = json!("1");
    let entry = json!({"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:data": {"f:theirs": {}}}});
    now["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    let (_, mut remove) = change_of(&restored(Some(&now), &[&item]));
    remove.sort();
    assert_eq!(remove, ["data.a", "metadata.labels"]);
}

/// A definition may require the outermost maps, as that of KubeDescheduler does: without them, no update of the object is accepted.
#[test]
fn an_object_that_we_created_and_others_use_keeps_its_outermost_maps() {
    let (after, item) = applied(None, apply(json!({"a": "1", "map": {"x": {"y": 1}}}), &[]));
    let edited = |data: Value| {
        let mut now = after.clone().unwrap();
        let entry = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:data": data}});
        now["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
        now
    };
    let cases = [
        ("a field was set again to the same value", edited(json!({"f:a": {}}))),
        ("and one in a map", edited(json!({"f:map": {"f:x": {"f:y": {}}}}))),
    ];
    for (case, now) in cases {
        assert_eq!(
            change_of(&restored(Some(&now), &[&item])),
            (json!({}), vec!["data.a".into(), "data.map".into()]),
            "{case}"
        );
    }
    let (second, more) = applied(after.clone(), apply(json!({"a": "2", "b": "2"}), &[]));
    let now = server_side_apply::apply(second.as_ref(), &object("ConfigMap", json!({"b": "2"})), None, "kubectl").0;
    let mut beside = now;
    beside["metadata"]["managedFields"][1]["operation"] = "Update".into();
    let (_, remove) = change_of(&restored(Some(&beside), &[&more, &item]));
    assert!(!remove.contains(&"data".to_owned()), "by several plans: {remove:?}");
}

/// It was accepted without them before.
#[test]
fn an_object_that_existed_without_an_outermost_map_loses_it_again() {
    let mut live = kubectls(json!({}));
    live.as_object_mut().unwrap().remove("data");
    let (after, item) = applied(Some(live), apply(json!({"a": "1"}), &[]));
    let Some(Change::Apply { remove, .. }) = restored(after.as_ref(), &[&item]).change else { panic!("not set back") };
    assert_eq!(paths(&remove), ["data"]);
}

/// A label selector is atomic: a patch that takes out a member would make its author the owner of all of it.
#[test]
fn an_atomic_map_is_set_back_as_a_whole() {
    let selector = |labels: Value| json!({"selector": {"matchLabels": labels}});
    let live = kubectls(selector(json!({"theirs": "yes"})));
    let (after, item) = applied(Some(live), apply(selector(json!({"ours": "yes"})), &[]));
    let mut now = after.unwrap();
    now["data"] = selector(json!({"ours": "yes"}));
    let entry = json!({
        "manager": US, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:selector": {}}},
    });
    now["metadata"]["managedFields"] = json!([entry]);
    let mut item = item;
    let leaf = |name: &str, before: Option<&str>, after: Option<&str>| Leaf {
        path: ["f:data", "f:selector", "f:matchLabels", name].map(str::to_owned).to_vec(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
        ..Leaf::default()
    };
    item.leaves = vec![leaf("f:ours", None, Some("\"yes\"")), leaf("f:theirs", Some("\"yes\""), None)];
    item.created_maps = Vec::new();
    assert_eq!(change_of(&restored(Some(&now), &[&item])), (selector(json!({"theirs": "yes"})), vec![]));
}
