//! What a record says of a plan, and what it leaves out when there is too much.

use api::{bounds, virt_platform_plan_record::Leaf};
use serde_json::{Value, json};

use super::*;
use crate::{
    Change, Draft, Intent, ObjectRef, Preview, PreviewOutcome, Profile, ProfileInfo, Query, Refusal,
    facts::Answer,
    intent::Weight,
    kind::{CONFIG_MAP, Kind},
    profiles::example::Example,
    test_cluster::server_side_apply,
};

const US: &str = "virt-advisor-operator/example-profile";

pub(super) fn config() -> VirtPlatformConfig {
    serde_json::from_value(json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": "example-profile", "uid": "config-uid", "generation": 4},
        "spec": {
            "profile": "example-profile", "action": "Apply", "options": {},
            "approval": {
                "planDigest": "d", "approvedBy": "alice", "notAfter": "2026-02-01T00:00:00Z",
                "window": {"start": "22:00", "duration": "6h"},
            },
        },
        "status": {
            "record": {"name": "example-profile-7", "planDigest": "d"},
            "approval": {
                "planDigest": "d", "mode": "Reviewed", "generation": 4, "time": "2026-01-05T07:00:00Z",
                "approvedBy": "alice", "reason": "CHG-17",
            },
            "items": [{
                "name": "item", "targetRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"},
                "impactSeverity": "Medium",
            }],
        },
    }))
    .unwrap()
}

/// The record of a plan.
pub(super) fn recorded(plan: &Plan) -> Result<VirtPlatformPlanRecord, TooLarge> {
    plan_record(&config(), plan, "v1.2", "2026-01-05T08:00:00Z".parse().unwrap())
}

fn about() -> &'static ProfileInfo {
    Example.about()
}

fn target() -> ObjectRef {
    ObjectRef::namespaced(&CONFIG_MAP, "here", "a")
}

pub(super) fn object(kind: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "here"}, "data": data})
}

/// The plan of one change, as the API server would preview it.
fn plan(live: Option<Value>, change: Change) -> Plan {
    plan_of(target(), live, change)
}

fn plan_of(target: ObjectRef, live: Option<Value>, change: Change) -> Plan {
    let intent = Intent {
        name: "item".into(),
        target: target.clone(),
        version: "v1",
        change: change.clone(),
        managed: vec!["data".into()],
        message: String::new(),
        why: "",
        inputs: Vec::new(),
        weight: Weight::Negligible,
        restores: None,
    };
    let outcome = match change {
        Change::Delete => PreviewOutcome::Gone,
        Change::Apply { fields, remove } => {
            let (mut after, _) = server_side_apply::apply(live.as_ref(), &fields, None, US);
            remove.iter().for_each(|path| path.remove(&mut after));
            PreviewOutcome::Object(after)
        }
    };
    let answer = match &live {
        Some(object) => Answer::Object { version: "v1", object: object.clone() },
        None => Answer::Absent { version: "v1" },
    };
    let facts = Facts::of([(Query::Object(target), answer)]);
    let draft = Draft { intents: vec![intent], notes: vec!["a note".into()], ..Draft::default() };
    Plan::assemble(about(), draft, vec![Preview { live, outcome, takes_over: Vec::new() }], facts)
}

fn apply(data: Value, remove: &[&str]) -> Change {
    let remove = remove.iter().map(|path| Path::dotted(path)).collect();
    Change::Apply { fields: object("ConfigMap", data), remove }
}

fn set_by(manager: &str, operation: &str, mut object: Value) -> Value {
    server_side_apply::record(&mut object, manager, operation);
    object
}

fn spec(live: Option<Value>, change: Change) -> VirtPlatformPlanRecordSpec {
    recorded(&plan(live, change)).unwrap().spec
}

/// The leaves as text: path, before, after, owners.
fn spoken(item: &RecordedItem) -> Vec<String> {
    let spoken = |leaf: &Leaf| {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let path = Path::from_keys(&leaf.path).unwrap();
        let masked = if leaf.masked { " masked" } else { "" };
        format!("{path}: {} -> {} [{}]{masked}", value(&leaf.before), value(&leaf.after), leaf.former_owners.join(","))
    };
    item.leaves.iter().map(spoken).collect()
}

