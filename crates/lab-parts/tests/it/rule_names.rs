//! The names of the reference's recording rules, and what has their values here.

use std::fmt::Write;

use balance::{
    Algorithm,
    promql::{Rule, node_series},
};

const HEAD: &str = "\
## Names in the reference

For dashboards and alerts that were made for the reference's rules: what to ask for here. A name in the second column is
a rule above, an expression is a query.

| The reference's name | Here | |
|---|---|---|
";

/// The names of the rules that the reference deploys, and of its older file of all algorithms.
fn names() -> Vec<(String, String, &'static str)> {
    let mut names = Vec::new();
    let mut add = |old: String, new: String, remark| names.push((old, new, remark));
    let signals = [
        ("nodeutilization:cpu", "averageworkersutilization:cpu", "cpu_usage", "ratio"),
        ("nodepressure:cpu", "averageworkerspressure:cpu", "cpu_pressure", "psi"),
        ("nodeutilization:memory", "averageworkersutilization:memory", "memory_usage", "ratio"),
        ("nodepressure:memory", "averageworkerspressure:memory", "memory_pressure", "psi"),
    ];
    for (of_node, of_workers, signal, unit) in signals {
        let own = format!("descheduler:node:{signal}:avg1m");
        let positive = format!("descheduler:node:{signal}:positive_deviation:avg1m");
        let gate = "counts on all nodes; only above 70 % of use with `--signals openshift`";
        let remark = if unit == "psi" { gate } else { "" };
        add(format!("descheduler:{of_node}:avg1m"), own.clone(), remark);
        add(format!("descheduler:{of_node}:avg1m:positivedeviation"), positive.clone(), "0 within 1e-9 of the mean");
        add(
            format!("descheduler:{of_workers}:avg1m"),
            format!("descheduler:cluster:{signal}:avg1m"),
            "the mean over all nodes that have the signal",
        );
        add(format!("descheduler:node:{signal}:{unit}"), own.clone(), "averaged over the window");
        add(format!("descheduler:cluster:{signal}:avg"), format!("descheduler:cluster:{signal}:avg1m"), "");
        add(format!("descheduler:node:{signal}:positive_deviation"), positive, "");
        if unit == "ratio" {
            add(format!("descheduler:cluster:{signal}:stddev"), format!("stddev({own})"), "a query");
        }
    }
    for algorithm in Algorithm::of_the_reference() {
        let slug = algorithm.slug();
        let old = match slug.strip_prefix("linear_amplified_ideal_point_positive_distance:") {
            Some(factor) => format!("linear_amplified_ippd_{factor}"),
            None => slug.clone(),
        };
        let remark = match algorithm {
            Algorithm::WeightedAverage(_) => "the same value",
            _ if slug.starts_with("linear_amplified") => "the same value",
            Algorithm::IdealPointPositiveDistance => "at most 1",
            _ => "the formula of the reference's program; its rule has another one",
        };
        add(format!("descheduler:node:{old}:score"), node_series(&algorithm), remark);
    }
    let use_of = |signal: &str| format!("descheduler:node:{signal}:avg1m");
    let (cpu, memory) = (use_of("cpu_usage"), use_of("memory_usage"));
    add("cluster:vms:total".to_owned(), "sum(node_vm_count)".to_owned(), "a query");
    add("cluster:nodes:low_usage".to_owned(), format!("count({cpu} < 0.3 and {memory} < 0.3)"), "a query");
    add(
        "cluster:nodes:medium_usage".to_owned(),
        format!("count({cpu} >= 0.3 < 0.7 and {memory} >= 0.3 < 0.7)"),
        "a query",
    );
    add("cluster:nodes:high_usage".to_owned(), format!("count({cpu} >= 0.7 or {memory} >= 0.7)"), "a query");
    names
}

/// The section of the page. Every name that it promises is one of the rules.
pub(crate) fn section(rules: &[Rule]) -> String {
    let mut text = HEAD.to_owned();
    for (old, new, remark) in names() {
        assert!(remark == "a query" || rules.iter().any(|rule| rule.record == new), "there is no rule {new}");
        let _ = writeln!(text, "| `{old}` | `{new}` | {remark} |");
    }
    text.push_str(
        "\nThese names are the same: `descheduler:combined_utilization_and_pressure:avg1m`,\n\
         `descheduler:node:ideal_point_positive_distance:avg1m` and\n\
         `descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m`.\n",
    );
    text
}

#[test]
fn every_family_of_names_of_the_reference_is_listed_once() {
    let names = names();
    let with = |part: &str| names.iter().filter(|(old, ..)| old.contains(part)).count();
    for (family, count) in [
        (":nodeutilization:", 4),
        (":nodepressure:", 4),
        (":averageworkers", 4),
        (":positivedeviation", 4),
        (":score", 19),
        ("cluster:nodes:", 3),
    ] {
        assert_eq!(with(family), count, "{family}");
    }
    let mut old: Vec<&String> = names.iter().map(|(old, ..)| old).collect();
    old.sort();
    old.dedup();
    assert_eq!(old.len(), names.len());
}
