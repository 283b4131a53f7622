//! What a status may say, and how much of it. A controller that says more is refused like anybody else.

use http::Method;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use virt_advisor_api::{VirtPlatformConfig, bounds};

use crate::{
    example_cluster,
    manifest::{CONFIG, Change, MACHINE, change_by_status},
    table::{accept, check_on, each, reject, store},
};

const AWARE: &str = "load-aware-rebalancing";

fn status(yaml: &str) -> Change {
    change_by_status(CONFIG, AWARE, &format!("status: {yaml}"))
}

fn machine_status(yaml: &str) -> Change {
    change_by_status(MACHINE, "busy-vm", &format!("status: {yaml}"))
}

/// A plan of one item with the given fields.
fn item(fields: &str) -> Change {
    status(&format!("{{items: [{{name: a, targetRef: {{apiVersion: v1, kind: A, name: a}}, {fields}}}]}}"))
}

#[tokio::test]
async fn every_word_of_a_status_is_accepted() {
    let server = example_cluster::server().await;
    let phases = "Pending | Drafting | PrerequisiteFailed | ReviewRequired | InProgress | Completed | CompletedWithErrors | CompletedWithUpgrade | Failed | Drifted | Ignored";
    let cases = [
        each(phases, |word| accept(status(&format!("{{phase: {word}}}")))),
        each("Low | Medium | High", |word| accept(status(&format!("{{impactSeverity: {word}}}")))),
        each("Pending | InProgress | Completed | Failed", |word| accept(item(&format!("state: {word}")))),
        each("Apply | Delete", |word| accept(item(&format!("operation: {word}")))),
        each("Pending | Scheduling | Scheduled | Running | Failed | Stopped", |word| {
            accept(machine_status(&format!("{{phase: {word}}}")))
        }),
    ];
    check_on(&server, cases.into_iter().flatten()).await;
}

