use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::{METRICS, promql_names::metrics_of},
    *,
};

fn rules(settings: &AlertSettings) -> Vec<Value> {
    groups(settings)[0]["rules"].as_array().unwrap().clone()
}

/// The rules of KubeVirt's linter, and the severities of OpenShift's guideline.
#[test]
fn names_labels_and_annotations_are_those_that_the_linter_of_kubevirt_asks_for() {
    let mut names = BTreeSet::new();
    for rule in rules(&AlertSettings::default()) {
        let text = |pointer: &str| rule.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = text("/alert");
        assert!(names.insert(name.to_owned()), "{name} twice");
        assert!(name.starts_with("VirtAdvisor"), "{name}: the component is its prefix");
        assert!(name.len() <= 50 && name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}: PascalCase");
        let expr = text("/expr");
        assert!(!expr.is_empty() && !expr.contains("{threshold}") && !expr.contains("{window}"), "{name}: {expr}");
        assert!(["warning", "info"].contains(&text("/labels/severity")), "{name}: none is critical");
        assert!(["critical", "warning", "none"].contains(&text("/labels/operator_health_impact")), "{name}");
        assert_eq!(text("/labels/kubernetes_operator_part_of"), "kubevirt", "{name}");
        assert_eq!(text("/labels/kubernetes_operator_component"), "virt-advisor-operator", "{name}");
        assert_eq!(text("/labels/namespace"), "openshift-cnv", "{name}");
        for annotation in ["/annotations/summary", "/annotations/description"] {
            let text = text(annotation);
            assert!(text.ends_with('.') && text.trim() == text && !text.contains("  "), "{name}: {text:?}");
        }
        assert!(!text("/annotations/summary").contains("{{"), "{name}: a summary is the same for all");
        let expected = format!("https://kubevirt.io/monitoring/runbooks/{name}");
        assert_eq!(text("/annotations/runbook_url"), expected);
    }
}

/// Nodes that are in trouble, and fields that are not as approved, are worth a look before all nodes reboot for an update.
#[test]
fn what_speaks_against_an_update_of_the_cluster_is_found_by_oc() {
    let rules = rules(&AlertSettings::default());
    let found = rules.iter().filter(|rule| rule["labels"]["openShiftUpdatePrecheck"] == "true");
    let names: Vec<&str> = found.map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(names, ["VirtAdvisorDrifted", "VirtAdvisorRolloutNotProgressing", "VirtAdvisorPoolDegraded"]);
}

#[test]
fn expressions_name_only_metrics_and_labels_that_the_operator_serves() {
    for alert in ALERTS {
        metrics_of(&alert.expr(1));
    }
}

/// A label that the expression drops would leave a gap in the text.
#[test]
fn descriptions_name_only_labels_that_the_expression_keeps() {
    for alert in ALERTS {
        let expr = alert.expr(1);
        let kept = expr.split_once(" by (").and_then(|(_, rest)| rest.split_once(')')).map_or("", |(kept, _)| kept);
        let kept: Vec<&str> = kept.split(", ").collect();
        let named = alert.description.split("$labels.").skip(1);
        for label in named.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap()) {
            assert!(kept.contains(&label), "{}: {label} is not in {kept:?}", alert.name);
        }
    }
}

#[test]
fn matched_phases_and_states_exist() {
    let definition = api::crd::yaml(&api::crd::virt_platform_config());
    for alert in ALERTS {
        let expr = alert.expr(1);
        for values in expr.split('"').skip(1).step_by(2) {
            for value in values.split('|') {
                assert!(definition.contains(&format!("- {value}\n")), "{}: {value}", alert.name);
            }
        }
    }
}

#[test]
fn a_template_of_runbooks_has_exactly_one_place_for_the_name() {
    let url = RunbookUrl::new("https://example.com/%s.html").unwrap();
    let settings = AlertSettings { runbook_url: url, ..AlertSettings::default() };
    assert_eq!(rules(&settings)[0]["annotations"]["runbook_url"], "https://example.com/VirtAdvisorDrifted.html");
    for template in ["", "https://example.com/", "https://example.com/%s/%s"] {
        let error = RunbookUrl::new(template).unwrap_err().to_string();
        assert!(error.contains("RUNBOOK_URL_TEMPLATE") && error.contains("exactly one %s"), "{error}");
    }
}

#[test]
fn all_times_shrink_together() {
    let shipped = rules(&AlertSettings::default());
    let fast = rules(&AlertSettings { speed: 600, ..AlertSettings::default() });
    let of = |rules: &[Value], name: &str, field: &str| {
        let rule = rules.iter().find(|rule| rule["alert"] == name).unwrap();
        rule[field].as_str().unwrap().to_owned()
    };
    for (name, field, expected, shortened) in [
        ("VirtAdvisorDrifted", "for", "15m", "1500ms"),
        ("VirtAdvisorPoolDegraded", "for", "5m", "500ms"),
        ("VirtAdvisorReviewOverdue", "expr", "> 259200", "> 432"),
        ("VirtAdvisorPrerequisiteMissing", "expr", "> 3600 and", "> 6 and"),
        ("VirtAdvisorErrorRateHigh", "expr", "[10m]", "[1s]"),
    ] {
        assert!(of(&shipped, name, field).contains(expected), "{name}: {}", of(&shipped, name, field));
        assert!(of(&fast, name, field).contains(shortened), "{name}: {}", of(&fast, name, field));
    }
}

#[test]
fn durations_are_written_in_their_largest_exact_unit() {
    for (milliseconds, expected) in
        [(0, "0ms"), (1, "1ms"), (1500, "1500ms"), (90_000, "90s"), (600_000, "10m"), (259_200_000, "72h")]
    {
        assert_eq!(duration(Duration::from_millis(milliseconds)), expected);
    }
}

/// What nobody looks at need not be served.
#[test]
fn every_metric_is_used_by_an_alert_or_by_the_dashboard() {
    let queries = ALERTS.iter().map(|alert| alert.expr(1)).chain(super::super::dashboard::queries());
    let used: BTreeSet<&str> = queries.flat_map(|query| metrics_of(&query)).collect();
    let unused: Vec<_> = METRICS.iter().map(|metric| metric.name).filter(|name| !used.contains(name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

/// An alert earlier than the condition would find nothing in the status, and a later one would say nothing new.
#[test]
fn a_rollout_without_progress_is_alerted_when_the_operator_tells_it() {
    let alert = ALERTS.iter().find(|alert| alert.name == "VirtAdvisorRolloutNotProgressing").unwrap();
    let expr = alert.expr(1);
    assert!(expr.contains("{state=\"NoProgress\"} == 1") && !expr.contains('>'), "it has a limit of its own: {expr}");
    assert_eq!((alert.threshold, alert.setting), (None, Some("--stuck-after")));
}
