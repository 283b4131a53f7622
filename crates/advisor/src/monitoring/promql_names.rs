//! Which metrics and labels a query names, for tests: Prometheus accepts a misspelled name and returns nothing for it.

use super::{METRICS, MetricType};

/// Labels that the scrape adds, and the one that histograms have.
const SCRAPED: [&str; 5] = ["instance", "job", "namespace", "pod", "le"];

/// The metrics that a query names, each once. Panics at a metric or a label that does not exist.
pub(super) fn metrics_of(query: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut labels: Vec<&str> = SCRAPED.to_vec();
    let mut named: Vec<String> = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '"' || c == '[') {
        // Texts and ranges name nothing.
        if let Some(end) = match rest.as_bytes()[start] {
            b'"' => rest[start + 1..].find('"'),
            b'[' => rest[start + 1..].find(']'),
            _ => None,
        } {
            rest = &rest[start + end + 2..];
            continue;
        }
        let word: String =
            rest[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '$').collect();
        rest = &rest[start + word.len()..];
        if word.starts_with("kubevirt_") || word.starts_with("process_") {
            let (metric, is_part) = metric(&word).unwrap_or_else(|| panic!("there is no metric {word}: {query}"));
            assert_eq!(is_part, metric.metric_type == MetricType::Histogram, "{word}: {query}");
            labels.extend(metric.labels);
            if !found.contains(&metric.name) {
                found.push(metric.name);
            }
            if let Some(matchers) = rest.strip_prefix('{') {
                let (matchers, after) = matchers.split_once('}').unwrap_or_else(|| panic!("{query}"));
                for matcher in matchers.split(',') {
                    let label = matcher.trim().split(['=', '!']).next().unwrap_or_default();
                    assert!(metric.labels.contains(&label), "{} has no label {label}: {query}", metric.name);
                }
                rest = after;
            }
        } else if matches!(word.as_str(), "by" | "on") {
            let list = rest.trim_start().strip_prefix('(').unwrap_or_else(|| panic!("{word} without labels: {query}"));
            let (list, after) = list.split_once(')').unwrap_or_else(|| panic!("{query}"));
            named.extend(list.split(',').map(|label| label.trim().to_owned()));
            rest = after;
        }
    }
    for label in &named {
        assert!(labels.contains(&label.as_str()), "no metric of the query has a label {label}: {query}");
    }
    assert!(!found.is_empty(), "no metric of ours: {query}");
    found
}

/// The metric of a series, and whether it is the part of a histogram.
fn metric(series: &str) -> Option<(&'static super::Metric, bool)> {
    let named = |name: &str| METRICS.iter().find(|metric| metric.name == name);
    let part = || ["_bucket", "_sum", "_count"].iter().find_map(|suffix| named(series.strip_suffix(suffix)?));
    named(series).map(|metric| (metric, false)).or_else(|| part().map(|metric| (metric, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_query_are_found_whatever_is_around_them() {
        for (query, expected) in [
            ("sum(kubevirt_advisor_leader) == 0", &["kubevirt_advisor_leader"][..]),
            (
                "max by (profile, pool) (kubevirt_advisor_rollout_nodes) unless on (profile) (kubevirt_advisor_config_phase{phase=~\"A|B\"} == 1)",
                &["kubevirt_advisor_rollout_nodes", "kubevirt_advisor_config_phase"],
            ),
            (
                "histogram_quantile(0.95, sum by (le, profile) (rate(kubevirt_advisor_plan_duration_seconds_bucket[5m])))",
                &["kubevirt_advisor_plan_duration_seconds"],
            ),
        ] {
            assert_eq!(metrics_of(query), expected, "{query}");
        }
    }

    #[test]
    fn names_that_do_not_exist_are_errors() {
        for query in [
            "kubevirt_advisor_leaders",
            "sum by (profil) (kubevirt_advisor_items)",
            "kubevirt_advisor_items{pool=\"worker\"}",
            "rate(kubevirt_advisor_leader_bucket[5m])",
            "kubevirt_advisor_plan_duration_seconds",
            "up",
        ] {
            assert!(std::panic::catch_unwind(|| metrics_of(query)).is_err(), "{query}");
        }
    }
}
