//! Items that fail: refused, too slow, stuck; and what happens to the other items and to the plan.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{DESCHEDULER, PSI_ITEM};
use crate::webhook::Webhook;
use testkit::{
    configs::{condition, is_waiting_for_nodes, item, reason},
    eventually,
    platform::{LOAD_AWARE, Platform, descheduler, machine_config},
    rollout::PSI,
    running_operator::RunningOperator,
};

fn status<'a>(config: &'a Value, kind: &str) -> &'a str {
    condition(config, kind)["status"].as_str().unwrap_or("absent")
}

/// W11 (errors as success), D8 (failure policy), D9 (exact Completed): however often it is looked at, and until a new
/// spec.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_item_ends_the_plan_or_only_itself_as_the_failure_policy_says() {
    let platform = Platform::shared().await;
    let webhook = Webhook::against_writes("frozen until Monday").await;
    webhook.protect(&platform, &machine_config(PSI, json!({}))).await;
    let operator = RunningOperator::rechecking_every(&platform, Duration::from_millis(300)).await;

    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    let failed = platform.until_phase(LOAD_AWARE, "Failed").await;
    let message = item(&failed, PSI_ITEM)["message"].as_str().unwrap();
    assert!(message.starts_with("Failed to apply: ") && message.ends_with("frozen until Monday"), "{message}");
    assert_eq!(item(&failed, PSI_ITEM)["state"], "Failed");
    let message = condition(&failed, "Failed")["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("Item '{PSI_ITEM}' failed: ")), "{message}");
    assert_eq!(item(&failed, DESCHEDULER)["state"], "Pending", "Abort: nothing after it");
    assert_eq!(platform.find(&descheduler(Value::Null)).await, None);

    // A new generation is tried again, with another policy.
    platform.configure(LOAD_AWARE, json!({"failurePolicy": "Continue"})).await;
    let partly = platform.until_phase(LOAD_AWARE, "CompletedWithErrors").await;
    assert_eq!(item(&partly, PSI_ITEM)["state"], "Failed");
    assert_eq!(item(&partly, DESCHEDULER)["state"], "Completed", "Continue: the others are applied");

    // Rechecks do not change it.
    let mark = platform.mark().await;
    eventually("rechecks", async || {
        let requests = platform.requests_since(mark).await;
        (requests.iter().filter(|request| request.resource == "kubedeschedulers").count() >= 3).then_some(())
    })
    .await;
    let later = platform.config(LOAD_AWARE).await;
    assert_eq!(later, partly);
    assert_eq!(reason(&later, "CompletedWithErrors"), "CompletedWithErrors");
    let told = condition(&later, "CompletedWithErrors")["message"].as_str().unwrap();
    assert!(told.starts_with("Plan completed with some errors: item '") && told.contains("edit the spec"), "{told}");
    assert_eq!(status(&later, "Completed"), "False", "not a success");
    assert_eq!(condition(&later, "Completed")["message"], "Plan completed but some items failed");

    webhook.lift(&platform, &machine_config(PSI, json!({}))).await;
    let done = platform.complete(LOAD_AWARE, json!({"waitTimeout": "1h"}), &[PSI]).await;
    assert_eq!((status(&done, "CompletedWithErrors"), status(&done, "Failed")), ("False", "False"), "no trace is left");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_is_refused_when_planned_fails_the_plan_and_the_others_are_shown() {
    let platform = Platform::shared().await;
    let webhook = Webhook::start("no deschedulers here").await;
    webhook.protect(&platform, &descheduler(json!({"profiles": []}))).await;
    let operator = RunningOperator::start(&platform).await;
    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    let failed = platform.until_phase(LOAD_AWARE, "Failed").await;
    assert_eq!(reason(&failed, "Failed"), "WebhookRefused");
    let message = condition(&failed, "Failed")["message"].as_str().unwrap();
    assert!(message.starts_with("Failed to generate plan items: KubeDescheduler "), "{message}");
    assert!(message.ends_with("no deschedulers here"), "{message}");
    assert!(item(&failed, PSI_ITEM)["diff"].as_str().unwrap().contains("+  - psi=1\n"));
    assert_eq!(platform.changes_since(mark).await, [""; 0], "nothing of a plan that cannot be carried out");

    webhook.lift(&platform, &descheduler(json!({"profiles": []}))).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    operator.stop().await;
}

/// W2 (timeout counts as success), W10 (stale wait clock), D6 (waitTimeout fails), D8 (failure policy): Failed, or
/// CompletedWithErrors.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_takes_too_long_fails_its_item_although_nothing_is_heard() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let timeout = |waited: &str| {
        format!(
            "Timeout waiting for resource to become healthy (waited {waited}, timeout 1s): MachineConfigPool 'worker' is \
             processing changes (Updated: 3/3, Ready: 3/3)"
        )
    };
    // On a busy machine the operator may notice it some seconds later.
    let is_timeout = |message: &Value| (1..60).any(|seconds| *message == json!(timeout(&format!("{seconds}s"))));
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "waitTimeout": "1s"})).await;
    let failed = platform.until_phase(LOAD_AWARE, "Failed").await;
    let psi = item(&failed, PSI_ITEM);
    assert!(psi["state"] == "Failed" && is_timeout(&psi["message"]), "{psi}");
    let why = psi["message"].as_str().unwrap();
    assert_eq!(condition(&failed, "Failed")["message"], format!("Item '{PSI_ITEM}' failed: {why}"));
    assert_eq!((status(&failed, "Completed"), status(&failed, "InProgress")), ("False", "False"));

    platform.configure(LOAD_AWARE, json!({"failurePolicy": "Continue"})).await;
    let partly = platform.until_phase(LOAD_AWARE, "CompletedWithErrors").await;
    assert!(is_timeout(&item(&partly, PSI_ITEM)["message"]), "{}", item(&partly, PSI_ITEM));
    assert_eq!(status(&partly, "Completed"), "False");

    // The time counts from the beginning of the wait, not of the process.
    platform.configure(LOAD_AWARE, json!({"failurePolicy": "Abort", "waitTimeout": "2s"})).await;
    let waiting = platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    operator.stop().await;
    let operator = RunningOperator::start(&platform).await;
    let failed = platform.until_phase(LOAD_AWARE, "Failed").await;
    let since = |config: &Value| item(config, PSI_ITEM)["waitingSince"].clone();
    assert_eq!(since(&failed), since(&waiting));
    operator.stop().await;
}

