//! Records: what was reviewed cannot be changed, and how the plan ended cannot be changed once it has ended.

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use virt_advisor_api::{VirtPlatformPlanRecord, bounds};

use crate::{
    example_cluster,
    manifest::{Change, Manifest, RECORD, change, change_by_status},
    table::{accept, check, check_on, each, from_yaml, reject, store},
};

const FINISHED: &str = "load-aware-rebalancing-7";
const RUNNING: &str = "virt-higher-density-1";

const IMMUTABLE: &str = "A record is immutable: its spec cannot be changed";
const FINAL: &str = "The plan has finished: its record is final and cannot be changed";
const NAME: &str =
    "The name of a record must be its profile, a dash and a number, for example load-aware-rebalancing-7";

/// A record of this name with more fields of the spec.
fn record(name: &str, spec: &str) -> Manifest {
    let rest = "profile: example-profile, configUid: a, generation: 1, planDigest: a, operatorVersion: v1, \
                impactSeverity: Low, startedAt: '2026-01-05T08:00:00Z'";
    Manifest::new(RECORD, name, &format!("spec: {{{rest}, {spec}}}"))
}

/// A record of one item with these fields.
fn item(fields: &str) -> Manifest {
    let target = "targetRef: {apiVersion: v1, kind: A, name: a}";
    let item = format!("{{name: a, {target}, operation: Apply, fieldManager: m, existed: true, {fields}}}");
    record("example-profile-1", &format!("items: [{item}]"))
}

#[tokio::test]
async fn what_was_reviewed_cannot_be_changed() {
    let server = example_cluster::server().await;
    let edits = [
        "spec: {planDigest: other}",
        "spec: {approval: {approvedBy: mallory}}",
        "spec: {approval: null}",
        "spec: {approval: {reason: null}}",
        "spec: {items: null}",
        "spec: {notes: [something else]}",
        "spec: {generation: 4}",
        "spec: {options: {loadAware: {mode: Predictive}}}",
    ];
    let refused = edits.map(|edit| reject(change(RECORD, FINISHED, edit), IMMUTABLE));
    let others = [
        reject(change(RECORD, FINISHED, "spec: null"), "spec: Required value"),
        reject(change(RECORD, RUNNING, "spec: {planDigest: other}"), IMMUTABLE),
        accept(change(
            RECORD,
            FINISHED,
            "spec: {planDigest: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae}",
        )),
        accept(change(RECORD, FINISHED, "metadata: {labels: {audited: 'true'}}")),
        // The status is not changed this way, so nothing is.
        store(change(RECORD, RUNNING, "status: {outcome: Failed}"), "status.outcome", "Running"),
        // The spec is not changed by way of the status.
        store(change_by_status(RECORD, RUNNING, "spec: {planDigest: x}"), "spec.generation", "1"),
    ];
    check_on(&server, refused.into_iter().chain(others)).await;
}

#[tokio::test]
async fn the_outcome_can_be_changed_until_the_plan_has_finished() {
    let server = example_cluster::server().await;
    let finished = |status: &str| change_by_status(RECORD, FINISHED, status);
    let running = |status: &str| change_by_status(RECORD, RUNNING, status);
    check_on(
        &server,
        [
            store(running("status: {outcome: Failed}"), "status.outcome", "Failed"),
            accept(running("status: {outcome: Completed, finishedAt: '2026-01-05T09:00:00Z'}")),
            accept(running("status: null")),
            reject(finished("status: {outcome: Failed}"), FINAL),
            reject(finished("status: {finishedAt: '2026-01-05T09:00:00Z'}"), FINAL),
            reject(finished("status: {finishedAt: null}"), FINAL),
            reject(finished("status: {message: null}"), FINAL),
            reject(finished("status: {reboots: []}"), FINAL),
            reject(finished("status: {items: null}"), FINAL),
            reject(finished("status: null"), FINAL),
            accept(finished("status: {outcome: Completed}")),
            accept(finished("metadata: {labels: {audited: 'true'}}")),
        ],
    )
    .await;
}

/// The same with writes that are stored: a dry run does not show what a second write meets.
#[tokio::test]
async fn a_record_goes_from_running_to_finished_and_stays_so() {
    let client = example_cluster::open().await.client().await.unwrap();
    let records: Api<VirtPlatformPlanRecord> = Api::all(client);
    let new = serde_json::from_value(from_yaml(&record("example-profile-3", "").yaml())).unwrap();
    records.create(&PostParams::default(), &new).await.unwrap();
    let patch = async |status: Value| {
        let patch = Patch::Merge(json!({"status": status}));
        records.patch_status("example-profile-3", &PatchParams::default(), &patch).await
    };
    let outcome = async || {
        let status = records.get("example-profile-3").await.unwrap().status;
        status.and_then(|status| status.outcome).map(|outcome| outcome.as_str().to_owned())
    };
    assert_eq!(outcome().await.as_deref(), Some("Running"), "the default, because nobody has written a status yet");
    patch(json!({"outcome": "Completed", "finishedAt": "2026-01-05T09:00:00Z"})).await.unwrap();
    for status in [json!({"outcome": "Failed"}), json!(null)] {
        let refused = patch(status).await.unwrap_err().to_string();
        assert!(refused.contains(FINAL), "{refused}");
    }
    assert_eq!(outcome().await.as_deref(), Some("Completed"));
}