#[test]
fn a_record_says_who_agreed_to_what_and_when() {
    let record = recorded(&plan(None, apply(json!({"a": "1"}), &[]))).unwrap();
    assert_eq!(record.metadata.name.as_deref(), Some("example-profile-7"));
    let mut spec = json!(record.spec);
    let item = spec["items"].take()[0].take();
    let expected = json!({
        "profile": "example-profile", "configUid": "config-uid", "generation": 4, "planDigest": "d", "options": {},
        "approval": {
            "planDigest": "d", "mode": "Reviewed", "generation": 4, "time": "2026-01-05T07:00:00Z", "approvedBy": "alice",
            "reason": "CHG-17", "notAfter": "2026-02-01T00:00:00Z", "window": {"start": "22:00", "duration": "6h"},
        },
        "operatorVersion": "v1.2", "startedAt": "2026-01-05T08:00:00Z", "impactSeverity": "Low", "notes": ["a note"],
        "first": true, "original": true, "items": null,
    });
    assert_eq!(spec, expected);
    assert_eq!(item["impactSeverity"], "Medium", "as reviewed");
    assert_eq!((&item["existed"], &item["fieldManager"]), (&json!(false), &json!(US)));
    assert!(item["diff"].as_str().unwrap().contains("+  a: \"1\""), "{item}");
    assert_eq!(item.get("readableDiff"), None, "it would say the same");
}

#[test]
fn a_record_keeps_the_forecast_that_was_approved_with_its_plan_and_no_other() {
    let recorded_with = |digest: &str| {
        let forecast = json!({
            "planDigest": digest, "madeAt": "2026-01-05T06:00:00Z", "scenario": "s", "scenarioDigest": "e", "seeds": 40,
            "horizonSeconds": 7200, "settlesPercent": 95, "hotNodes": ["n"], "stuckVms": 1,
            "figures": [{"name": "Migrations", "expected": "12", "low": "9", "high": "15.5"}],
        });
        let mut config = config();
        config.spec.approval.as_mut().unwrap().forecast = Some(serde_json::from_value(forecast.clone()).unwrap());
        let plan = plan(None, apply(json!({"a": "1"}), &[]));
        let record = json!(plan_record(&config, &plan, "v1", Timestamp::UNIX_EPOCH).unwrap().spec);
        (record["approval"].get("forecast").cloned(), forecast)
    };
    let (kept, forecast) = recorded_with("d");
    assert_eq!(kept, Some(forecast));
    assert_eq!(recorded_with("of an earlier plan").0, None);
}

