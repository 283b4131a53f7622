//! When each alert fires with the values that are shipped, and when it does not.

/// Series over time, and what comes of them. A sample each minute, in the notation of promtool.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Series beside those of a healthy operator.
    pub(super) series: &'static [(&'static str, &'static str)],
    /// Whether there are the series of a healthy operator.
    pub(super) is_healthy: bool,
    /// The one alert that fires at all, if any.
    pub(super) fires: Option<Fires>,
}

pub(super) struct Fires {
    pub(super) alert: &'static str,
    /// The first minute in which it fires.
    pub(super) minute: u32,
    /// Labels beyond those that all alerts have.
    pub(super) labels: &'static [(&'static str, &'static str)],
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
}

/// A healthy operator: two replicas, one of which leads.
pub(super) const HEALTHY: &[(&str, &str)] = &[
    ("kubevirt_advisor_build_info{pod=\"a\",version=\"v0.1.0\"}", "1x60"),
    ("kubevirt_advisor_build_info{pod=\"b\",version=\"v0.1.0\"}", "1x60"),
    ("kubevirt_advisor_leader{pod=\"a\"}", "1x60"),
    ("kubevirt_advisor_leader{pod=\"b\"}", "0x60"),
    ("kubevirt_advisor_reconcile_errors_total{pod=\"a\",class=\"Busy\"}", "0x60"),
    ("kubevirt_advisor_config_phase{pod=\"a\",profile=\"virt-higher-density\",phase=\"Completed\"}", "1x60"),
    ("kubevirt_advisor_config_phase_age_seconds{pod=\"a\",profile=\"virt-higher-density\"}", "900000+60x60"),
    ("kubevirt_advisor_remediation_stalled{pod=\"a\",profile=\"virt-higher-density\"}", "0x60"),
];

const QUIET: Case = Case { name: "", series: &[], is_healthy: true, fires: None };

