//! All alerts. Series of several replicas are joined, so an alert does not change when another replica leads.

use std::time::Duration;

use super::{Alert, AlertSeverity, HealthImpact};

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

const fn hours(hours: u64) -> Duration {
    minutes(60 * hours)
}

/// What most alerts have in common.
const ALERT: Alert = Alert {
    name: "",
    expr: "",
    threshold: None,
    setting: None,
    window: None,
    hold: minutes(5),
    severity: AlertSeverity::Warning,
    health_impact: HealthImpact::None,
    update_precheck: false,
    summary: "",
    description: "",
};

pub const ALERTS: &[Alert] = &[
    Alert {
        name: "VirtAdvisorDrifted",
        expr: "max by (profile, manager) (kubevirt_advisor_drifted_items) > 0",
        // Drift that the operator may revert is gone after three attempts within three minutes, or it is VirtAdvisorRemediationStalled.
        hold: minutes(15),
        update_precheck: true,
        summary: "Applied configuration was changed by somebody else.",
        description: "{{ $value }} applied item(s) of profile {{ $labels.profile }} no longer have the values that were approved. \
            Field manager that changed them: {{ $labels.manager }}.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorReviewOverdue",
        expr: "max by (profile) (kubevirt_advisor_review_age_seconds) > {threshold}",
        threshold: Some(hours(72)),
        severity: AlertSeverity::Info,
        summary: "A plan waits for its review.",
        description: "The plan of profile {{ $labels.profile }} has waited for {{ $value | humanizeDuration }}. Nothing is changed \
            until somebody approves or rejects it.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorRolloutNotProgressing",
        // A degraded pool has an alert of its own, and somebody who paused a pool knows that it waits: they have other states.
        expr: "max by (profile, pool) (kubevirt_advisor_rollout_without_progress_seconds) \
            and on (profile, pool) (kubevirt_advisor_rollout_state{state=\"NoProgress\"} == 1)",
        setting: Some("--stuck-after"),
        update_precheck: true,
        summary: "A rollout makes no progress.",
        description: "No node of MachineConfigPool {{ $labels.pool }} was updated for {{ $value | humanizeDuration }}, and the plan of \
            profile {{ $labels.profile }} waits for it.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorPoolDegraded",
        expr: "max by (profile, pool, state) (kubevirt_advisor_rollout_state{state=~\"Degraded|RenderDegraded\"}) == 1",
        update_precheck: true,
        summary: "A pool is degraded while a plan is rolled out.",
        description: "MachineConfigPool {{ $labels.pool }} is {{ $labels.state }} while it rolls out the plan of profile \
            {{ $labels.profile }}. The status of the configuration names the node or the machine config.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorRemediationStalled",
        expr: "max by (profile) (kubevirt_advisor_remediation_stalled) == 1",
        summary: "The operator has given up reverting drift.",
        description: "Somebody changes what profile {{ $labels.profile }} has applied again and again. The operator does not revert it \
            any more until the spec is edited.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorPrerequisiteMissing",
        expr: "max by (profile) (kubevirt_advisor_config_phase_age_seconds) > {threshold} \
            and on (profile) (kubevirt_advisor_config_phase{phase=\"PrerequisiteFailed\"} == 1)",
        threshold: Some(hours(1)),
        summary: "A profile lacks something that it needs.",
        description: "Profile {{ $labels.profile }} has lacked a prerequisite for {{ $value | humanizeDuration }}. There is no plan, or the \
            applied one is not watched.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorConfigFailed",
        expr: "max by (profile, phase) (kubevirt_advisor_config_phase{phase=~\"Failed|CompletedWithErrors\"}) == 1",
        summary: "A plan failed.",
        description: "The configuration of profile {{ $labels.profile }} is {{ $labels.phase }}. Its conditions and items say why.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorDown",
        expr: "absent(kubevirt_advisor_build_info)",
        hold: minutes(10),
        health_impact: HealthImpact::Warning,
        summary: "The operator does not run, or is not scraped.",
        description: "No replica of virt-advisor-operator serves metrics. Configurations are neither applied nor watched.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorNoLeader",
        expr: "sum(kubevirt_advisor_leader) == 0",
        hold: minutes(10),
        health_impact: HealthImpact::Warning,
        summary: "No replica of the operator leads.",
        description: "Replicas of virt-advisor-operator run, and none of them holds the lease. Configurations are neither applied nor \
            watched.",
        ..ALERT
    },
    Alert {
        name: "VirtAdvisorErrorRateHigh",
        // A reconciliation that fails is tried again after one minute at the latest. An API server that is away for a moment causes a
        // few errors at once, which leave the window before `for` has passed.
        expr: "sum by (class) (increase(kubevirt_advisor_reconcile_errors_total[{window}])) > 5",
        window: Some(minutes(10)),
        hold: minutes(15),
        health_impact: HealthImpact::Warning,
        summary: "Reconciliations of the operator fail.",
        description: "virt-advisor-operator fails again and again with errors of class {{ $labels.class }}: \
            {{ $value | humanize }} in ten minutes.",
        ..ALERT
    },
];