#[test]
fn leaves_are_what_the_item_sets_removes_or_gives_up() {
    let live = |data: Value| {
        let mut object =
            set_by("kubectl", "Update", object("ConfigMap", json!({"a.b/c": "old", "theirs": "x", "r": {"s": 1}})));
        let ours = set_by(US, "Apply", json!({"metadata": {}, "data": data}));
        let entries = ours["metadata"]["managedFields"].as_array().unwrap().clone();
        object["metadata"]["managedFields"].as_array_mut().unwrap().extend(entries);
        for (name, value) in data.as_object().unwrap() {
            object["data"][name] = value.clone();
        }
        object["metadata"]["uid"] = "object-uid".into();
        object
    };
    let change =
        apply(json!({"a.b/c": "new", "kept": "same", "map": {"x": {"y": 1}}, "list": [1, 2], "none": {}}), &["data.r"]);
    let spec = spec(Some(live(json!({"given-up": "mine", "kept": "same"}))), change);
    let item = &spec.items[0];
    assert_eq!(
        spoken(item),
        [
            r#"data["a.b/c"]: "old" -> "new" [kubectl]"#.to_owned(),
            format!(r#"data.given-up: "mine" -> - [{US}]"#),
            format!(r#"data.kept: "same" -> "same" [{US}]"#),
            "data.list: - -> [1,2] []".to_owned(),
            "data.map.x.y: - -> 1 []".to_owned(),
            "data.none: - -> {} []".to_owned(),
            r#"data.r: {"s":1} -> - [kubectl]"#.to_owned(),
        ]
    );
    assert_eq!(item.created_maps, [vec!["f:data", "f:map"], vec!["f:data", "f:map", "f:x"]]);
    assert_eq!((item.existed, item.uid.as_deref()), (true, Some("object-uid")));
    assert!(spec.original, "fields of kubectl");
}

#[test]
fn a_deletion_records_everything_but_what_the_server_maintains() {
    let mut live = set_by(US, "Apply", object("ConfigMap", json!({"a": "1", "empty": {}})));
    live["metadata"]["labels"] = json!({"x.y/z": "l"});
    live["metadata"]["finalizers"] = json!(["f"]);
    for (field, value) in
        [("uid", "u"), ("resourceVersion", "7"), ("creationTimestamp", "t"), ("deletionTimestamp", "t")]
    {
        live["metadata"][field] = value.into();
    }
    live["status"] = json!({"phase": "there"});
    let spec = spec(Some(live), Change::Delete);
    assert_eq!(
        spoken(&spec.items[0]),
        [
            format!(r#"data.a: "1" -> - [{US}]"#),
            format!("data.empty: {{}} -> - [{US}]"),
            r#"metadata.finalizers: ["f"] -> - []"#.to_owned(),
            r#"metadata.labels["x.y/z"]: "l" -> - []"#.to_owned(),
        ]
    );
}

#[test]
fn what_others_change_along_with_a_write_is_not_the_items() {
    let live = set_by("kubectl", "Update", object("ConfigMap", json!({"a": "1"})));
    let mut plan = plan(Some(live), apply(json!({"a": "2", "map": {"x": 1}}), &[]));
    let after = plan.items[0].after.as_mut().unwrap();
    after["metadata"]["annotations"] = json!({"webhook": "was here"});
    after["data"]["map"]["default"] = json!(5);
    let spec = recorded(&plan).unwrap().spec;
    assert_eq!(
        spoken(&spec.items[0]),
        [r#"data.a: "1" -> "2" [kubectl]"#, "data.map.default: - -> 5 []", "data.map.x: - -> 1 []"],
        "a default in a map that the item creates goes with the map"
    );
}

#[test]
fn a_field_that_is_given_up_counts_also_if_a_default_takes_its_place() {
    let live = set_by(US, "Apply", object("ConfigMap", json!({"a": "1", "limit": 3})));
    let mut plan = plan(Some(live), apply(json!({"a": "1"}), &[]));
    plan.items[0].after.as_mut().unwrap()["data"]["limit"] = json!(2);
    let spec = recorded(&plan).unwrap().spec;
    assert_eq!(spoken(&spec.items[0])[1], format!("data.limit: 3 -> 2 [{US}]"));
}

#[test]
fn an_item_that_writes_nothing_has_no_fields_and_no_original_values() {
    let live = set_by(US, "Apply", object("ConfigMap", json!({"a": "1"})));
    let unchanged = spec(Some(live.clone()), apply(json!({"a": "1"}), &[]));
    assert_eq!((unchanged.items[0].leaves.len(), unchanged.original), (0, false));
    let changed = spec(Some(live.clone()), apply(json!({"a": "2"}), &[]));
    assert_eq!((changed.items[0].leaves.len(), changed.original), (1, false), "an earlier record has the value");
    assert!(!manages_nothing(&plan(Some(live), apply(json!({"a": "2"}), &[]))));
    assert!(manages_nothing(&plan(None, apply(json!({"a": "2"}), &[]))));
    let foreign = set_by("kubectl", "Apply", object("ConfigMap", json!({"a": "1"})));
    assert!(manages_nothing(&plan(Some(foreign), apply(json!({"a": "2"}), &[]))));
}

/// No profile changes a Secret yet.
static SECRET: Kind = Kind { group: "", versions: &["v1"], kind: "Secret", plural: "secrets", namespaced: true };

#[test]
fn a_plan_that_changes_secret_values_says_that_they_cannot_be_restored() {
    let target = ObjectRef::namespaced(&SECRET, "here", "a");
    let secret = |data: Value| object("Secret", data);
    let live = secret(json!({"kept.it": "x", "new": "old"}));
    let changed = plan_of(
        target.clone(),
        Some(live.clone()),
        Change::Apply { fields: secret(json!({"new": "n", "a.b/c": "1"})), remove: Vec::new() },
    );
    let spec = recorded(&changed).unwrap().spec;
    assert_eq!(spoken(&spec.items[0]), [r#"data["a.b/c"]: - -> - [] masked"#, "data.new: - -> - [] masked"]);
    let note = "Secret values are not recorded, so these fields cannot be restored later: data[\"a.b/c\"] (item 'item'), \
                data.new (item 'item')";
    assert_eq!((&changed.notes[1..], &spec.notes[1..]), (&[note.to_owned()][..], &[note.to_owned()][..]));
    let unchanged = plan_of(target, Some(live.clone()), Change::Apply { fields: live, remove: Vec::new() });
    assert_eq!((unchanged.has_changes(), unchanged.notes.len()), (false, 1), "nothing is written");
    assert_eq!(plan(None, apply(json!({"a": "1"}), &[])).notes.len(), 1, "nothing is secret");
}

#[test]
fn diffs_are_cut_before_values_and_the_readable_ones_first() {
    let long = |bytes: usize| "x".repeat(bytes);
    let sized = |value: usize, diff: usize, readable: usize| {
        let mut plan = plan(None, apply(json!({"a": long(value)}), &[]));
        plan.items[0].item.diff = Some("\n".repeat(diff));
        plan.items[0].readable_diff = "y".repeat(readable);
        recorded(&plan).map(|record| record.spec)
    };
    let lengths = |spec: &VirtPlatformPlanRecordSpec| {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let item = &spec.items[0];
        assert!(json!(spec).to_string().len() <= bounds::RECORD);
        (length(&item.leaves[0].after), length(&item.diff), length(&item.readable_diff))
    };
    assert_eq!(lengths(&sized(1000, 1000, 1000).unwrap()), (1002, 1000, 1000), "nothing is cut");
    assert_eq!(lengths(&sized(1000, bounds::DIFF + 9, 0).unwrap()).1, bounds::DIFF, "the bound of the schema");
    // A line break takes two bytes.
    let (value, diff, readable) = lengths(&sized(600_000, 100_000, 250_000).unwrap());
    assert_eq!((value, diff), (600_002, 100_000));
    assert!((240_000..249_999).contains(&readable), "{readable}");
    let (value, diff, readable) = lengths(&sized(900_000, 100_000, 250_000).unwrap());
    assert_eq!((value, readable), (900_002, 0));
    assert!((40_000..99_999).contains(&diff), "{diff}");
    let (value, diff, readable) = lengths(&sized(1_047_000, 100_000, 250_000).unwrap());
    assert_eq!((value, diff, readable), (1_047_002, 0, 0));
}

/// The reviewer learns it, and nobody waits for the approval of a plan that cannot be applied.
#[test]
fn a_plan_whose_values_do_not_fit_into_a_record_is_refused_when_it_is_made() {
    let sized = |bytes: usize| plan(None, apply(json!({"a": "x".repeat(bytes)}), &[]));
    let large = sized(1_048_576);
    let refusal = large.refusals().next().unwrap();
    assert_eq!(refusal.reason(), "TooLargeToRecord");
    let message = refusal.to_string();
    assert!(
        message.starts_with(
            "The values that item 'item' replaces in ConfigMap a do not fit into a record (the record would"
        ),
        "{message}"
    );
    assert!(message.contains("nothing is applied") && message.ends_with("then plan again"), "{message}");
    let planned = &large.items[0];
    assert_eq!(
        (planned.verb, planned.item.state.as_str(), &planned.item.diff),
        (crate::Verb::Refused, "Failed", &None)
    );
    assert_eq!(planned.item.message.as_deref(), Some(message.as_str()));
    assert_ne!(large.digest, sized(10).digest);

    // What fits when it is made fits when it is applied, whatever the approval adds.
    let Refusal::TooLarge(TooLarge { found, .. }) = refusal else { panic!("{refusal}") };
    let bytes: usize = found.split(' ').nth(4).unwrap().parse().unwrap();
    let fitting = 2 * bounds::RECORD - bytes;
    assert!(sized(fitting + 1).refusals().next().is_some());
    let fits = sized(fitting);
    assert_eq!(fits.refusals().next(), None);
    let mut config = config();
    config.status.as_mut().unwrap().approval.as_mut().unwrap().reason = Some("\u{1}".repeat(1_024));
    let record = plan_record(&config, &fits, "v1", Timestamp::UNIX_EPOCH).unwrap();
    assert!(json!(record.spec).to_string().len() > bounds::RECORD);
    let mut grown = fits;
    grown.items[0].after = Some(object("ConfigMap", json!({"a": "x".repeat(bounds::RECORD + bounds::RECORD_HEAD)})));
    assert!(recorded(&grown).unwrap_err().found.starts_with("the record would have"), "nothing is recorded in part");
}

#[test]
fn fields_that_the_schema_of_a_record_cannot_hold_are_refused() {
    let refusal = |data: Value| match plan(None, apply(data, &[])).refusals().next() {
        Some(Refusal::TooLarge(error)) => Some(error.found.clone()),
        other => other.map(|refusal| panic!("{refusal}")),
    };
    let many = |count: usize| Value::Object((0..count).map(|name| (name.to_string(), json!(1))).collect());
    let deep = |depth: usize| (1..depth).fold(json!(1), |below, _| json!({"a": below}));
    assert_eq!(refusal(many(bounds::LEAVES)), None);
    assert_eq!(refusal(many(bounds::LEAVES + 1)).as_deref(), Some("2049 fields"));
    assert_eq!(refusal(deep(bounds::PATH_ELEMENTS)), None);
    assert_eq!(refusal(deep(bounds::PATH_ELEMENTS + 1)).as_deref(), Some("a field at depth 65"));
    assert_eq!(refusal(json!({"a".repeat(bounds::FIELD_PATH - 2): 1})), None);
    let long = json!({"a".repeat(bounds::FIELD_PATH): 1});
    assert_eq!(refusal(long).as_deref(), Some("a field whose name has 1026 bytes"));
}

mod restoring;
