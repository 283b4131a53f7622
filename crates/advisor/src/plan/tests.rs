//! Plans from intents and previews.

mod digest;

use api::{
    names::FIELD_MANAGER,
    virt_platform_config::{ImpactDetail, PoolImpact},
};
use proptest::prelude::*;

use super::*;
use crate::{
    Answer, ObjectRef, Query,
    intent::Weight,
    kind,
    test_cluster::{TestCluster, arbitrary, ours},
};

static ABOUT: ProfileInfo = ProfileInfo {
    name: "test-profile",
    description: "",
    category: "",
    impact_summary: "",
    impact: Severity::Low,
    advertised: false,
    options_member: None,
    former_manager: Some(FIELD_MANAGER),
    documentation: "",
};

fn intent(weight: Weight, change: Change) -> Intent {
    Intent {
        name: "set-it".into(),
        target: ObjectRef::namespaced(&kind::CONFIG_MAP, "here", "it"),
        version: "v1",
        change,
        managed: vec!["data".into()],
        message: "It will be set".into(),
        why: "because",
        inputs: Vec::new(),
        weight,
        restores: None,
    }
}

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": "here"}, "data": data})
}

fn apply(data: Value) -> Change {
    Change::Apply { fields: config_map(data), remove: Vec::new() }
}

fn assembled(intents: Vec<Intent>, previews: Vec<Preview>) -> Plan {
    Plan::assemble(
        &ABOUT,
        Draft { intents, notes: vec!["noted".into()], ..Draft::default() },
        previews,
        Facts::default(),
    )
}

/// One item, from the object before and after.
fn planned(weight: Weight, change: Change, live: Option<Value>, outcome: PreviewOutcome) -> PlannedItem {
    let preview = Preview { live, outcome, takes_over: Vec::new() };
    assembled(vec![intent(weight, change)], vec![preview]).items.remove(0)
}

fn forbidden() -> Refusal {
    Refusal::Forbidden { target: "ConfigMap here/it".into(), message: "no".into() }
}

#[test]
fn the_verb_says_what_would_be_done() {
    let (one, two) = (config_map(json!({"a": "1"})), config_map(json!({"a": "2"})));
    let mut touched = one.clone();
    touched["metadata"]["resourceVersion"] = "7".into();
    let cases = [
        (None, PreviewOutcome::Object(one.clone()), Verb::Created, "created"),
        (Some(one.clone()), PreviewOutcome::Object(two), Verb::Configured, "configured"),
        (Some(one.clone()), PreviewOutcome::Object(touched), Verb::Unchanged, "unchanged"),
        (Some(one.clone()), PreviewOutcome::Gone, Verb::Deleted, "deleted"),
        (None, PreviewOutcome::Gone, Verb::Unchanged, "unchanged"),
        (Some(one), PreviewOutcome::Refused(forbidden()), Verb::Refused, "refused"),
        (None, PreviewOutcome::Refused(forbidden()), Verb::Refused, "refused"),
    ];
    for (live, outcome, verb, word) in cases {
        let case = format!("{live:?} {outcome:?}");
        let planned = planned(Weight::Component, apply(json!({"a": "1"})), live, outcome);
        assert_eq!((planned.verb, planned.verb.as_str()), (verb, word), "{case}");
    }
}

#[test]
fn a_change_that_removes_more_fields_than_a_status_lists_is_refused() {
    let removing = |count: usize| {
        let remove = (0..count).map(|name| Path::dotted(&format!("data.x{name}"))).collect();
        let change = Change::Apply { fields: config_map(json!({"a": "1"})), remove };
        let (live, after) = (config_map(json!({})), config_map(json!({"a": "1"})));
        planned(Weight::Component, change, Some(live), PreviewOutcome::Object(after))
    };
    assert_eq!(removing(bounds::FIELD_PATHS).refusal, None);
    let refused = removing(bounds::FIELD_PATHS + 1);
    assert_eq!((refused.verb, refused.refusal.as_ref().map(Refusal::reason)), (Verb::Refused, Some("TooManyFields")));
    let message = refused.item.message.unwrap();
    assert!(message.contains("257 of its fields") && message.contains("at most 256"), "{message}");
}

