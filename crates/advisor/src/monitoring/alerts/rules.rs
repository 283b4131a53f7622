//! The alerts as Prometheus reads them.

use std::{fmt, time::Duration};

use serde_json::{Value, json};

use super::{ALERTS, Alert};
use crate::{access::NAMESPACE, object_text};

/// The variable by which distributors lead to their own runbooks, as in other operators of KubeVirt.
pub const RUNBOOK_URL_VARIABLE: &str = "RUNBOOK_URL_TEMPLATE";

/// The address of runbooks, with exactly one `%s` for the name of the alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunbookUrl(String);

#[derive(Debug, PartialEq, Eq)]
pub struct InvalidTemplate(String);

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{RUNBOOK_URL_VARIABLE} is {:?}: it must contain exactly one %s, for the name of the alert", self.0)
    }
}

impl std::error::Error for InvalidTemplate {}

impl RunbookUrl {
    pub fn new(template: &str) -> Result<Self, InvalidTemplate> {
        match template.matches("%s").count() {
            1 => Ok(RunbookUrl(template.to_owned())),
            _ => Err(InvalidTemplate(template.to_owned())),
        }
    }

    pub fn of(&self, alert: &Alert) -> String {
        self.0.replace("%s", alert.name)
    }
}

impl Default for RunbookUrl {
    /// Where KubeVirt publishes its runbooks.
    fn default() -> Self {
        RunbookUrl("https://kubevirt.io/monitoring/runbooks/%s".to_owned())
    }
}

/// How the rules are generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSettings {
    pub runbook_url: RunbookUrl,
    /// All times of the alerts are divided by this, so that a test need not wait for days.
    pub speed: u32,
}

impl Default for AlertSettings {
    fn default() -> Self {
        AlertSettings { runbook_url: RunbookUrl::default(), speed: 1 }
    }
}

/// `spec.groups` of a PrometheusRule, and `groups` of a rule file.
pub fn groups(settings: &AlertSettings) -> Value {
    let rules: Vec<Value> = ALERTS.iter().map(|alert| rule(alert, settings)).collect();
    json!([{"name": "virt-advisor.rules", "rules": rules}])
}

/// A rule file as Prometheus and promtool read it.
pub fn rule_file(settings: &AlertSettings) -> String {
    object_text::yaml(Some(&json!({"groups": groups(settings)})))
}

/// The label by which `oc adm upgrade recommend` finds what speaks against an update of the cluster.
const UPDATE_PRECHECK: &str = "openShiftUpdatePrecheck";

/// The labels that every alert of this kind has, whatever its expression returns. OpenShift routes alerts by their namespace:
/// configurations are in none, so it is that of the operator.
fn labels(alert: &Alert) -> Value {
    let mut labels = json!({
        "severity": alert.severity.as_str(),
        "operator_health_impact": alert.health_impact.as_str(),
        "kubernetes_operator_part_of": "kubevirt",
        "kubernetes_operator_component": "virt-advisor-operator",
        "namespace": NAMESPACE,
    });
    if alert.update_precheck {
        labels[UPDATE_PRECHECK] = "true".into();
    }
    labels
}

fn rule(alert: &Alert, settings: &AlertSettings) -> Value {
    json!({
        "alert": alert.name,
        "expr": alert.expr(settings.speed),
        "for": duration(alert.hold / settings.speed.max(1)),
        "labels": labels(alert),
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": settings.runbook_url.of(alert),
        },
    })
}

/// A duration as Prometheus writes it, in its largest unit that is exact.
pub(crate) fn duration(time: Duration) -> String {
    let milliseconds = time.as_millis();
    let units = [("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    match units.into_iter().find(|(_, length)| milliseconds > 0 && milliseconds.is_multiple_of(*length)) {
        Some((unit, length)) => format!("{}{unit}", milliseconds / length),
        None => format!("{milliseconds}ms"),
    }
}
