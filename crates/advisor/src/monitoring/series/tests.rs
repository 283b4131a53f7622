use api::virt_platform_config::{DriftedBy, Profile, VirtPlatformConfigSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::*;
use crate::monitoring::METRICS;

const NOW: i64 = 10_000;

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn condition(kind: &str, reason: &str, since: i64) -> Condition {
    Condition {
        type_: kind.into(),
        status: "True".into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: at(since),
    }
}

fn item(state: ItemState) -> Item {
    Item { state, ..Item::default() }
}

fn drifted_by(manager: &str) -> Item {
    let drifted_by = DriftedBy { manager: manager.into(), ..DriftedBy::default() };
    Item { drifted_by: Some(drifted_by), ..item(ItemState::Completed) }
}

fn pool(name: &str, state: RolloutState, updated: i32, progress: i64) -> PoolRollout {
    PoolRollout {
        pool: name.into(),
        state,
        updated: Some(updated),
        total: Some(6),
        last_progress: Some(at(progress)),
        ..PoolRollout::default()
    }
}

/// A configuration that has been in a phase for 100 seconds.
fn config(phase: Phase, reason: &str, items: Vec<Item>) -> VirtPlatformConfig {
    let mut config = VirtPlatformConfig::new("example-profile", VirtPlatformConfigSpec::new(Profile::Example));
    config.status = Some(VirtPlatformConfigStatus {
        phase: Some(phase),
        conditions: vec![condition(phase.as_str(), reason, NOW - 100)],
        items,
        ..VirtPlatformConfigStatus::default()
    });
    config
}

/// The series as text, without the prefix and the profile, which all have.
fn spoken(config: &VirtPlatformConfig) -> Vec<String> {
    let spoken = |sample: &Sample| {
        assert_eq!(sample.metric.labels.len(), sample.labels.len(), "{}", sample.metric.name);
        assert_eq!((sample.metric.labels[0], sample.labels[0].as_str()), ("profile", "example-profile"));
        let name = sample.metric.name.trim_start_matches("kubevirt_advisor_");
        format!("{name}{:?} {}", &sample.labels[1..], sample.value).replace("[]", "").replace('"', "")
    };
    series(config, at(NOW).0).iter().map(spoken).collect()
}

/// What every configuration has that is not ignored.
fn usual(phase: &str, age: u32, items: [u32; 4]) -> Vec<String> {
    let states = ["Pending", "InProgress", "Completed", "Failed"];
    let items = states.iter().zip(items).map(|(state, count)| format!("items[{state}] {count}"));
    let phase = [format!("config_phase[{phase}] 1"), format!("config_phase_age_seconds {age}")];
    phase.into_iter().chain(items).chain(["remediation_stalled 0".to_owned()]).collect()
}

fn assert_series(case: &str, config: &VirtPlatformConfig, expected: Vec<String>) {
    let (mut found, mut expected) = (spoken(config), expected);
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{case}");
}

#[test]
fn every_phase_has_one_series_and_its_age_and_ignored_has_none() {
    for &phase in Phase::ALL {
        let expected = match phase {
            Phase::Ignored => Vec::new(),
            _ => usual(phase.as_str(), 100, [0, 0, 0, 0]),
        };
        assert_series(phase.as_str(), &config(phase, phase.as_str(), Vec::new()), expected);
    }
}

#[test]
fn a_configuration_that_was_not_looked_at_yet_is_pending_since_it_was_created() {
    let mut new = VirtPlatformConfig::new("example-profile", VirtPlatformConfigSpec::new(Profile::Example));
    new.metadata.creation_timestamp = Some(at(NOW - 7));
    assert_series("new", &new, usual("Pending", 7, [0, 0, 0, 0]));
    new.spec.action = Action::Ignore;
    assert_series("new and ignored", &new, Vec::new());
}

#[test]
fn a_plan_waits_for_its_review_until_somebody_has_answered() {
    let pending = || vec![item(ItemState::Pending)];
    for (case, phase, reason, items, waits) in [
        ("drafted", Phase::ReviewRequired, "ReviewRequired", pending(), true),
        ("wrong digest", Phase::ReviewRequired, "ApprovalMismatch", pending(), true),
        ("rejected", Phase::ReviewRequired, "Rejected", pending(), false),
        ("changes nothing", Phase::ReviewRequired, "ReviewRequired", Vec::new(), false),
        ("scheduled", Phase::Scheduled, "Scheduled", pending(), false),
        ("applied", Phase::InProgress, "InProgress", pending(), false),
    ] {
        let found = spoken(&config(phase, reason, items));
        assert_eq!(found.contains(&"review_age_seconds 100".to_owned()), waits, "{case}: {found:?}");
    }
}

#[test]
fn impact_stall_and_items_are_as_the_status_says() {
    let items = vec![item(ItemState::Failed), item(ItemState::Completed), item(ItemState::Completed)];
    let mut failed = config(Phase::Failed, "ApplyFailed", items);
    let status = failed.status.as_mut().unwrap();
    status.impact_severity = Some(Severity::High);
    status.conditions.push(condition("Stalled", "ApplyFailed", 5));
    let more = ["config_impact[High] 1", "config_stalled[ApplyFailed] 1"].map(str::to_owned);
    assert_series("failed", &failed, [usual("Failed", 100, [0, 0, 2, 1]), more.to_vec()].concat());
    // A condition that does not hold any more says nothing.
    failed.status.as_mut().unwrap().conditions[1].status = "False".into();
    assert_eq!(spoken(&failed).iter().filter(|series| series.starts_with("config_stalled")).count(), 0);
}

#[test]
fn drift_is_told_by_manager_and_that_the_operator_gave_up() {
    let deleted = DriftedBy { manager: "unknown".into(), deleted: true, ..DriftedBy::default() };
    let deleted = Item { drifted_by: Some(deleted), ..item(ItemState::Completed) };
    let items = vec![drifted_by("kubectl-edit"), drifted_by("unknown"), drifted_by("kubectl-edit"), deleted];
    for (reason, stalled) in [("DriftDetected", 0), ("RemediationStalled", 1)] {
        let mut expected = usual("Drifted", 100, [0, 0, 4, 0]);
        expected.retain(|series| !series.starts_with("remediation"));
        let drifted = ["drifted_items[(deleted)] 1", "drifted_items[kubectl-edit] 2", "drifted_items[unknown] 1"];
        expected.extend(drifted.map(str::to_owned));
        expected.push(format!("remediation_stalled {stalled}"));
        assert_series(reason, &config(Phase::Drifted, reason, items.clone()), expected);
    }
}

#[test]
fn each_pool_is_told_once_with_the_worst_of_what_its_items_say() {
    let first = Item {
        rollout: vec![pool("worker", RolloutState::Updating, 2, NOW - 30), pool("infra", RolloutState::Paused, 0, 0)],
        ..item(ItemState::InProgress)
    };
    let second =
        Item { rollout: vec![pool("worker", RolloutState::Degraded, 2, NOW - 600)], ..item(ItemState::InProgress) };
    let mut expected = usual("InProgress", 100, [0, 2, 0, 0]);
    let pools = [
        "rollout_state[worker, Degraded] 1",
        "rollout_nodes[worker] 6",
        "rollout_updated_nodes[worker] 2",
        "rollout_without_progress_seconds[worker] 600",
        "rollout_state[infra, Paused] 1",
        "rollout_nodes[infra] 6",
        "rollout_updated_nodes[infra] 0",
        "rollout_without_progress_seconds[infra] 10000",
    ];
    expected.extend(pools.map(str::to_owned));
    assert_series("two items", &config(Phase::InProgress, "InProgress", vec![first, second]), expected);
}

#[test]
fn times_of_a_clock_that_was_ahead_count_as_now() {
    let mut early = config(Phase::Completed, "Completed", Vec::new());
    early.status.as_mut().unwrap().conditions[0].last_transition_time = at(NOW + 50);
    assert!(spoken(&early).contains(&"config_phase_age_seconds 0".to_owned()));
}

/// The largest status that the schema allows, with names that never repeat.
#[test]
fn the_number_of_series_is_bounded_whatever_the_status_says() {
    let item = |number: usize| Item {
        rollout: (0..64).map(|at| pool(&format!("pool-{number}-{at}"), RolloutState::Updating, 0, 0)).collect(),
        ..drifted_by(&format!("manager-{number}-{}", "x".repeat(500)))
    };
    let mut large = config(Phase::Drifted, "RemediationStalled", (0..64).map(item).collect());
    let status = large.status.as_mut().unwrap();
    status.impact_severity = Some(Severity::High);
    status.conditions.push(condition("Stalled", &"R".repeat(1_024), 0));
    let samples = series(&large, at(NOW).0);
    let of = |metric: &Metric| samples.iter().filter(|sample| sample.metric == metric).count();
    assert_eq!(of(&DRIFTED_ITEMS), MANAGERS + 1);
    let other = samples.iter().find(|sample| sample.labels.get(1).is_some_and(|label| label == OTHER)).unwrap();
    assert_eq!(other.value, 56.0, "nothing is lost");
    assert_eq!(of(&ROLLOUT_STATE), POOLS);
    assert!(samples.len() <= 4 * POOLS + MANAGERS + 11, "{}", samples.len());
    assert!(samples.iter().flat_map(|sample| &sample.labels).all(|label| label.len() <= LABEL));
    let mut seen = BTreeSet::new();
    for Sample { metric, labels, .. } in &samples {
        assert!(METRICS.contains(metric));
        assert!(seen.insert((metric.name, labels)), "{} {labels:?} twice", metric.name);
    }
}
