//! What the policy costs whoever approves, and how soon it holds.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{configs::config, eventually, platform::LOAD_AWARE};

use super::{Person, approved, boss, cluster, person, plan_a, planned, put, shipped, until_enforced, writer};

const APPROVALS: usize = 60;
/// Other work on the machine only adds to a measurement, so the least of so many counts.
const MEASUREMENTS: usize = 5;

/// On an idle machine 0.2 s. The bound is for one that is busy with other tests, and still far below what a person would notice.
const UNTIL_ENFORCED: Duration = Duration::from_secs(10);

/// The median of the time that an approval takes.
async fn cost(approver: &Person, object: &Value) -> Duration {
    let mut times = Vec::new();
    for _ in 0..APPROVALS {
        let start = Instant::now();
        approver.patch(object, &json!({"spec": approved("approver", &plan_a())})).await.unwrap();
        times.push(start.elapsed());
        approver.patch(object, &json!({"spec": {"action": "DryRun", "approval": null}})).await.unwrap();
    }
    times.sort();
    times[APPROVALS / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_costs_about_the_same_and_the_policy_holds_soon_after_it_is_installed() {
    let platform = cluster().await;
    let boss = Person::new(&platform, &boss()).await;
    let object = config(LOAD_AWARE, json!({"action": "DryRun"}));
    boss.create(&object).await.unwrap();
    Person::new(&platform, &writer()).await.patch_status(&object, &planned(&plan_a()), "").await.unwrap();
    let approver = Person::new(&platform, &person("approver")).await;
    let without = cost(&approver, &object).await;

    let unread = config("example-profile", json!({"action": "Apply"}));
    assert!(boss.try_out(&unread).await.is_ok(), "without a policy");
    for object in ["policies.yaml", "bindings.yaml"].into_iter().flat_map(shipped) {
        put(&platform, &object).await;
    }
    let installed = Instant::now();
    eventually("unread plans are refused", async || boss.try_out(&unread).await.err()).await;
    let enforced = installed.elapsed();
    until_enforced(&platform).await;
    // Both are a few milliseconds: what is compared is the order of magnitude, on a machine that others use, too.
    let most = 3 * without + Duration::from_millis(10);
    let mut with = cost(&approver, &object).await;
    for _ in 1..MEASUREMENTS {
        if with < most {
            break;
        }
        with = with.min(cost(&approver, &object).await);
    }

    println!("median of an approval: {without:?} without the policy, {with:?} with it; enforced after {enforced:?}");
    assert!(enforced < UNTIL_ENFORCED, "{enforced:?}");
    assert!(with < most, "{with:?} with the policy, {without:?} without");
}