/// D17 (three impacts): an impact is Low, Medium or High.
#[tokio::test]
async fn a_status_is_bounded_and_typed() {
    let server = example_cluster::server().await;
    let long = |most: usize| "x".repeat(most + 1);
    let condition = |status: &str, reason: &str| {
        let rest = "message: '', lastTransitionTime: '2025-12-18T21:23:24Z'";
        machine_status(&format!("{{conditions: [{{type: A, status: {status}, reason: {reason}, {rest}}}]}}"))
    };
    let items = |count: usize| {
        let one = |index| format!("{{name: i{index}, targetRef: {{apiVersion: v1, kind: A, name: a}}}}");
        status(&format!("{{items: [{}]}}", (0..count).map(one).collect::<Vec<_>>().join(", ")))
    };
    let notes = |count: usize| status(&format!("{{notes: [{}]}}", vec!["a"; count].join(", ")));
    let cases = [
        reject(
            status("{phase: Done}"),
            r#"status.phase: Unsupported value: "Done": supported values: "Pending", "Drafting""#,
        ),
        reject(
            status("{impactSeverity: Huge}"),
            r#"status.impactSeverity: Unsupported value: "Huge": supported values: "Low", "Medium", "High""#,
        ),
        reject(
            status("{observedGeneration: -1}"),
            "status.observedGeneration: Invalid value: -1: observedGeneration in body should be greater than or equal to 0",
        ),
        reject(
            status("{observedGeneration: '1'}"),
            r#"status.observedGeneration: Invalid value: "string": observedGeneration in body must be of type integer"#,
        ),
        reject(
            status(&format!("{{planDigest: {}}}", long(128))),
            "status.planDigest: Too long: may not be more than 128 bytes",
        ),
        accept(item(&format!("diff: {}", "x".repeat(bounds::DIFF)))),
        reject(
            item(&format!("diff: {}", long(bounds::DIFF))),
            "status.items[0].diff: Too long: may not be more than 262144 bytes",
        ),
        accept(item(&format!("message: {}", "x".repeat(bounds::MESSAGE)))),
        reject(
            item(&format!("message: {}", long(bounds::MESSAGE))),
            "status.items[0].message: Too long: may not be more than 32768 bytes",
        ),
        reject(
            item("state: Done"),
            r#"status.items[0].state: Unsupported value: "Done": supported values: "Pending", "InProgress", "Completed", "Failed""#,
        ),
        reject(
            item("operation: Patch"),
            r#"status.items[0].operation: Unsupported value: "Patch": supported values: "Apply", "Delete""#,
        ),
        reject(
            item("desiredState: text"),
            r#"status.items[0].desiredState: Invalid value: "string": items[0].desiredState in body must be of type object"#,
        ),
        reject(
            item("lastTransitionTime: yesterday"),
            r#"status.items[0].lastTransitionTime: Invalid value: "yesterday": items[0].lastTransitionTime in body must be of type date-time: "yesterday""#,
        ),
        reject(
            item("impactDetail: {pools: [{name: worker, nodes: -1}]}"),
            "status.items[0].impactDetail.pools[0].nodes: Invalid value: -1: items[0].impactDetail.pools[0].nodes in body should be greater than or equal to 0",
        ),
        reject(status("{items: [{name: a}]}"), "status.items[0].targetRef: Required value"),
        reject(
            status("{items: [{name: '', targetRef: {apiVersion: v1, kind: A, name: a}}]}"),
            r#"status.items[0].name: Invalid value: "": items[0].name in body should be at least 1 chars long"#,
        ),
        reject(
            status(
                "{items: [{name: a, targetRef: {apiVersion: v1, kind: A, name: a}}, {name: a, targetRef: {apiVersion: v1, kind: A, name: b}}]}",
            ),
            r#"status.items[1]: Duplicate value: {"name":"a"}"#,
        ),
        store(item(""), "status.items.0.state", "Pending"),
        accept(items(bounds::ITEMS)),
        reject(items(bounds::ITEMS + 1), "status.items: Too many: 65: must have at most 64 items"),
        accept(notes(bounds::SHORT_LIST)),
        reject(notes(bounds::SHORT_LIST + 1), "status.notes: Too many: 65: must have at most 64 items"),
        reject(
            status(&format!("{{notes: [{}]}}", long(bounds::NOTE))),
            "status.notes[0]: Too long: may not be more than 2048 bytes",
        ),
        reject(status("{inputs: [{source: a}]}"), "status.inputs[0].path: Required value"),
        reject(status("{progress: 1}"), r#"strict decoding error: unknown field "status.progress""#),
        // The applied options are a record: neither completed nor judged by today's rules.
        store(
            status(
                "{appliedOptions: {loadAware: null, virtHigherDensity: {enableSwap: false, memoryToRequestRatio: 150}}}",
            ),
            "status.appliedOptions",
            "{virtHigherDensity: {enableSwap: false, memoryToRequestRatio: 150}}",
        ),
        // What belongs to others is kept as it is.
        store(
            item("desiredState: {a: {b: [1, x]}, c: 0.5}"),
            "status.items.0.desiredState",
            "{a: {b: [1, x]}, c: 0.5}",
        ),
        accept(condition("Unknown", "Starting")),
        reject(
            condition("Maybe", "A"),
            r#"status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown""#,
        ),
        reject(
            condition("'True'", "''"),
            r#"status.conditions[0].reason: Invalid value: "": conditions[0].reason in body should be at least 1 chars long"#,
        ),
        reject(
            condition("'True'", "two words"),
            r#"status.conditions[0].reason: Invalid value: "two words": conditions[0].reason in body should match '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'"#,
        ),
        reject(
            machine_status("{phase: Paused}"),
            r#"status.phase: Unsupported value: "Paused": supported values: "Pending", "Scheduling", "Scheduled", "Running", "Failed", "Stopped""#,
        ),
        reject(
            machine_status(&format!("{{nodeName: {}}}", long(bounds::NAME))),
            "status.nodeName: Too long: may not be more than 253 bytes",
        ),
        reject(
            machine_status("{createdAt: now}"),
            r#"status.createdAt: Invalid value: "now": createdAt in body must be of type date-time: "now""#,
        ),
        reject(machine_status("{conditions: [{type: Ready}]}"), "status.conditions[0].status: Required value"),
    ];
    check_on(&server, cases).await;
}

/// Plan items with diffs of the greatest length, 256 KiB each.
fn plan(items: usize) -> Value {
    let diff = "x".repeat(bounds::DIFF);
    let target = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a" });
    let item = |index| json!({ "name": format!("item-{index}"), "targetRef": target, "diff": diff });
    json!({ "status": { "items": (0..items).map(item).collect::<Vec<_>>() } })
}

#[tokio::test]
async fn a_plan_of_a_mebibyte_is_stored_and_a_larger_one_is_refused_by_the_store() {
    let server = example_cluster::server().await;
    let configs: Api<VirtPlatformConfig> = Api::all(server.0.clone());
    let params = PatchParams::default().validation_strict();
    configs.patch_status("example-profile", &params, &Patch::Merge(plan(4))).await.unwrap();
    let stored = configs.get("example-profile").await.unwrap().status.unwrap();
    let diffs: usize = stored.items.iter().map(|item| item.diff.as_ref().unwrap().len()).sum();
    assert_eq!(diffs, 1 << 20);

    let path = format!("{}/example-profile/status", CONFIG.path);
    let answer = server.send(Method::PATCH, &path, "application/merge-patch+json", plan(7).to_string()).await;
    assert_eq!((answer.code, answer.message()), (500, "etcdserver: request is too large"));
    assert_eq!(configs.get("example-profile").await.unwrap().status.unwrap().items.len(), 4);
}
