//! The shipped rules in promtool: they are valid, and each fires when it shall and not before, with exactly its labels and texts.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Output},
};

use advisor::monitoring::{ALERTS, Alert, AlertSettings, RunbookUrl, alerts::rule_file, files, prometheus_rule};
use devcluster::tools::{self, Program};
use serde_json::{Value, json};

use super::cases::{CASES, Case, Fires, HEALTHY};
use crate::{guide::terminal::root, support::text};

/// Longer than any case takes to fire.
const LAST_MINUTE: u32 = 40;

fn promtool(folder: &Path, args: &[&str]) -> Output {
    Command::new(tools::ensure(Program::Promtool).unwrap()).args(args).current_dir(folder).output().unwrap()
}

/// A folder with the rules that are committed, as a plain rule file: promtool does not know the object.
fn folder() -> tempfile::TempDir {
    let committed = std::fs::read_to_string(root().join("config/monitoring/rules.yaml")).unwrap();
    let object: Value = serde_saphyr::from_str(&committed).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let groups = json!({"groups": object["spec"]["groups"]}).to_string();
    std::fs::write(folder.path().join("rules.yml"), groups).unwrap();
    folder
}

fn alert(name: &str) -> &'static Alert {
    ALERTS.iter().find(|alert| alert.name == name).unwrap_or_else(|| panic!("there is no alert {name}"))
}

/// The alert as Prometheus would send it.
fn sent(fires: &Fires) -> Value {
    let alert = alert(fires.alert);
    let mut labels = json!({
        "severity": alert.severity.as_str(),
        "operator_health_impact": alert.health_impact.as_str(),
        "kubernetes_operator_part_of": "kubevirt",
        "kubernetes_operator_component": "virt-advisor-operator",
        "namespace": "openshift-cnv",
    });
    for (label, value) in fires.labels {
        labels[label] = (*value).into();
    }
    let annotations = json!({
        "summary": fires.summary,
        "description": fires.description,
        "runbook_url": format!("https://kubevirt.io/monitoring/runbooks/{}", fires.alert),
    });
    json!({"exp_labels": labels, "exp_annotations": annotations})
}

/// The case as promtool reads it: every alert at every minute, up to the first in which one fires.
fn written(case: &Case) -> Value {
    let healthy = if case.is_healthy { HEALTHY } else { &[] };
    let series: Vec<Value> =
        healthy.iter().chain(case.series).map(|(series, values)| json!({"series": series, "values": values})).collect();
    let last = case.fires.as_ref().map_or(LAST_MINUTE, |fires| fires.minute);
    let mut tests = Vec::new();
    for minute in 0..=last {
        for alert in ALERTS {
            let fires = case.fires.as_ref().filter(|fires| fires.alert == alert.name && fires.minute == minute);
            let expected: Vec<Value> = fires.map(sent).into_iter().collect();
            tests.push(json!({"eval_time": format!("{minute}m"), "alertname": alert.name, "exp_alerts": expected}));
        }
    }
    json!({"name": case.name, "interval": "1m", "input_series": series, "alert_rule_test": tests})
}

fn test(folder: &Path, cases: Vec<Value>) -> Output {
    let file = json!({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": cases});
    std::fs::write(folder.join("tests.yml"), file.to_string()).unwrap();
    promtool(folder, &["test", "rules", "tests.yml"])
}

#[test]
fn the_rules_are_valid_and_the_linter_has_nothing_to_say() {
    let folder = folder();
    let output = promtool(folder.path(), &["check", "rules", "--lint=all", "--lint-fatal", "rules.yml"]);
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains(&format!("{} rules found", ALERTS.len())), "{}", text(&output.stdout));
}

#[test]
fn every_alert_fires_when_it_shall_and_no_other_does() {
    let folder = folder();
    let output = test(folder.path(), CASES.iter().map(written).collect());
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    let fired: BTreeSet<&str> = CASES.iter().filter_map(|case| Some(case.fires.as_ref()?.alert)).collect();
    assert_eq!(fired, ALERTS.iter().map(|alert| alert.name).collect(), "every alert has a case in which it fires");
    assert!(CASES.iter().filter(|case| case.fires.is_none()).count() >= 8, "and there are cases in which none does");
}

/// A test that promtool passes whatever the texts are would be worth nothing.
#[test]
fn a_wrong_text_and_a_wrong_label_are_noticed() {
    let folder = folder();
    let case = CASES.iter().find(|case| case.fires.is_some()).unwrap();
    let is_firing = |test: &Value| test["exp_alerts"].as_array().is_some_and(|expected| !expected.is_empty());
    for pointer in ["/exp_annotations/description", "/exp_annotations/runbook_url", "/exp_labels/namespace"] {
        let mut wrong = written(case);
        let tests = wrong["alert_rule_test"].as_array_mut().unwrap();
        let firing = tests.iter_mut().find(|test| is_firing(test)).unwrap();
        *firing["exp_alerts"][0].pointer_mut(pointer).unwrap() = "x".into();
        let output = test(folder.path(), vec![wrong]);
        assert_eq!(output.status.code(), Some(1), "{pointer}: {}", text(&output.stdout));
    }
}

#[test]
fn shortened_rules_are_valid_too() {
    let folder = tempfile::tempdir().unwrap();
    for speed in [1, 7, 600] {
        let settings = AlertSettings { speed, ..AlertSettings::default() };
        std::fs::write(folder.path().join("rules.yml"), rule_file(&settings)).unwrap();
        let output = promtool(folder.path(), &["check", "rules", "rules.yml"]);
        assert!(output.status.success(), "{speed}: {}", text(&output.stderr));
    }
}

#[test]
fn the_committed_files_are_up_to_date() {
    for (path, expected) in files(&AlertSettings::default()) {
        let committed = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(committed == expected, "{path} is out of date: run `make generate` and commit the result");
    }
}

#[test]
fn the_object_has_the_labels_by_which_rules_of_kubevirt_are_selected() {
    let url = RunbookUrl::new("https://example.com/%s").unwrap();
    let rule = prometheus_rule(&AlertSettings { runbook_url: url, ..AlertSettings::default() });
    let labels = &rule["metadata"]["labels"];
    assert_eq!((&labels["prometheus.kubevirt.io"], &labels["k8s-app"]), (&json!("true"), &json!("kubevirt")));
    let runbook = &rule["spec"]["groups"][0]["rules"][0]["annotations"]["runbook_url"];
    assert_eq!(runbook, "https://example.com/VirtAdvisorDrifted");
}
