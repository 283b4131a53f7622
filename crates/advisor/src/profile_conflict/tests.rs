//! Which fields belong to another profile, and that nothing is written to them.

use api::names::FIELD_MANAGER;

use super::*;
use crate::{
    Profile,
    machine::{NotWritten, Written},
    test_cluster::{
        TestCluster, set_by,
        sharing::{LEFT_MANAGER, Left, RIGHT_MANAGER, Right, config_map, target},
    },
    writing::{Input, Lock, Outcome, Request, Step, Writing},
};

fn item(spec: Value, removes: &[&str]) -> Item {
    Item {
        field_manager: Some(RIGHT_MANAGER.into()),
        desired_state: json!({"kind": "It", "metadata": {"name": "it"}, "spec": spec}).as_object().cloned(),
        removes: removes.iter().map(|&path| path.to_owned()).collect(),
        ..Item::default()
    }
}

fn deletion() -> Item {
    Item { operation: Operation::Delete, desired_state: None, ..item(json!({}), &[]) }
}

/// An object with the fields that each manager has applied.
fn live(spec: Value, managers: &[(&str, Value)]) -> Value {
    let entry =
        |(manager, fields): &(&str, Value)| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
    json!({"metadata": {"managedFields": managers.iter().map(entry).collect::<Vec<_>>()}, "spec": spec})
}

fn fields_in_conflict(item: &Item, live: &Value) -> Vec<String> {
    match conflict(Right.about(), &target(), item, Some(live), &[]) {
        Some(Refusal::ProfileConflict { fields, .. }) => fields,
        other => {
            assert_eq!(other, None);
            Vec::new()
        }
    }
}

