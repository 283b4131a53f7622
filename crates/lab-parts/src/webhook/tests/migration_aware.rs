//! The filter before the webhook that plays the plugin KubevirtMigrationAware.

use advisor::kube_descheduler::Release;
use balance::CoolDown;
use serde_json::{Value, json};
use standins::descheduler::Spec;

use super::case::{COUNTED, Case, IN_PROGRESS, TRIGGERED, deletion, edit, eviction};
use crate::webhook::{MigrationAwareSettings, Outcome, Step, Switch, migration_aware::in_effect};

/// The plugin's times, twenty times as fast: 45 s, 18 min and 144 min. The cases are decided at 2026-01-02T03:04:05.678Z.
const RULES: CoolDown = CoolDown { least: 45_000, greatest: 1_080_000, window: 8_640_000 };

fn by_descheduler() -> Value {
    let mut request = eviction();
    request["object"]["metadata"]["annotations"] =
        json!({"requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by p/s: over"});
    request
}

/// A migration by its beginning and its end, on that day.
fn migration(start: &str, end: &str) -> Value {
    json!({"startTimestamp": format!("2026-01-02T{start}Z"), "endTimestamp": format!("2026-01-02T{end}Z")})
}

/// What is said about a VM with these migrations. None if its eviction is recorded.
fn answer(request: Value, migrations: &[Value], cool_down: Option<CoolDown>) -> Option<String> {
    let mut case = Case { cool_down, ..Case::new(request) };
    edit(&mut case.vm, "/status/migrations", json!(migrations));
    denial(case)
}

fn denial(case: Case) -> Option<String> {
    match case.step() {
        Step::Send(_) => None,
        Step::Done(Outcome::Denied(denial)) => Some(denial.message()),
        other => panic!("{other:?}"),
    }
}

fn cools_down(seconds: u64) -> Option<String> {
    let told = format!("has migrated and is not evicted for another {seconds} s");
    Some(format!(r#"KubevirtMigrationAware: VMI "ns/a" {told}"#))
}

#[test]
fn a_vm_that_has_migrated_is_not_evicted_until_its_cool_down_is_over() {
    let short = |end: &str| migration(end, end);
    let table = [
        (vec![], None),
        (vec![short("03:04:00")], cools_down(40)),
        (vec![short("03:03:21")], cools_down(1)),
        (vec![short("03:03:20")], None),
        // Two migrations within the window double the cool-down, and three once more.
        (vec![short("02:00:00"), short("03:03:20")], cools_down(45)),
        (vec![short("01:00:00"), short("02:00:00"), short("03:03:20")], cools_down(135)),
        // Older than the window.
        (vec![short("00:30:00"), short("03:03:20")], None),
        // A migration that took a minute cools down for a minute.
        (vec![migration("03:02:20", "03:03:20")], cools_down(15)),
        // A clock that is behind.
        (vec![short("03:04:10")], cools_down(50)),
    ];
    for (migrations, expected) in table {
        assert_eq!(answer(by_descheduler(), &migrations, Some(RULES)), expected, "{migrations:?}");
        assert_eq!(answer(by_descheduler(), &migrations, None), None, "the plugin is off");
    }
}

#[test]
fn a_vm_that_migrates_is_not_evicted() {
    let migrating = |request: Value, cool_down| {
        let mut case = Case { cool_down, ..Case::new(request) };
        edit(&mut case.vm, "/status/evacuationNodeName", json!("n1"));
        denial(case).unwrap()
    };
    let told = r#"KubevirtMigrationAware: VMI "ns/a" migrates and is not evicted meanwhile"#;
    assert_eq!(migrating(by_descheduler(), Some(RULES)), told);
    assert_eq!(migrating(by_descheduler(), None), IN_PROGRESS);
    assert_eq!(migrating(eviction(), Some(RULES)), IN_PROGRESS, "a drain waits for the migration");
}

#[test]
fn only_the_descheduler_is_held_back() {
    let just = [migration("03:04:00", "03:04:05")];
    assert_eq!(answer(by_descheduler(), &just, Some(RULES)), cools_down(45));
    assert_eq!(answer(eviction(), &just, Some(RULES)), None);
    assert_eq!(answer(deletion(), &just, Some(RULES)), None);
    let mut by_other = by_descheduler();
    by_other["object"]["metadata"]["annotations"]["requested-by"] = json!("me");
    assert_eq!(answer(by_other, &just, Some(RULES)), None);
}

/// `evictPod` in pkg/descheduler/evictions/evictions.go of descheduler v0.36.0 takes a refusal with code 429 for an eviction in the
/// background only if its text contains `Eviction triggered evacuation`. Any other refusal is an error (`error when evicting pod
/// (ignoring)`, `result="error"` in its metrics): no limit counts it, and `evictPods` in
/// pkg/framework/plugins/nodeutilization/nodeutilization.go goes on with the next pod of the node.
#[test]
fn the_descheduler_counts_a_refusal_as_an_eviction_that_failed() {
    let cooling = answer(by_descheduler(), &[migration("03:04:00", "03:04:05")], Some(RULES)).unwrap();
    let mut case = Case { cool_down: Some(RULES), ..Case::new(by_descheduler()) };
    edit(&mut case.vm, "/status/evacuationNodeName", json!("n1"));
    let migrating = denial(case).unwrap();
    assert!(!cooling.contains(COUNTED) && !migrating.contains(COUNTED), "{cooling} {migrating}");
    assert!(TRIGGERED.contains(COUNTED) && IN_PROGRESS.contains(COUNTED));
}

#[test]
fn the_plugin_is_on_where_the_release_has_it_unless_it_is_switched() {
    let spec = |profile: &str| Spec::read(&json!({"profiles": [profile]})).unwrap();
    let (for_vms, other) = (spec("KubeVirtRelieveAndMigrate"), spec("LongLifecycle"));
    let is_on =
        |spec, switch, release| in_effect(spec, &MigrationAwareSettings { switch, release, time_scale: 1.0 }).is_some();
    for (spec, auto) in [(Some(&for_vms), true), (Some(&other), false), (None, false)] {
        assert_eq!(is_on(spec, Switch::Auto, Release::V5_1), auto);
        assert!(!is_on(spec, Switch::Auto, Release::V4_21), "it has no such plugin");
        assert!(is_on(spec, Switch::On, Release::V4_21));
        assert!(!is_on(spec, Switch::Off, Release::V5_1));
    }
    let settings = MigrationAwareSettings { switch: Switch::On, time_scale: 20.0, ..Default::default() };
    assert_eq!(in_effect(None, &settings), Some(RULES), "the defaults of the plugin");
}
