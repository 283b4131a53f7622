//! The text of the rules: names, order, labels. `prometheus.rs` tests what they compute.

use std::collections::HashSet;

use balance::{
    Algorithm,
    promql::{Options, Source, cluster_series, node_series, rules},
};

/// Holds L9 (missing series).
#[test]
fn series_are_named_as_the_requirements_name_them() {
    let k3 = Algorithm::amplified(3.0);
    assert_eq!(node_series(&k3), "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m");
    assert_eq!(cluster_series(&k3), "descheduler:cluster:linear_amplified_ideal_point_positive_distance:k3:avg1m");
    assert_eq!(node_series(&Algorithm::MaxMetric), "descheduler:node:max_metric:avg1m");
}

/// Holds L9 (missing series).
#[test]
fn all_algorithms_and_their_averages_are_recorded_once() {
    for source in Source::ALL {
        let rules = rules(&Options { source, ..Options::default() });
        let names: HashSet<&str> = rules.iter().map(|rule| rule.record.as_str()).collect();
        assert_eq!(names.len(), rules.len(), "no series is recorded twice");
        for algorithm in Algorithm::all() {
            assert!(names.contains(&*node_series(&algorithm)), "{algorithm}");
            assert!(names.contains(&*cluster_series(&algorithm)), "{algorithm}");
        }
    }
}

/// A rule that reads a later rule would lag by one evaluation.
#[test]
fn no_rule_reads_what_is_recorded_after_it() {
    for source in Source::ALL {
        let mut known = HashSet::new();
        for rule in rules(&Options { source, ..Options::default() }) {
            let word = |c: char| !(c.is_ascii_alphanumeric() || c == ':' || c == '_');
            for read in rule.expr.split(word).filter(|name| name.starts_with("descheduler:")) {
                assert!(known.contains(read), "{} reads {read}, which is not recorded before it", rule.record);
            }
            known.insert(rule.record);
        }
    }
}

#[test]
fn the_gate_at_70_percent_is_only_for_openshift() {
    for source in Source::ALL {
        let gated =
            rules(&Options { source, ..Options::default() }).iter().any(|rule| rule.expr.contains("> bool 0.7"));
        assert_eq!(gated, source == Source::OpenShift, "{source}");
    }
}

#[test]
fn the_window_is_configurable_and_the_names_stay() {
    let rules = rules(&Options { window: 7, algorithms: vec![Algorithm::MaxMetric], ..Options::default() });
    let has_window = |window: &str| rules.iter().any(|rule| rule.expr.contains(window));
    assert!(has_window("[7s]") && !has_window("[60s]"), "{rules:?}");
    assert!(rules.iter().any(|rule| rule.record == "descheduler:node:max_metric:avg1m"), "{rules:?}");
}

#[test]
fn labels_are_matched_and_quoted() {
    let labels = vec![("cluster".to_owned(), r#"it's "b" \ c"#.to_owned())];
    let rules = rules(&Options { labels, algorithms: vec![Algorithm::MaxMetric], ..Options::default() });
    let matched = r#"(node_cpu_usage_ratio{cluster="it's \"b\" \\ c"}[60s])"#;
    assert!(rules.iter().any(|rule| rule.expr.contains(matched)), "{rules:?}");
}