/// W10 (stale wait clock): an earlier rollout does not count.
#[tokio::test(flavor = "multi_thread")]
async fn every_wait_has_a_clock_of_its_own() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let start = Instant::now();
    // Each wait alone must end within it, also on a busy machine.
    let limit = Duration::from_secs(15);
    platform.complete(LOAD_AWARE, json!({"waitTimeout": "15s"}), &[PSI]).await;
    // The limit of the first wait is over by now, or soon.
    eventually("the limit has passed", async || (start.elapsed() > limit).then_some(())).await;
    platform.roll(&[PSI], 1).await;
    platform.configure(LOAD_AWARE, json!({"failurePolicy": "Continue"})).await;
    platform.until_phase(LOAD_AWARE, "InProgress").await;
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}

/// W27 (unusual pools): the item tells what to do about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_degraded_or_paused_is_waited_for_and_says_so() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    platform.roll(&[PSI], 1).await;
    for (spec, change, expected) in [
        (json!({}), json!({"degradedMachineCount": 1}), "is degraded (1 degraded machines)"),
        (
            json!({"paused": true}),
            json!({"degradedMachineCount": 0}),
            "is paused (Updated: 1/3, Ready: 1/3); resume it to roll out the change",
        ),
        (json!({"paused": false}), json!({}), "is updating (Updated: 1/3, Ready: 1/3)"),
    ] {
        platform.set_pool(spec, change).await;
        let expected = format!("MachineConfigPool 'worker' {expected}");
        let says = |config: &Value| item(config, PSI_ITEM)["message"] == expected;
        let waiting = platform.until(LOAD_AWARE, &expected, says).await;
        assert_eq!(
            (&waiting["status"]["phase"], &item(&waiting, PSI_ITEM)["state"]),
            (&json!("InProgress"), &json!("InProgress"))
        );
    }
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    let config = platform.get(&machine_config(PSI, Value::Null)).await;
    assert_eq!(config["metadata"]["generation"], 1, "written once");
    operator.stop().await;
}
