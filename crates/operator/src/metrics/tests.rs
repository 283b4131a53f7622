use std::collections::BTreeMap;

use advisor::monitoring::{METRICS, MetricType};
use api::virt_platform_config::{
    Action, DriftedBy, Item, ItemState, PoolRollout, Profile, Severity, VirtPlatformConfigSpec,
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use super::*;

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn condition(kind: &str, reason: &str) -> Condition {
    Condition {
        type_: kind.into(),
        status: "True".into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: at(900),
    }
}

/// A configuration with everything that has a series.
fn config(profile: Profile, phase: Phase) -> Arc<VirtPlatformConfig> {
    let spec = VirtPlatformConfigSpec { action: Action::Apply, ..VirtPlatformConfigSpec::new(profile) };
    let mut config = VirtPlatformConfig::new(profile.as_str(), spec);
    let pool = PoolRollout {
        pool: "worker".into(),
        updated: Some(1),
        total: Some(6),
        last_progress: Some(at(900)),
        ..PoolRollout::default()
    };
    let drifted_by = Some(DriftedBy { manager: "kubectl-\"edit\"\n".into(), ..DriftedBy::default() });
    let item = Item { rollout: vec![pool], drifted_by, state: ItemState::InProgress, ..Item::default() };
    config.status = Some(VirtPlatformConfigStatus {
        phase: Some(phase),
        impact_severity: Some(Severity::High),
        items: vec![item],
        conditions: vec![condition(phase.as_str(), "Reason"), condition("Stalled", "NoProgress")],
        ..VirtPlatformConfigStatus::default()
    });
    Arc::new(config)
}

fn metrics() -> Metrics {
    Metrics::new("v1.2.3", Clock::new(|| Timestamp::from_second(1_000).unwrap(), 0))
}

/// Metrics of which every one has a series.
fn full() -> Metrics {
    let metrics = metrics();
    metrics.leads(true);
    let waiting = config(Profile::Example, Phase::ReviewRequired);
    metrics.saw(&waiting);
    metrics.saw(&config(Profile::LoadAwareRebalancing, Phase::InProgress));
    metrics.planned("example-profile", Duration::from_millis(30));
    let applied = config(Profile::LoadAwareRebalancing, Phase::InProgress);
    let mut completed = (*config(Profile::LoadAwareRebalancing, Phase::Completed)).clone();
    completed.status.as_mut().unwrap().phase = Some(Phase::Completed);
    metrics.recorded(applied.status.as_ref().unwrap(), &completed);
    let mut rejected = (*waiting).clone();
    rejected.status.as_mut().unwrap().conditions[0].reason = "Rejected".into();
    metrics.recorded(waiting.status.as_ref().unwrap(), &rejected);
    metrics.failed(&RequestError::timed_out("x".into(), Duration::from_secs(10)));
    let request = ObservedRequest { verb: "get", path: "/x", code: Some(200), took: Duration::from_millis(3) };
    metrics.answered(&request);
    metrics.watch_restarted("machineconfigpools", &Class::Unknown, 1);
    metrics
}

/// The samples of an answer: name with labels, and value.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        (series.to_owned(), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

#[test]
fn exactly_the_listed_metrics_are_served_in_their_order_with_type_and_help() {
    let text = full().encode().unwrap();
    let mut described: Vec<String> = text.lines().filter(|line| line.starts_with("# ")).map(str::to_owned).collect();
    assert_eq!(described.pop().as_deref(), Some("# EOF"));
    let expected = METRICS.iter().flat_map(|metric| {
        let (name, kind) = match metric.metric_type {
            MetricType::Gauge => (metric.name, "gauge"),
            MetricType::Counter => (metric.name.strip_suffix("_total").unwrap(), "counter"),
            MetricType::Histogram => (metric.name, "histogram"),
        };
        [format!("# HELP {name} {}", metric.help), format!("# TYPE {name} {kind}")]
    });
    assert_eq!(described, expected.collect::<Vec<_>>());
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn every_metric_has_its_labels_and_no_others() {
    let text = full().encode().unwrap();
    for metric in METRICS {
        let name = match metric.metric_type {
            MetricType::Histogram => format!("{}_count", metric.name),
            _ => metric.name.to_owned(),
        };
        let series =
            text.lines().find(|line| line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with([' ', '{'])));
        let series = series.unwrap_or_else(|| panic!("{name} has no series:\n{text}"));
        let labels = series[name.len()..].strip_prefix('{').and_then(|rest| rest.rsplit_once('}'));
        let labels = labels.map_or(Vec::new(), |(labels, _)| {
            labels.split(',').map(|label| label.split_once('=').unwrap().0).collect::<Vec<_>>()
        });
        assert_eq!(labels, metric.labels, "{series}");
    }
}

#[test]
fn values_are_those_of_the_last_status_at_the_time_of_the_scrape() {
    let found = samples(&full().encode().unwrap());
    for (series, value) in [
        ("kubevirt_advisor_config_phase{profile=\"example-profile\",phase=\"ReviewRequired\"}", 1.0),
        ("kubevirt_advisor_config_phase_age_seconds{profile=\"example-profile\"}", 100.0),
        ("kubevirt_advisor_review_age_seconds{profile=\"example-profile\"}", 100.0),
        ("kubevirt_advisor_rollout_updated_nodes{profile=\"load-aware-rebalancing\",pool=\"worker\"}", 1.0),
        ("kubevirt_advisor_approvals_total{profile=\"example-profile\",result=\"rejected\"}", 1.0),
        ("kubevirt_advisor_apply_duration_seconds_sum{profile=\"load-aware-rebalancing\"}", 100.0),
        ("kubevirt_advisor_reconcile_errors_total{class=\"Unknown\"}", 1.0),
        ("kubevirt_advisor_api_requests_total{verb=\"get\",code=\"200\"}", 1.0),
        ("kubevirt_advisor_build_info{version=\"v1.2.3\"}", 1.0),
        ("kubevirt_advisor_leader", 1.0),
        // What people choose as a name cannot add a series.
        ("kubevirt_advisor_drifted_items{profile=\"example-profile\",manager=\"kubectl-\\\"edit\\\"\\n\"}", 1.0),
    ] {
        assert_eq!(found.get(series), Some(&value), "{series} in {found:#?}");
    }
}

fn about(metrics: &Metrics, profile: &str) -> Vec<String> {
    let text = metrics.encode().unwrap();
    samples(&text).into_keys().filter(|series| series.contains(&format!("profile=\"{profile}\""))).collect()
}

#[test]
fn series_vanish_with_their_object_and_ignored_configurations_have_none() {
    let metrics = full();
    assert!(about(&metrics, "example-profile").len() > 10);
    metrics.forget("example-profile");
    assert_eq!(about(&metrics, "example-profile"), [] as [String; 0]);
    assert!(about(&metrics, "load-aware-rebalancing").len() > 10);
    metrics.saw(&config(Profile::LoadAwareRebalancing, Phase::Ignored));
    assert_eq!(about(&metrics, "load-aware-rebalancing"), [] as [String; 0]);
}

/// A reconciler that is at work when its configuration goes, or when it is told to ignore it, may still finish a plan.
#[test]
fn what_ends_late_does_not_bring_back_the_series_of_a_configuration_that_is_gone_or_ignored() {
    let metrics = full();
    metrics.forget("example-profile");
    let mut ignored = (*config(Profile::LoadAwareRebalancing, Phase::Ignored)).clone();
    ignored.spec.action = Action::Ignore;
    metrics.saw(&Arc::new(ignored));
    for profile in [Profile::Example, Profile::LoadAwareRebalancing] {
        metrics.planned(profile.as_str(), Duration::from_millis(30));
        let (before, after) = (config(profile, Phase::InProgress), config(profile, Phase::Completed));
        metrics.recorded(before.status.as_ref().unwrap(), &after);
        assert_eq!(about(&metrics, profile.as_str()), [] as [String; 0]);
    }
}

/// Every profile with more pools and field managers than have series, and the longest names that the schema allows.
#[test]
fn a_scrape_is_below_a_mebibyte_whatever_the_statuses_say() {
    let metrics = full();
    for &profile in Profile::ALL {
        let mut large = (*config(profile, Phase::Drifted)).clone();
        let status = large.status.as_mut().unwrap();
        let pool = |number: usize| PoolRollout {
            pool: format!("{number}-{}", "x".repeat(240)),
            updated: Some(1),
            total: Some(6),
            last_progress: Some(at(0)),
            ..PoolRollout::default()
        };
        let item = |number: usize| Item {
            rollout: (0..64).map(|at| pool(number * 64 + at)).collect(),
            drifted_by: Some(DriftedBy { manager: format!("{number}-{}", "x".repeat(120)), ..DriftedBy::default() }),
            ..Item::default()
        };
        status.items = (0..64).map(item).collect();
        metrics.saw(&Arc::new(large));
    }
    let start = std::time::Instant::now();
    let text = metrics.encode().unwrap();
    println!("{} bytes, {} lines in {:?}", text.len(), text.lines().count(), start.elapsed());
    assert!(text.len() < 256 * 1024, "{} bytes", text.len());
    assert!(samples(&text).len() < 700, "{} series", samples(&text).len());
}

#[test]
fn a_replica_that_does_not_lead_says_so_and_tells_of_no_configuration() {
    let metrics = full();
    metrics.leads(false);
    let found = samples(&metrics.encode().unwrap());
    assert_eq!(found["kubevirt_advisor_leader"], 0.0);
    assert!(!found.keys().any(|series| series.starts_with("kubevirt_advisor_config_phase")));
}

/// Without configurations no reconciler runs that could fail.
#[test]
fn a_failed_watch_of_the_configurations_is_an_error_of_the_operator_and_no_other_watch_is() {
    let metrics = metrics();
    metrics.watch_restarted("machineconfigpools", &Class::Busy, 7);
    metrics.watch_restarted("virtplatformconfigs", &Class::Unknown, 1);
    metrics.watch_restarted("virtplatformconfigs", &Class::Forbidden, 2);
    metrics.watch_restarted("virtplatformconfigs", &Class::Forbidden, 3);
    let mut found = samples(&metrics.encode().unwrap());
    found.retain(|series, _| series.starts_with("kubevirt_advisor_reconcile_errors_total"));
    assert_eq!(found, [("kubevirt_advisor_reconcile_errors_total{class=\"Forbidden\"}".to_owned(), 2.0)].into());
}

#[test]
fn watches_are_counted_and_their_duration_is_left_out() {
    let metrics = metrics();
    for (verb, code) in [("watch", Some(200)), ("watch", None), ("list", Some(403))] {
        metrics.answered(&ObservedRequest { verb, path: "/x", code, took: Duration::from_secs(18) });
    }
    let found = samples(&metrics.encode().unwrap());
    assert_eq!(found["kubevirt_advisor_api_requests_total{verb=\"watch\",code=\"200\"}"], 1.0);
    assert_eq!(found["kubevirt_advisor_api_requests_total{verb=\"watch\",code=\"0\"}"], 1.0);
    let timed: Vec<&String> = found.keys().filter(|series| series.contains("duration_seconds_count")).collect();
    assert_eq!(timed, ["kubevirt_advisor_api_request_duration_seconds_count{verb=\"list\"}"]);
}
