//! A plan that is replaced while somebody approves it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use serde_json::json;
use testkit::{configs::config, platform::LOAD_AWARE};

use super::{Person, approved, boss, cluster, install_policies, person, plan_a, plan_b, planned, writer};

const APPROVALS: usize = 200;
const WRITERS: usize = 2;

/// The API server checks an approval against the version over which it stores the edit, so there is no moment in between.
#[tokio::test(flavor = "multi_thread")]
async fn no_approval_is_stored_over_another_plan_however_fast_plans_change() {
    let platform = cluster().await;
    install_policies(&platform).await;
    let object = config(LOAD_AWARE, json!({"action": "DryRun"}));
    Person::new(&platform, &boss()).await.create(&object).await.unwrap();
    let approver = Person::new(&platform, &person("approver")).await;

    let (done, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let (object, done, writes) = (object.clone(), done.clone(), writes.clone());
        let writer = Person::new(&platform, &writer()).await;
        writers.push(tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                for digest in [plan_a(), plan_b()] {
                    writer.patch_status(&object, &planned(&digest), "").await.unwrap();
                    writes.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..APPROVALS {
        match approver.patch(&object, &json!({"spec": approved("approver", &plan_a())})).await {
            Ok(stored) => {
                accepted += 1;
                assert_eq!(stored["status"]["planDigest"], json!(plan_a()), "approved over another plan");
            }
            Err(status) => {
                refused += 1;
                let words = format!("and the current plan is {}", plan_b());
                let no_plan = "and there is no current plan";
                assert!(status.message.contains(&words) || status.message.contains(no_plan), "{}", status.message);
            }
        }
        approver.patch(&object, &json!({"spec": {"action": "DryRun", "approval": null}})).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    println!("{accepted} accepted, {refused} refused, {} plans", writes.load(Ordering::Relaxed));
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