#[tokio::test]
async fn a_name_is_the_profile_and_a_number() {
    let good = "example-profile-1 | example-profile-20 | example-profile-999999999";
    let bad = "example-profile | example-profile-0 | example-profile-07 | example-profile-x | example-profile-1-2 | \
               virt-higher-density-1 | example-profile-1000000000 | a";
    let good = each(good, |name| accept(record(name, "")));
    check(good.into_iter().chain(each(bad, |name| reject(record(name, ""), NAME)))).await;
}

#[tokio::test]
async fn a_record_is_bounded_and_complete() {
    let long = |most: usize| "x".repeat(most + 1);
    let leaf = |fields: &str| item(&format!("leaves: [{{{fields}}}]"));
    let path = |count: usize| format!("path: [{}]", vec!["'f:a'"; count].join(", "));
    let leaves = |count: usize| item(&format!("leaves: [{}]", vec!["{path: ['f:a']}"; count].join(", ")));
    check([
        accept(record("example-profile-1", "")),
        reject(Manifest::new(RECORD, "example-profile-1", "spec: {}"), "spec.profile: Required value"),
        reject(record("example-profile-1", "items: [{name: a}]"), "spec.items[0].targetRef: Required value"),
        reject(record("example-profile-1", "digest: a"), r#"unknown field "spec.digest""#),
        accept(leaf(&path(bounds::PATH_ELEMENTS))),
        reject(
            leaf(&path(bounds::PATH_ELEMENTS + 1)),
            "spec.items[0].leaves[0].path: Too many: 65: must have at most 64",
        ),
        reject(leaf("before: '1'"), "spec.items[0].leaves[0].path: Required value"),
        accept(leaf(&format!("{}, before: {}", path(1), "x".repeat(bounds::RECORD - 4096)))),
        reject(
            leaf(&format!("{}, before: {}", path(1), long(bounds::RECORD))),
            "spec.items[0].leaves[0].before: Too long: may not be more than 1048576 bytes",
        ),
        accept(leaves(bounds::LEAVES)),
        reject(leaves(bounds::LEAVES + 1), "spec.items[0].leaves: Too many: 2049: must have at most 2048 items"),
        accept(item(&format!("diff: {}", "x".repeat(bounds::DIFF)))),
        reject(
            item(&format!("readableDiff: {}", long(bounds::DIFF))),
            "spec.items[0].readableDiff: Too long: may not be more than 262144 bytes",
        ),
        // A record of earlier days is neither completed nor judged by the rules for new options.
        store(
            record("example-profile-1", "options: {virtHigherDensity: {enableSwap: false, memoryToRequestRatio: 150}}"),
            "spec.options",
            "{virtHigherDensity: {enableSwap: false, memoryToRequestRatio: 150}}",
        ),
        store(item("leaves: [{path: ['f:a.b']}]"), "spec.items.0.leaves.0", "{path: ['f:a.b']}"),
    ])
    .await;
}

#[tokio::test]
async fn every_word_of_an_outcome_is_accepted() {
    let server = example_cluster::server().await;
    let status = |yaml: &str| -> Change { change_by_status(RECORD, RUNNING, &format!("status: {yaml}")) };
    let words = "Running | Completed | CompletedWithErrors | Failed | Superseded";
    let words = each(words, |word| accept(status(&format!("{{outcome: {word}}}"))));
    let others = [
        reject(status("{outcome: Done}"), r#"status.outcome: Unsupported value: "Done": supported values: "Running""#),
        reject(status("{items: [{name: a}]}"), "status.items[0].state: Required value"),
        reject(status("{reboots: [{name: worker, nodes: -1}]}"), "should be greater than or equal to 0"),
    ];
    check_on(&server, words.into_iter().chain(others)).await;
}

#[tokio::test]
async fn whatever_the_types_can_say_is_stored() {
    let client = example_cluster::open().await.client().await.unwrap();
    let records: Api<VirtPlatformPlanRecord> = Api::all(client);
    for yaml in example_cluster::RECORDS {
        let shown: VirtPlatformPlanRecord = serde_json::from_value(from_yaml(yaml)).unwrap();
        let stored = records.get(&shown.name_any()).await.unwrap();
        assert_eq!((stored.spec, stored.status), (shown.spec, shown.status));
    }
}