/// A definition may get a new default between the read and the dry run.
#[test]
fn what_others_put_beside_it_is_nothing_to_be_written() {
    let verb = |live: Value, after: Value| {
        planned(Weight::Component, apply(json!({"a": "1"})), Some(live), PreviewOutcome::Object(after)).verb
    };
    let live = || config_map(json!({"a": "1"}));
    let mut defaulted = live();
    defaulted["immutable"] = false.into();
    assert_eq!(verb(live(), defaulted.clone()), Verb::Unchanged, "a default");
    assert_eq!(verb(config_map(json!({})), defaulted), Verb::Configured, "a default beside what we set");
    let given_up = ours(config_map(json!({"a": "1", "b": "2"})));
    assert_eq!(verb(given_up, live()), Verb::Configured, "what was ours and no longer is wanted");
}

#[test]
fn an_item_carries_what_the_status_shows() {
    let live = config_map(json!({"a": "1"}));
    let takes_over = vec![TakeOver { manager: "kubectl".into(), fields: vec!["data.a".into()] }];
    let preview = Preview {
        live: Some(live),
        outcome: PreviewOutcome::Object(ours(config_map(json!({"a": "2"})))),
        takes_over: takes_over.clone(),
    };
    let change = Change::Apply { fields: config_map(json!({"a": "2"})), remove: vec![Path::dotted("data.b")] };
    let plan = assembled(vec![intent(Weight::Platform, change)], vec![preview]);
    let item = &plan.items[0].item;
    assert_eq!(item.name, "set-it");
    assert_eq!(item.target_ref.api_version, "v1");
    assert_eq!(item.target_ref.namespace.as_deref(), Some("here"));
    assert_eq!(item.operation, Operation::Apply);
    assert_eq!(item.state, ItemState::Pending);
    assert_eq!(item.message.as_deref(), Some("It will be set"));
    assert_eq!(item.managed_fields, ["data"]);
    assert_eq!(item.removes, ["data.b"]);
    assert_eq!(item.takes_over, takes_over);
    assert_eq!(item.desired_state.clone().map(Value::Object), Some(config_map(json!({"a": "2"}))));
    assert_eq!(item.impact_severity, Some(Severity::Medium));
    let expected = "--- it (ConfigMap)\n+++ it (ConfigMap)\n@@ -1,6 +1,6 @@\n apiVersion: v1\n data:\n-  a: \"1\"\n+  a: \"2\"\n \
                    kind: ConfigMap\n metadata:\n   name: it\n";
    assert_eq!(item.diff.as_deref(), Some(expected));
    assert_eq!(plan.items[0].readable_diff, expected);
    assert_eq!(plan.items[0].why, "because");
    assert_eq!((plan.profile, plan.notes), ("test-profile", vec!["noted".to_owned()]));
    assert_eq!(item.applied_fingerprint, None);
}

#[test]
fn a_removal_shows_the_whole_object_going() {
    let live = ours(config_map(json!({"a": "1"})));
    let planned = planned(Weight::Component, Change::Delete, Some(live.clone()), PreviewOutcome::Gone);
    assert_eq!(planned.item.operation, Operation::Delete);
    assert_eq!(planned.item.desired_state, None);
    assert!(
        planned
            .item
            .diff
            .as_deref()
            .unwrap()
            .starts_with("--- it (ConfigMap)\n+++ /dev/null\n@@ -1,7 +0,0 @@\n-apiVersion: v1\n")
    );
    let leaves = drift::leaves(&planned.item, Some(&live));
    assert_eq!(leaves, [Path::dotted("data.a")], "what must be as it was until it is gone");
}