pub(super) const CASES: &[Case] = &[
    Case { name: "a healthy operator", ..QUIET },
    Case {
        name: "drift that stays",
        series: &[(
            "kubevirt_advisor_drifted_items{pod=\"a\",profile=\"load-aware-rebalancing\",manager=\"kubectl-edit\"}",
            "2x60",
        )],
        fires: Some(Fires {
            alert: "VirtAdvisorDrifted",
            minute: 15,
            labels: &[
                ("profile", "load-aware-rebalancing"),
                ("manager", "kubectl-edit"),
                ("openShiftUpdatePrecheck", "true"),
            ],
            summary: "Applied configuration was changed by somebody else.",
            description: "2 applied item(s) of profile load-aware-rebalancing no longer have the values that were approved. Field \
                          manager that changed them: kubectl-edit.",
        }),
        ..QUIET
    },
    Case {
        name: "drift that is reverted in time",
        series: &[(
            "kubevirt_advisor_drifted_items{pod=\"a\",profile=\"load-aware-rebalancing\",manager=\"argocd\"}",
            "1x14 stale",
        )],
        ..QUIET
    },
    Case {
        name: "a plan that nobody reads",
        series: &[(
            "kubevirt_advisor_review_age_seconds{pod=\"a\",profile=\"load-aware-rebalancing\"}",
            "259200+60x60",
        )],
        fires: Some(Fires {
            alert: "VirtAdvisorReviewOverdue",
            minute: 6,
            labels: &[("profile", "load-aware-rebalancing")],
            summary: "A plan waits for its review.",
            description: "The plan of profile load-aware-rebalancing has waited for 3d 0h 6m 0s. Nothing is changed until somebody \
                          approves or rejects it.",
        }),
        ..QUIET
    },
    Case {
        name: "a plan that waits for a day",
        series: &[("kubevirt_advisor_review_age_seconds{pod=\"a\",profile=\"load-aware-rebalancing\"}", "86400+60x60")],
        ..QUIET
    },
    Case {
        name: "a rollout that stands still",
        series: &[
            (
                "kubevirt_advisor_rollout_without_progress_seconds{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\"}",
                "2700+60x60",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"NoProgress\"}",
                "1x60",
            ),
        ],
        fires: Some(Fires {
            alert: "VirtAdvisorRolloutNotProgressing",
            minute: 5,
            labels: &[("profile", "load-aware-rebalancing"), ("pool", "worker"), ("openShiftUpdatePrecheck", "true")],
            summary: "A rollout makes no progress.",
            description: "No node of MachineConfigPool worker was updated for 50m 0s, and the plan of profile load-aware-rebalancing \
                          waits for it.",
        }),
        ..QUIET
    },
    Case {
        name: "a rollout that stands still where --stuck-after is ten minutes",
        series: &[
            (
                "kubevirt_advisor_rollout_without_progress_seconds{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\"}",
                "0+60x60",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"Updating\"}",
                "1x9 stale",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"NoProgress\"}",
                "_x10 1x60",
            ),
        ],
        fires: Some(Fires {
            alert: "VirtAdvisorRolloutNotProgressing",
            minute: 15,
            labels: &[("profile", "load-aware-rebalancing"), ("pool", "worker"), ("openShiftUpdatePrecheck", "true")],
            summary: "A rollout makes no progress.",
            description: "No node of MachineConfigPool worker was updated for 15m 0s, and the plan of profile load-aware-rebalancing \
                          waits for it.",
        }),
        ..QUIET
    },
    Case {
        name: "a rollout that takes its time where --stuck-after is two hours",
        series: &[
            (
                "kubevirt_advisor_rollout_without_progress_seconds{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\"}",
                "2700+60x60",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"Updating\"}",
                "1x60",
            ),
        ],
        ..QUIET
    },
    Case {
        name: "a rollout whose nodes take half an hour each",
        series: &[
            (
                "kubevirt_advisor_rollout_without_progress_seconds{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\"}",
                "0+60x30 0+60x30",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"Updating\"}",
                "1x60",
            ),
        ],
        ..QUIET
    },
    Case {
        name: "a pool that somebody has paused",
        series: &[
            (
                "kubevirt_advisor_rollout_without_progress_seconds{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\"}",
                "2700+60x60",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"Paused\"}",
                "1x60",
            ),
        ],
        ..QUIET
    },
    Case {
        name: "a pool with a degraded node, which is one alert and not two",
        series: &[
            (
                "kubevirt_advisor_rollout_without_progress_seconds{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\"}",
                "2700+60x60",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"Degraded\"}",
                "1x60",
            ),
        ],
        fires: Some(Fires {
            alert: "VirtAdvisorPoolDegraded",
            minute: 5,
            labels: &[
                ("profile", "load-aware-rebalancing"),
                ("pool", "worker"),
                ("state", "Degraded"),
                ("openShiftUpdatePrecheck", "true"),
            ],
            summary: "A pool is degraded while a plan is rolled out.",
            description: "MachineConfigPool worker is Degraded while it rolls out the plan of profile load-aware-rebalancing. The \
                          status of the configuration names the node or the machine config.",
        }),
        ..QUIET
    },
    Case {
        name: "a pool that recovers within minutes, and another replica that takes over",
        series: &[
            (
                "kubevirt_advisor_rollout_state{pod=\"a\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"Degraded\"}",
                "1x2 stale",
            ),
            (
                "kubevirt_advisor_rollout_state{pod=\"b\",profile=\"load-aware-rebalancing\",pool=\"worker\",state=\"Degraded\"}",
                "_ _ 1 1 stale",
            ),
        ],
        ..QUIET
    },
    Case {
        name: "a war of edits",
        series: &[("kubevirt_advisor_remediation_stalled{pod=\"a\",profile=\"load-aware-rebalancing\"}", "0 1x60")],
        fires: Some(Fires {
            alert: "VirtAdvisorRemediationStalled",
            minute: 6,
            labels: &[("profile", "load-aware-rebalancing")],
            summary: "The operator has given up reverting drift.",
            description: "Somebody changes what profile load-aware-rebalancing has applied again and again. The operator does not \
                          revert it any more until the spec is edited.",
        }),
        ..QUIET
    },
    Case {
        name: "a missing prerequisite",
        series: &[
            (
                "kubevirt_advisor_config_phase{pod=\"a\",profile=\"load-aware-rebalancing\",phase=\"PrerequisiteFailed\"}",
                "1x60",
            ),
            ("kubevirt_advisor_config_phase_age_seconds{pod=\"a\",profile=\"load-aware-rebalancing\"}", "3600+60x60"),
        ],
        fires: Some(Fires {
            alert: "VirtAdvisorPrerequisiteMissing",
            minute: 6,
            labels: &[("profile", "load-aware-rebalancing")],
            summary: "A profile lacks something that it needs.",
            description: "Profile load-aware-rebalancing has lacked a prerequisite for 1h 6m 0s. There is no plan, or the applied one \
                          is not watched.",
        }),
        ..QUIET
    },
    Case {
        name: "a prerequisite that is installed within the hour",
        series: &[
            (
                "kubevirt_advisor_config_phase{pod=\"a\",profile=\"load-aware-rebalancing\",phase=\"PrerequisiteFailed\"}",
                "1x30 stale",
            ),
            ("kubevirt_advisor_config_phase_age_seconds{pod=\"a\",profile=\"load-aware-rebalancing\"}", "1800+60x60"),
        ],
        ..QUIET
    },
    Case {
        name: "a failed plan",
        series: &[(
            "kubevirt_advisor_config_phase{pod=\"a\",profile=\"load-aware-rebalancing\",phase=\"Failed\"}",
            "1x60",
        )],
        fires: Some(Fires {
            alert: "VirtAdvisorConfigFailed",
            minute: 5,
            labels: &[("profile", "load-aware-rebalancing"), ("phase", "Failed")],
            summary: "A plan failed.",
            description: "The configuration of profile load-aware-rebalancing is Failed. Its conditions and items say why.",
        }),
        ..QUIET
    },
    Case {
        name: "a plan that some items of failed",
        series: &[(
            "kubevirt_advisor_config_phase{pod=\"a\",profile=\"virt-higher-density\",phase=\"CompletedWithErrors\"}",
            "_ 1x60",
        )],
        fires: Some(Fires {
            alert: "VirtAdvisorConfigFailed",
            minute: 6,
            labels: &[("profile", "virt-higher-density"), ("phase", "CompletedWithErrors")],
            summary: "A plan failed.",
            description: "The configuration of profile virt-higher-density is CompletedWithErrors. Its conditions and items say why.",
        }),
        ..QUIET
    },
    Case {
        name: "an operator that is gone",
        is_healthy: false,
        series: &[
            ("kubevirt_advisor_build_info{pod=\"a\",version=\"v0.1.0\"}", "1x2 stale"),
            ("kubevirt_advisor_leader{pod=\"a\"}", "1x2 stale"),
        ],
        fires: Some(Fires {
            alert: "VirtAdvisorDown",
            minute: 13,
            labels: &[],
            summary: "The operator does not run, or is not scraped.",
            description: "No replica of virt-advisor-operator serves metrics. Configurations are neither applied nor watched.",
        }),
    },
    Case {
        name: "an operator that is restarted",
        is_healthy: false,
        series: &[
            ("kubevirt_advisor_build_info{pod=\"a\",version=\"v0.1.0\"}", "1x2 stale"),
            ("kubevirt_advisor_leader{pod=\"a\"}", "1x2 stale"),
            ("kubevirt_advisor_build_info{pod=\"b\",version=\"v0.2.0\"}", "_x8 1x60"),
            ("kubevirt_advisor_leader{pod=\"b\"}", "_x8 1x60"),
        ],
        fires: None,
    },
    Case {
        name: "replicas of which none leads",
        is_healthy: false,
        series: &[
            ("kubevirt_advisor_build_info{pod=\"a\",version=\"v0.1.0\"}", "1x60"),
            ("kubevirt_advisor_leader{pod=\"a\"}", "0x60"),
            ("kubevirt_advisor_leader{pod=\"b\"}", "1 0x60"),
        ],
        fires: Some(Fires {
            alert: "VirtAdvisorNoLeader",
            minute: 11,
            labels: &[],
            summary: "No replica of the operator leads.",
            description: "Replicas of virt-advisor-operator run, and none of them holds the lease. Configurations are neither applied \
                          nor watched.",
        }),
    },
    Case {
        name: "a right that is missing",
        series: &[("kubevirt_advisor_reconcile_errors_total{pod=\"a\",class=\"Forbidden\"}", "0+1x60")],
        fires: Some(Fires {
            alert: "VirtAdvisorErrorRateHigh",
            minute: 21,
            labels: &[("class", "Forbidden")],
            summary: "Reconciliations of the operator fail.",
            description: "virt-advisor-operator fails again and again with errors of class Forbidden: 10 in ten minutes.",
        }),
        ..QUIET
    },
    Case {
        name: "an API server that was away for a minute",
        series: &[("kubevirt_advisor_reconcile_errors_total{pod=\"a\",class=\"Unknown\"}", "0 24x60")],
        ..QUIET
    },
];