#[test]
fn only_what_another_profile_wants_otherwise_is_in_conflict() {
    let of_left = |spec: Value, fields: Value| live(spec, &[(LEFT_MANAGER, json!({"f:spec": fields}))]);
    let a = || json!({"f:a": {}});
    let ports = || json!({"f:ports": {r#"k:{"port":80}"#: {".": {}, "f:name": {}, "f:port": {}}}});
    let port = |name: &str| json!({"ports": [{"port": 80, "name": name}]});
    let none: &[&str] = &[];
    let cases: [(&str, Item, Value, &[&str]); 16] = [
        ("another field", item(json!({"b": 1}), &[]), of_left(json!({"a": 1}), a()), none),
        ("the same value", item(json!({"a": 1}), &[]), of_left(json!({"a": 1}), a()), none),
        ("another value", item(json!({"a": 2}), &[]), of_left(json!({"a": 1}), a()), &["spec.a"]),
        ("given up", item(json!({}), &[]), of_left(json!({"a": 1}), a()), none),
        ("taken out", item(json!({}), &["spec.a"]), of_left(json!({"a": 1}), a()), &["spec.a"]),
        ("taken out with what it is in", item(json!({}), &["spec"]), of_left(json!({"a": 1}), a()), &["spec.a"]),
        ("taken out and not there", item(json!({}), &["spec.b"]), of_left(json!({"a": 1}), a()), none),
        ("an atomic map", item(json!({"a": {"x": 1}}), &[]), of_left(json!({"a": {"y": 1}}), a()), &["spec.a"]),
        ("a map with nothing in it yet", item(json!({"a": {"x": 1}}), &[]), of_left(json!({"a": {}}), a()), none),
        (
            "a map of which others own a part",
            item(json!({"a": {"x": 1}}), &[]),
            live(
                json!({"a": {"y": 1}}),
                &[(LEFT_MANAGER, json!({"f:spec": a()})), ("kubectl", json!({"f:spec": {"f:a": {"f:y": {}}}}))],
            ),
            none,
        ),
        ("an entry of a list", item(port("http"), &[]), of_left(port("web"), ports()), &["spec.ports[port=80].name"]),
        ("another entry", item(json!({"ports": [{"port": 443}]}), &[]), of_left(port("web"), ports()), none),
        (
            "the name that all profiles shared",
            item(json!({"a": 2}), &[]),
            live(json!({"a": 1}), &[(FIELD_MANAGER, json!({"f:spec": a()}))]),
            &["spec.a"],
        ),
        (
            "somebody who is no profile, and ourselves",
            item(json!({"a": 2}), &[]),
            live(json!({"a": 1}), &[("argocd", json!({"f:spec": a()})), (RIGHT_MANAGER, json!({"f:spec": a()}))]),
            none,
        ),
        ("the whole object", deletion(), of_left(json!({"a": 1}), a()), &["spec.a"]),
        (
            "the whole object, labeled",
            deletion(),
            live(json!({}), &[(LEFT_MANAGER, json!({"f:metadata": {"f:labels": {"f:x": {}}}}))]),
            none,
        ),
    ];
    for (case, item, live, expected) in cases {
        assert_eq!(fields_in_conflict(&item, &live), expected, "{case}");
    }
}

#[test]
fn a_profile_may_change_what_it_applied_when_all_shared_a_name() {
    let item = Item { field_manager: Some(LEFT_MANAGER.into()), ..item(json!({"a": 2}), &[]) };
    let live = live(json!({"a": 1}), &[(FIELD_MANAGER, json!({"f:spec": {"f:a": {}}}))]);
    assert_eq!(conflict(Left.about(), &target(), &item, Some(&live), &[]), None);
}

/// The API server knows which fields are atomic, and the plan follows it.
#[test]
fn what_a_dry_run_would_take_from_another_profile_is_in_conflict_too() {
    let taken = |manager: &str| [TakeOver { manager: manager.into(), fields: vec!["spec.a".into()] }];
    let told =
        |manager: &str| conflict(Right.about(), &target(), &item(json!({}), &[]), Some(&json!({})), &taken(manager));
    assert!(told(LEFT_MANAGER).is_some());
    assert_eq!(told("kubectl"), None);
}

/// With any plan and any lock, the target at the time of the write counts.
#[test]
fn nothing_is_written_over_a_value_that_another_profile_has_set_meanwhile() {
    let mut cluster = TestCluster::empty().with(set_by("kubectl", "Update", config_map(json!({"shared": "0"}))));
    let plan = cluster.plan_of(&Right, json!({"virtHigherDensity": {"ksmConfiguration": {}}}));
    assert_eq!(plan.refusals().count(), 0);
    let left = cluster.plan_of(&Left, json!({"loadAware": {"evictionLimitTotal": 100}}));
    let taken = cluster.carry_out(&left.items[0]).unwrap();
    for lock in [Lock::Compare, Lock::Bypass] {
        let mut writing = Writing::new(plan.items[0].clone(), lock);
        assert_eq!(writing.start(None), Step::Send(Request::Read));
        let step = writing.next(Input::Object(Box::new(taken.clone())));
        let Step::Done(Outcome::Finished(Err(NotWritten::Refused(refusal)))) = step else {
            panic!("{lock:?}: {step:?}")
        };
        assert_eq!(refusal.reason(), "ProfileConflict");
    }
}

/// Another profile sets the field between the apply and its removal.
#[test]
fn nothing_is_taken_out_that_another_profile_has_set_meanwhile() {
    let mut cluster = TestCluster::empty();
    let mut plan = cluster.plan_of(&Right, json!({}));
    let planned = &mut plan.items[0];
    planned.item.removes = vec!["data.shared".into()];
    cluster.carry_out(planned);
    let left = cluster.plan_of(&Left, json!({"loadAware": {"evictionLimitTotal": 100}}));
    let both = cluster.carry_out(&left.items[0]).unwrap();
    let mut writing = Writing::new(planned.clone(), Lock::Bypass);
    let first = writing.start(Some(None));
    assert!(matches!(first, Step::Send(Request::Apply(_))), "{first:?}");
    let step = writing.next(Input::Object(Box::new(both)));
    assert!(matches!(step, Step::Done(Outcome::Finished(Err(NotWritten::Refused(_))))), "{step:?}");
}

#[test]
fn an_object_is_not_deleted_with_what_another_profile_has_set_meanwhile() {
    let mut cluster = TestCluster::empty();
    cluster.carry_out(&cluster.plan_of(&Right, json!({})).items[0].clone());
    let plan = cluster.plan_of(&Right, json!({"virtHigherDensity": {"enableSwap": false}}));
    assert_eq!(plan.items[0].item.operation, Operation::Delete);
    let live = || cluster.find(target().kind, target().namespace, &target().name).cloned();
    let first_step = |live| Writing::new(plan.items[0].clone(), Lock::Compare).start(Some(live));
    let alone = first_step(live());
    assert!(matches!(alone, Step::Send(Request::Delete { .. })), "{alone:?}");
    let left = cluster.plan_of(&Left, json!({})).items[0].clone();
    let shared = cluster.clone().carry_out(&left);
    let step = first_step(shared);
    assert!(matches!(step, Step::Done(Outcome::Finished(Err(NotWritten::Refused(_))))), "{step:?}");
    assert_eq!(first_step(None), Step::Done(Outcome::Finished(Ok(Written::Gone))));
}