#[test]
fn a_refusal_is_an_item_of_its_own_kind() {
    let target = || "MachineConfig a".to_owned();
    let message = || "said so".to_owned();
    let cases = [
        (
            Refusal::NamespaceMissing { target: "ConfigMap here/it".into(), namespace: "here".into() },
            "NamespaceMissing",
            "ConfigMap here/it cannot be created: namespace here does not exist. Create it, or install the component that owns it",
        ),
        (
            Refusal::Webhook { target: target(), message: message() },
            "WebhookRefused",
            "MachineConfig a was refused by an admission webhook: said so",
        ),
        (
            Refusal::Policy { target: target(), message: "ValidatingAdmissionPolicy 'p' denied request: no".into() },
            "PolicyRefused",
            "MachineConfig a was refused by an admission policy: ValidatingAdmissionPolicy 'p' denied request: no",
        ),
        (
            Refusal::KindTerminating { target: target() },
            "KindTerminating",
            "MachineConfig a cannot be created: the definition of its kind is being deleted. When it is gone, install the component \
             that owns it; if it stays, look for objects of the kind that have finalizers",
        ),
        (
            Refusal::NoDryRun { target: target(), message: message() },
            "DryRunUnsupported",
            "MachineConfig a cannot be previewed: said so. The webhook must declare sideEffects None or NoneOnDryRun",
        ),
        (
            Refusal::UnknownField { target: target(), message: message() },
            "UnknownField",
            "MachineConfig a has no such field in the version that is installed: said so. Upgrade the component that owns it",
        ),
        (
            Refusal::Invalid { target: target(), message: message() },
            "Invalid",
            "MachineConfig a was refused as invalid: said so",
        ),
        (
            Refusal::Forbidden { target: target(), message: message() },
            "Forbidden",
            "MachineConfig a may not be changed: said so. Grant this right to whoever applies the plan",
        ),
    ];
    for (refusal, reason, text) in cases {
        assert_eq!(refusal.reason(), reason);
        let change = apply(json!({"a": "1"}));
        let planned =
            planned(Weight::Nodes, change, Some(config_map(json!({}))), PreviewOutcome::Refused(refusal.clone()));
        assert_eq!(planned.item.message.as_deref(), Some(text));
        assert_eq!(planned.item.state, ItemState::Failed);
        assert_eq!((planned.item.diff, planned.readable_diff.as_str()), (None, ""), "there is nothing to show");
        assert_eq!(planned.item.impact_severity, Some(Severity::High), "nobody knows: the worst");
        assert_eq!(planned.refusal, Some(refusal));
    }
}

#[test]
fn a_plan_with_a_refusal_names_it_and_is_not_done() {
    let refused = Preview { live: None, outcome: PreviewOutcome::Refused(forbidden()), takes_over: Vec::new() };
    let plan = assembled(vec![intent(Weight::Negligible, apply(json!({})))], vec![refused]);
    assert_eq!(plan.refusals().collect::<Vec<_>>(), [&forbidden()]);
    assert!(plan.has_changes());
}

#[test]
fn what_a_refused_change_may_do_is_judged_by_its_weight() {
    let cases = [
        (Weight::Negligible, Severity::Low),
        (Weight::Component, Severity::Medium),
        (Weight::Platform, Severity::Medium),
        (Weight::Nodes, Severity::High),
    ];
    for (weight, severity) in cases {
        let planned = planned(weight, apply(json!({})), None, PreviewOutcome::Refused(forbidden()));
        assert_eq!(planned.item.impact_severity, Some(severity), "{weight:?}");
    }
}

#[test]
fn impact_by_weight_and_by_what_happens() {
    let object = || config_map(json!({"a": "1"}));
    let other = || config_map(json!({"a": "2"}));
    let created = (None, PreviewOutcome::Object(object()));
    let changed = (Some(object()), PreviewOutcome::Object(other()));
    let same = (Some(object()), PreviewOutcome::Object(object()));
    let deleted = (Some(object()), PreviewOutcome::Gone);
    use Severity::{Low, Medium};
    let table = [
        (Weight::Negligible, [Low, Low, Low, Low]),
        (Weight::Component, [Medium, Low, Low, Low]),
        (Weight::Platform, [Medium, Medium, Low, Medium]),
    ];
    for (weight, expected) in table {
        for ((live, outcome), severity) in [&created, &changed, &same, &deleted].into_iter().zip(expected) {
            let planned = planned(weight, apply(json!({})), live.clone(), outcome.clone());
            assert_eq!(planned.item.impact_severity, Some(severity), "{weight:?} {live:?} {outcome:?}");
            assert_eq!(planned.item.impact_detail, None, "only nodes have details");
        }
    }
}

