//! The rows and panels of the dashboard. Series of several replicas are joined where they tell the same.

use super::{Panel, Query, Row, Unit, View};

pub const ROWS: &[Row] = &[
    Row {
        title: "Configurations",
        panels: &[
            Panel {
                title: "Phases",
                about: "The phase of each configuration.",
                view: View::Table,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "max by (profile, phase) (kubevirt_advisor_config_phase{profile=~\"$profile\"}) == 1",
                    legend: "{{profile}}: {{phase}}",
                }],
            },
            Panel {
                title: "In the phase for",
                about: "How long each configuration has been in its phase.",
                view: View::TimeSeries,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "max by (profile) (kubevirt_advisor_config_phase_age_seconds{profile=~\"$profile\"})",
                    legend: "{{profile}}",
                }],
            },
            Panel {
                title: "Needs a person",
                about: "Configurations whose condition Stalled is True, with its reason. Empty if nobody has to do anything.",
                view: View::Table,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "max by (profile, reason) (kubevirt_advisor_config_stalled{profile=~\"$profile\"}) == 1",
                    legend: "{{profile}}: {{reason}}",
                }],
            },
            Panel {
                title: "Waiting for review",
                about: "How long plans have waited for somebody to read them. Empty if none waits.",
                view: View::TimeSeries,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "max by (profile) (kubevirt_advisor_review_age_seconds{profile=~\"$profile\"})",
                    legend: "{{profile}}",
                }],
            },
            Panel {
                title: "Impact of the current plan",
                about: "The highest impact among the changes of the current plan.",
                view: View::Table,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "max by (profile, impact) (kubevirt_advisor_config_impact{profile=~\"$profile\"}) == 1",
                    legend: "{{profile}}: {{impact}}",
                }],
            },
            Panel {
                title: "Items",
                about: "The items of the current plan by their state.",
                view: View::TimeSeries,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "max by (profile, state) (kubevirt_advisor_items{profile=~\"$profile\"}) > 0",
                    legend: "{{profile}}: {{state}}",
                }],
            },
            Panel {
                title: "Drifted items",
                about: "Applied items that somebody has changed since, by the field manager that did it.",
                view: View::Table,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "max by (profile, manager) (kubevirt_advisor_drifted_items{profile=~\"$profile\"}) > 0",
                    legend: "{{profile}}: {{manager}}",
                }],
            },
            Panel {
                title: "Given up",
                about: "1 where the operator has given up reverting drift.",
                view: View::Stat,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "max by (profile) (kubevirt_advisor_remediation_stalled{profile=~\"$profile\"})",
                    legend: "{{profile}}",
                }],
            },
            Panel {
                title: "Approvals",
                about: "Approvals since the operator started, by what came of them.",
                view: View::Table,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "sum by (profile, result) (kubevirt_advisor_approvals_total{profile=~\"$profile\"}) > 0",
                    legend: "{{profile}}: {{result}}",
                }],
            },
        ],
    },
    Row {
        title: "Rollouts",
        panels: &[
            Panel {
                title: "Pools",
                about: "What each MachineConfigPool does with the changes of a plan.",
                view: View::Table,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "max by (profile, pool, state) (kubevirt_advisor_rollout_state{profile=~\"$profile\"}) == 1",
                    legend: "{{profile}}, {{pool}}: {{state}}",
                }],
            },
            Panel {
                title: "Updated nodes",
                about: "How many nodes of each pool run the changes of a plan, and how many there are.",
                view: View::TimeSeries,
                unit: Unit::Count,
                queries: &[
                    Query {
                        expr: "max by (profile, pool) (kubevirt_advisor_rollout_updated_nodes{profile=~\"$profile\"})",
                        legend: "{{profile}}, {{pool}}: updated",
                    },
                    Query {
                        expr: "max by (profile, pool) (kubevirt_advisor_rollout_nodes{profile=~\"$profile\"})",
                        legend: "{{profile}}, {{pool}}: all",
                    },
                ],
            },
            Panel {
                title: "Without progress for",
                about: "How long no node of a pool was updated while a plan waits for it.",
                view: View::TimeSeries,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "max by (profile, pool) (kubevirt_advisor_rollout_without_progress_seconds{profile=~\"$profile\"})",
                    legend: "{{profile}}, {{pool}}",
                }],
            },
            Panel {
                title: "Time to make a plan",
                about: "95 of 100 plans are made within this time.",
                view: View::TimeSeries,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "histogram_quantile(0.95, sum by (le, profile) (rate(kubevirt_advisor_plan_duration_seconds_bucket{profile=~\"$profile\"}[$__rate_interval])))",
                    legend: "{{profile}}",
                }],
            },
            Panel {
                title: "Time to apply a plan",
                about: "How long plans took to be applied on average, with their rollouts, since the operator started.",
                view: View::Stat,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "sum by (profile) (kubevirt_advisor_apply_duration_seconds_sum{profile=~\"$profile\"}) / sum by (profile) (kubevirt_advisor_apply_duration_seconds_count{profile=~\"$profile\"})",
                    legend: "{{profile}}",
                }],
            },
        ],
    },
    Row {
        title: "Operator",
        panels: &[
            Panel {
                title: "Leaders",
                about: "How many replicas lead: 1, or 0 for a moment while another one takes over.",
                view: View::Stat,
                unit: Unit::Count,
                queries: &[Query { expr: "sum(kubevirt_advisor_leader)", legend: "leaders" }],
            },
            Panel {
                title: "Versions",
                about: "How many replicas run which version.",
                view: View::Table,
                unit: Unit::Count,
                queries: &[Query { expr: "count by (version) (kubevirt_advisor_build_info)", legend: "{{version}}" }],
            },
            Panel {
                title: "Errors",
                about: "Reconciliations that fail and are tried again, by the class of the error.",
                view: View::TimeSeries,
                unit: Unit::PerSecond,
                queries: &[Query {
                    expr: "sum by (class) (rate(kubevirt_advisor_reconcile_errors_total[$__rate_interval]))",
                    legend: "{{class}}",
                }],
            },
            Panel {
                title: "Requests to the API server",
                about: "By verb and HTTP code. Requests without an answer have the code 0.",
                view: View::TimeSeries,
                unit: Unit::PerSecond,
                queries: &[Query {
                    expr: "sum by (verb, code) (rate(kubevirt_advisor_api_requests_total[$__rate_interval]))",
                    legend: "{{verb}} {{code}}",
                }],
            },
            Panel {
                title: "Time of requests",
                about: "99 of 100 requests to the API server are answered within this time.",
                view: View::TimeSeries,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "histogram_quantile(0.99, sum by (le, verb) (rate(kubevirt_advisor_api_request_duration_seconds_bucket[$__rate_interval])))",
                    legend: "{{verb}}",
                }],
            },
            Panel {
                title: "Restarted watches",
                about: "Watches that failed and were started again, by the watched resource.",
                view: View::TimeSeries,
                unit: Unit::PerSecond,
                queries: &[Query {
                    expr: "sum by (resource) (rate(kubevirt_advisor_watch_restarts_total[$__rate_interval]))",
                    legend: "{{resource}}",
                }],
            },
            Panel {
                title: "Memory",
                about: "Memory of each replica that is in RAM.",
                view: View::TimeSeries,
                unit: Unit::Bytes,
                queries: &[Query {
                    expr: "process_resident_memory_bytes and on (instance) kubevirt_advisor_build_info",
                    legend: "{{instance}}",
                }],
            },
            Panel {
                title: "CPU",
                about: "Processor time of each replica per second.",
                view: View::TimeSeries,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "rate(process_cpu_seconds_total[$__rate_interval]) and on (instance) kubevirt_advisor_build_info",
                    legend: "{{instance}}",
                }],
            },
            Panel {
                title: "Open files and connections",
                about: "Of each replica.",
                view: View::TimeSeries,
                unit: Unit::Count,
                queries: &[Query {
                    expr: "process_open_fds and on (instance) kubevirt_advisor_build_info",
                    legend: "{{instance}}",
                }],
            },
            Panel {
                title: "Running for",
                about: "How long ago each replica was started.",
                view: View::Stat,
                unit: Unit::Seconds,
                queries: &[Query {
                    expr: "time() - (process_start_time_seconds and on (instance) kubevirt_advisor_build_info)",
                    legend: "{{instance}}",
                }],
            },
        ],
    },
];
