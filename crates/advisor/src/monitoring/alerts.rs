//! The alerts of the operator as data. `config/monitoring/rules.yaml` and `docs/alerts.md` are generated from here, and every alert
//! has a page in `docs/runbooks`. Names, labels and annotations are those that KubeVirt's linter asks for. No alert is critical:
//! OpenShift's guideline keeps that for the loss of data or of the service of the cluster, and nothing here stops a virtual machine.

mod list;
mod rules;

use std::time::Duration;

pub use list::ALERTS;
pub(crate) use rules::duration;
pub use rules::{AlertSettings, InvalidTemplate, RUNBOOK_URL_VARIABLE, RunbookUrl, groups, rule_file};

/// How soon a person has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertSeverity {
    /// Within an hour or so.
    Warning,
    /// At the next occasion.
    Info,
}

impl AlertSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            AlertSeverity::Warning => "warning",
            AlertSeverity::Info => "info",
        }
    }
}

/// What an alert says about the health of the operator itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthImpact {
    /// The operator does not do its work.
    Warning,
    /// The operator works, and has found something.
    None,
}

impl HealthImpact {
    pub fn as_str(self) -> &'static str {
        match self {
            HealthImpact::Warning => "warning",
            HealthImpact::None => "none",
        }
    }
}

/// One alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert {
    pub name: &'static str,
    /// The condition in PromQL. `{threshold}` stands for the threshold in seconds, `{window}` for the window.
    expr: &'static str,
    /// An age from which on the condition holds. It survives a restart of operator and Prometheus, which `hold` does not.
    pub threshold: Option<Duration>,
    /// The operator's flag for such an age, if the operator itself tells when it is reached.
    pub setting: Option<&'static str>,
    /// The range over which counters are compared.
    pub window: Option<Duration>,
    /// How long the condition must hold: `for`.
    pub hold: Duration,
    pub severity: AlertSeverity,
    pub health_impact: HealthImpact,
    /// Whether `oc adm upgrade recommend` shows it before an update of the cluster, which would reboot the same nodes.
    pub update_precheck: bool,
    pub summary: &'static str,
    pub description: &'static str,
}

impl Alert {
    /// The condition, with times that are as many times shorter.
    pub fn expr(&self, speed: u32) -> String {
        let seconds = |time: Duration| (time / speed.max(1)).as_secs_f64().to_string();
        let threshold = self.threshold.map(seconds).unwrap_or_default();
        let window = self.window.map(|window| duration(window / speed.max(1))).unwrap_or_default();
        self.expr.replace("{threshold}", &threshold).replace("{window}", &window)
    }

    /// The path of its runbook from the root of the repository.
    pub fn runbook(&self) -> String {
        format!("docs/runbooks/{}.md", self.name)
    }
}

#[cfg(test)]
mod tests;