#[test]
fn the_strongest_impact_is_that_of_the_plan() {
    let item = |weight| {
        let outcome = match weight {
            Weight::Nodes => PreviewOutcome::Refused(forbidden()),
            _ => PreviewOutcome::Object(config_map(json!({}))),
        };
        (intent(weight, apply(json!({}))), Preview { live: None, outcome, takes_over: Vec::new() })
    };
    let severity = |weights: &[Weight]| {
        let (intents, previews) = weights.iter().map(|weight| item(*weight)).unzip();
        assembled(intents, previews).severity
    };
    assert_eq!(severity(&[]), Severity::Low);
    assert_eq!(severity(&[Weight::Negligible]), Severity::Low);
    assert_eq!(severity(&[Weight::Negligible, Weight::Component]), Severity::Medium);
    assert_eq!(severity(&[Weight::Nodes, Weight::Component, Weight::Negligible]), Severity::High);
}

#[test]
fn inputs_of_several_items_are_listed_once() {
    let input = |path: &str| PlanInput { source: "Thing/a".into(), path: path.into(), value: Some("1".into()) };
    let mut first = intent(Weight::Negligible, apply(json!({})));
    let mut second = first.clone();
    first.inputs = vec![input("spec.a"), input("spec.b")];
    second.inputs = vec![input("spec.b"), input("spec.c")];
    let preview =
        || Preview { live: None, outcome: PreviewOutcome::Object(config_map(json!({}))), takes_over: Vec::new() };
    let plan = assembled(vec![first, second], vec![preview(), preview()]);
    assert_eq!(plan.inputs, [input("spec.a"), input("spec.b"), input("spec.c")]);
}

#[test]
fn a_plan_without_changes_has_none() {
    let same = |verb: &str| {
        let object = config_map(json!({"a": verb}));
        Preview { live: Some(object.clone()), outcome: PreviewOutcome::Object(object), takes_over: Vec::new() }
    };
    let plan = assembled(vec![intent(Weight::Nodes, apply(json!({})))], vec![same("1")]);
    assert!(!plan.has_changes());
    assert_eq!(plan.severity, Severity::Low);
    assert!(!assembled(Vec::new(), Vec::new()).has_changes());
}

#[test]
fn the_fingerprint_is_of_what_is_live_and_the_snapshot_of_all_of_them() {
    let after = ours(config_map(json!({"a": "2"})));
    let item = |data: Value| {
        planned(
            Weight::Component,
            apply(json!({"a": "2"})),
            Some(config_map(data)),
            PreviewOutcome::Object(after.clone()),
        )
    };
    let one = item(json!({"a": "1"}));
    assert_eq!(
        one.fingerprint,
        crate::fingerprint::fingerprint(Some(&config_map(json!({"a": "1"}))), &[Path::dotted("data.a")])
    );
    assert_eq!(one.fingerprint, item(json!({"a": "1", "foreign": "x"})).fingerprint);
    assert_ne!(one.fingerprint, item(json!({"a": "3"})).fingerprint);
    assert_ne!(one.fingerprint, item(json!({})).fingerprint);

    let snapshot = |data: Value| {
        let live = Some(config_map(data));
        let preview = Preview { live, outcome: PreviewOutcome::Object(after.clone()), takes_over: Vec::new() };
        assembled(vec![intent(Weight::Component, apply(json!({"a": "2"})))], vec![preview]).snapshot
    };
    assert_eq!(snapshot(json!({"a": "1"})), snapshot(json!({"a": "1", "foreign": "x"})));
    assert_ne!(snapshot(json!({"a": "1"})), snapshot(json!({"a": "3"})));
}

#[test]
fn a_plan_that_was_applied_is_another_plan() {
    let mut cluster = TestCluster::empty();
    let before = cluster.plan("example-profile", json!({}));
    cluster.apply("example-profile", json!({}));
    let after = cluster.plan("example-profile", json!({}));
    assert_ne!(before.digest, after.digest);
    assert_ne!(before.snapshot, after.snapshot);
    assert_eq!(after, cluster.plan("example-profile", json!({})));
}
