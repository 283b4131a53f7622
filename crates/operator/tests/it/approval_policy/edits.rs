//! Every edit that the policy is about: by whom, from which state, and what becomes of it.

use serde_json::{Value, json};
use testkit::{
    configs::config,
    platform::{DENSITY, LOAD_AWARE, Platform},
};

use super::{Person, approved, boss, cluster, install_policies, person, plan_a, plan_b, planned, writer};

/// The state that an edit meets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    /// DryRun, and there is no plan yet.
    NoPlan,
    /// DryRun with plan A.
    Planned,
    /// Plan A was approved by `approver`.
    Approved,
    /// The same, and then there was a plan B.
    Replanned,
    /// The same as Approved, and then plan A was rejected.
    Rejected,
}

use Before::{Approved, NoPlan, Planned, Rejected, Replanned};

/// Those who bring about the state that an edit meets.
struct Users {
    boss: Person,
    writer: Person,
    approver: Person,
}

async fn prepare(platform: &Platform, users: &Users, profile: &str, before: Before) -> Value {
    let object = config(profile, json!({"action": "DryRun"}));
    platform.delete(&object).await;
    let Users { boss, writer, approver } = users;
    boss.create(&object).await.unwrap();
    if before == NoPlan {
        return object;
    }
    writer.patch_status(&object, &planned(&plan_a()), "").await.unwrap();
    if before != Planned {
        approver.patch(&object, &json!({"spec": approved("approver", &plan_a())})).await.unwrap();
    }
    if before == Replanned {
        writer.patch_status(&object, &planned(&plan_b()), "").await.unwrap();
    }
    if before == Rejected {
        let rejected = json!({"spec": {"approval": {"rejected": {"planDigest": plan_a()}}}});
        approver.patch(&object, &rejected).await.unwrap();
    }
    object
}

/// Accepted, or refused with these words.
type Expected = Result<(), String>;

fn refused(words: impl Into<String>) -> Expected {
    Err(words.into())
}

fn may_not(who: &str) -> Expected {
    refused(format!("User {who} may not approve plans of {LOAD_AWARE}"))
}

fn digests(given: &str, current: &str) -> Expected {
    refused(format!("spec.approval.planDigest is {given}, and the current plan is {current}. "))
}

fn name_is(user: &str, given: &str) -> Expected {
    refused(format!("must be the user name of whoever sends the request, {user}, and it is {given}."))
}

fn options() -> Value {
    json!({"options": {"loadAware": {"enablePSIMetrics": false}}})
}

/// One edit after another in the same spec.
fn with(mut spec: Value, more: Value) -> Value {
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    spec
}

fn becoming_apply() -> Vec<(&'static str, Before, Value, Expected)> {
    let (a, b) = (&plan_a(), &plan_b());
    let bypass = json!({"bypassOptimisticLock": true});
    vec![
        ("approver", Planned, approved("approver", a), Ok(())),
        ("approver", Planned, approved("approver", b), digests(b, a)),
        ("approver", Planned, json!({"action": "Apply"}), digests("missing", a)),
        ("approver", NoPlan, approved("approver", a), refused(format!("is {a}, and there is no current plan. "))),
        ("editor", Planned, approved("editor", a), may_not("editor")),
        ("density-approver", Planned, approved("density-approver", a), may_not("density-approver")),
        // Who may do everything has to read the plan, too.
        ("boss", Planned, approved("boss", b), digests(b, a)),
        ("boss", Planned, approved("boss", a), Ok(())),
        (
            "approver",
            Planned,
            json!({"action": "Apply", "approval": {"planDigest": a}}),
            name_is("approver", "missing"),
        ),
        ("approver", Planned, approved("boss", a), name_is("approver", "boss")),
        (
            "approver",
            Planned,
            with(approved("approver", a), bypass.clone()),
            refused("User approver may not have changes of others overwritten"),
        ),
        ("admin", Planned, with(approved("admin", a), bypass), Ok(())),
    ]
}

fn not_applying() -> Vec<(&'static str, Before, Value, Expected)> {
    let (name, bypass) =
        (|name: &str| json!({"approval": {"approvedBy": name}}), json!({"bypassOptimisticLock": true}));
    vec![
        ("editor", Planned, options(), Ok(())),
        ("editor", Planned, json!({"action": "Ignore"}), Ok(())),
        ("editor", Planned, json!({"approval": {"mode": "Reviewed", "planDigest": plan_b()}}), Ok(())),
        ("editor", Planned, name("approver"), name_is("editor", "approver")),
        ("editor", Planned, name("editor"), Ok(())),
        ("editor", Planned, bypass.clone(), refused("User editor may not have changes of others overwritten")),
        ("admin", Planned, bypass, Ok(())),
    ]
}

