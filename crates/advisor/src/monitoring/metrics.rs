//! All metrics of the operator. Their help texts are the documentation that users read.

/// The names of all metrics but those of the process begin with this, as KubeVirt's guideline asks.
pub const PREFIX: &str = "kubevirt_advisor_";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    Gauge,
    Counter,
    Histogram,
}

/// One metric, by the name under which it is queried: counters end in `_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub metric_type: MetricType,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, metric_type: MetricType::Gauge, labels, help }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, metric_type: MetricType::Counter, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, metric_type: MetricType::Histogram, labels, help }
}

pub const CONFIG_PHASE: Metric = gauge(
    "kubevirt_advisor_config_phase",
    &["profile", "phase"],
    "The phase of a configuration: 1 for the phase that it is in. Other phases have no series.",
);
pub const CONFIG_PHASE_AGE: Metric =
    gauge("kubevirt_advisor_config_phase_age_seconds", &["profile"], "How long a configuration has been in its phase.");
pub const CONFIG_IMPACT: Metric = gauge(
    "kubevirt_advisor_config_impact",
    &["profile", "impact"],
    "The highest impact among the changes of the current plan: 1 for Low, Medium or High.",
);
pub const CONFIG_STALLED: Metric = gauge(
    "kubevirt_advisor_config_stalled",
    &["profile", "reason"],
    "Whether a configuration needs a person: 1 with the reason of its condition Stalled, else no series.",
);
pub const REVIEW_AGE: Metric = gauge(
    "kubevirt_advisor_review_age_seconds",
    &["profile"],
    "How long a plan that changes something has waited for its review. No series while none waits.",
);
pub const ITEMS: Metric =
    gauge("kubevirt_advisor_items", &["profile", "state"], "The number of items of the current plan in each state.");
pub const DRIFTED_ITEMS: Metric = gauge(
    "kubevirt_advisor_drifted_items",
    &["profile", "manager"],
    "The number of applied items that somebody has changed since, by the field manager that did it, as far as it is known, or `(deleted)`.",
);
pub const REMEDIATION_STALLED: Metric = gauge(
    "kubevirt_advisor_remediation_stalled",
    &["profile"],
    "Whether the operator gave up to revert drift because somebody changes the same fields again and again: 0 or 1.",
);
pub const ROLLOUT_STATE: Metric = gauge(
    "kubevirt_advisor_rollout_state",
    &["profile", "pool", "state"],
    "What a MachineConfigPool does with the changes of a plan: 1 for the state that it is in.",
);
pub const ROLLOUT_NODES: Metric = gauge(
    "kubevirt_advisor_rollout_nodes",
    &["profile", "pool"],
    "The number of nodes in a MachineConfigPool that a plan reaches.",
);
pub const ROLLOUT_UPDATED_NODES: Metric = gauge(
    "kubevirt_advisor_rollout_updated_nodes",
    &["profile", "pool"],
    "The number of nodes in a MachineConfigPool that run the changes of a plan already.",
);
pub const ROLLOUT_WITHOUT_PROGRESS: Metric = gauge(
    "kubevirt_advisor_rollout_without_progress_seconds",
    &["profile", "pool"],
    "How long no node of a MachineConfigPool was updated while a plan waits for it.",
);
pub const APPROVALS: Metric = counter(
    "kubevirt_advisor_approvals_total",
    &["profile", "result"],
    "Approvals of plans that the operator has seen, by what came of them.",
);
pub const PLAN_DURATION: Metric = histogram(
    "kubevirt_advisor_plan_duration_seconds",
    &["profile"],
    "How long it took to make a plan: from the first request to the recorded status.",
);
pub const APPLY_DURATION: Metric = histogram(
    "kubevirt_advisor_apply_duration_seconds",
    &["profile"],
    "How long it took to apply a plan, with its rollout: from the start to the end of phase InProgress.",
);
pub const RECONCILE_ERRORS: Metric = counter(
    "kubevirt_advisor_reconcile_errors_total",
    &["class"],
    "Reconciliations and watches of the configurations that failed and are tried again, by the class of the error.",
);
pub const API_REQUESTS: Metric = counter(
    "kubevirt_advisor_api_requests_total",
    &["verb", "code"],
    "Requests to the API server, by verb and HTTP code. Requests without an answer have the code 0.",
);
pub const API_REQUEST_DURATION: Metric = histogram(
    "kubevirt_advisor_api_request_duration_seconds",
    &["verb"],
    "How long requests to the API server took until their answer began. Watches are left out.",
);
pub const WATCH_RESTARTS: Metric = counter(
    "kubevirt_advisor_watch_restarts_total",
    &["resource"],
    "Watches that failed and were started again, by the watched resource. A watch that ends in time is not counted.",
);
pub const LEADER: Metric =
    gauge("kubevirt_advisor_leader", &[], "Whether this replica leads and does the work: 0 or 1.");
pub const BUILD_INFO: Metric =
    gauge("kubevirt_advisor_build_info", &["version"], "1, with the version of the operator.");
pub const PROCESS_START_TIME: Metric =
    gauge("process_start_time_seconds", &[], "When the process started, in seconds since 1970.");
pub const PROCESS_RESIDENT_MEMORY: Metric =
    gauge("process_resident_memory_bytes", &[], "The memory of the process that is in RAM.");
pub const PROCESS_CPU: Metric =
    counter("process_cpu_seconds_total", &[], "The processor time that the process has used.");
pub const PROCESS_OPEN_FDS: Metric =
    gauge("process_open_fds", &[], "The number of files and connections that the process has open.");

/// All metrics, in the order in which they are served and documented.
pub const METRICS: &[Metric] = &[
    CONFIG_PHASE,
    CONFIG_PHASE_AGE,
    CONFIG_IMPACT,
    CONFIG_STALLED,
    REVIEW_AGE,
    ITEMS,
    DRIFTED_ITEMS,
    REMEDIATION_STALLED,
    ROLLOUT_STATE,
    ROLLOUT_NODES,
    ROLLOUT_UPDATED_NODES,
    ROLLOUT_WITHOUT_PROGRESS,
    APPROVALS,
    PLAN_DURATION,
    APPLY_DURATION,
    RECONCILE_ERRORS,
    API_REQUESTS,
    API_REQUEST_DURATION,
    WATCH_RESTARTS,
    LEADER,
    BUILD_INFO,
    PROCESS_START_TIME,
    PROCESS_RESIDENT_MEMORY,
    PROCESS_CPU,
    PROCESS_OPEN_FDS,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The rules of promlint and of KubeVirt's linter.
    #[test]
    fn names_and_help_texts_follow_the_rules_of_the_linters() {
        let mut names = BTreeSet::new();
        for Metric { name, metric_type, labels, help } in METRICS.iter().copied() {
            assert!(names.insert(name), "{name} twice");
            assert!(name.starts_with(PREFIX) || name.starts_with("process_"), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), metric_type == MetricType::Counter, "{name}");
            assert!(help.ends_with('.') && !help.contains('\n'), "{name}: {help}");
            let mut distinct = labels.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), labels.len(), "{name}");
        }
    }
}