fn under_apply() -> Vec<(&'static str, Before, Value, Expected)> {
    let (a, b) = (&plan_a(), &plan_b());
    let reject = |digest: &str| json!({"approval": {"rejected": {"planDigest": digest, "reason": "no"}}});
    let own_name = json!({"approval": {"approvedBy": "boss"}});
    vec![
        // Whoever may edit may stop.
        ("editor", Approved, json!({"action": "DryRun"}), Ok(())),
        ("editor", Approved, json!({"action": "Ignore"}), Ok(())),
        ("editor", Replanned, json!({"action": "DryRun", "approval": null}), Ok(())),
        ("editor", Approved, json!({"action": "DryRun", "approval": {"approvedBy": "boss"}}), Ok(())),
        ("editor", Approved, reject(a), Ok(())),
        ("editor", Replanned, reject(b), Ok(())),
        // A rejection of another plan would take back the one of the current plan, and so would its removal.
        ("editor", Rejected, reject(b), may_not("editor")),
        ("editor", Rejected, json!({"approval": {"rejected": null}}), may_not("editor")),
        ("approver", Rejected, json!({"approval": {"rejected": null}}), Ok(())),
        ("editor", Approved, with(reject(a), options()), may_not("editor")),
        ("editor", Approved, json!({"approval": {"rejected": {"planDigest": a}, "reason": "x"}}), may_not("editor")),
        // Everything else that can be changed.
        ("editor", Approved, options(), may_not("editor")),
        ("editor", Approved, json!({"bypassOptimisticLock": true}), may_not("editor")),
        ("editor", Approved, json!({"failurePolicy": "Continue"}), may_not("editor")),
        ("editor", Approved, json!({"waitTimeout": "1h"}), may_not("editor")),
        ("editor", Approved, json!({"approval": null}), may_not("editor")),
        ("editor", Approved, json!({"approval": {"mode": "Immediate"}}), may_not("editor")),
        ("editor", Approved, json!({"approval": {"notBefore": "2026-01-01T00:00:00Z"}}), may_not("editor")),
        ("editor", Approved, json!({"approval": {"reason": "x"}}), may_not("editor")),
        ("editor", Approved, json!({"approval": {"acceptedItems": ["x"]}}), may_not("editor")),
        ("editor", Approved, json!({"restore": {"record": "original"}}), may_not("editor")),
        ("approver", Replanned, json!({"restore": {"record": "original"}}), digests(a, b)),
        ("approver", Approved, options(), Ok(())),
        ("approver", Approved, json!({"approval": null}), digests("missing", a)),
        ("approver", Approved, json!({"approval": {"planDigest": null}}), digests("missing", a)),
        ("approver", Replanned, json!({"waitTimeout": "1h"}), digests(a, b)),
        ("approver", Replanned, approved("approver", b), Ok(())),
        ("approver", Approved, json!({"bypassOptimisticLock": true}), refused("needs the verb bypass")),
        // Whoever changes what was approved is the approver of that change.
        ("boss", Approved, options(), name_is("boss", "approver")),
        ("boss", Approved, with(options(), own_name), Ok(())),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_refused_unless_its_author_approves_the_current_plan_or_stops_it() {
    let platform = cluster().await;
    install_policies(&platform).await;
    let users = Users {
        boss: Person::new(&platform, &boss()).await,
        writer: Person::new(&platform, &writer()).await,
        approver: Person::new(&platform, &person("approver")).await,
    };
    let cases = [becoming_apply(), not_applying(), under_apply()].concat();
    let mut wrong = Vec::new();
    for (who, before, spec, expected) in cases {
        let object = prepare(&platform, &users, LOAD_AWARE, before).await;
        let identity = if who == "boss" { boss() } else { person(who) };
        let answer = Person::new(&platform, &identity).await.patch(&object, &json!({"spec": spec})).await;
        let holds = match (&answer, &expected) {
            (Ok(_), Ok(())) => true,
            (Err(status), Err(words)) => {
                status.code == 403 && status.message.contains("denied request: ") && status.message.contains(words)
            }
            _ => false,
        };
        if !holds {
            let said = answer.map(|_| ()).map_err(|status| status.message);
            wrong.push(format!("{who}, {before:?}, {spec}:\n  expected {expected:?}\n  got      {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // The approver of the other profile, and what people may ask beforehand.
    let object = prepare(&platform, &users, DENSITY, Planned).await;
    let one = Person::new(&platform, &person("density-approver")).await;
    one.patch(&object, &json!({"spec": approved("density-approver", &plan_a())})).await.unwrap();
    for (user, profile, expected) in [
        ("viewer", LOAD_AWARE, false),
        ("editor", LOAD_AWARE, false),
        ("approver", LOAD_AWARE, true),
        ("admin", LOAD_AWARE, true),
        ("density-approver", LOAD_AWARE, false),
        ("density-approver", DENSITY, true),
    ] {
        assert_eq!(super::can_approve(&platform, user, profile).await, expected, "{user} {profile}");
    }
}
