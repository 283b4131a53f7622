//! The page of all algorithms is generated from their definitions and from the rules that are shipped.

use std::{fmt::Write, path::PathBuf};

use balance::{
    Algorithm,
    promql::{Rule, node_series},
};
use lab_parts::prometheus::PrometheusSettings;
use serde_json::Value;
use testkit::files::root;

use crate::rule_names;

const HEAD: &str = "\
<!-- Made from the definitions in crates/balance by `UPDATE_DOCS=1 cargo test -p lab-parts algorithms`; a test keeps it current. -->

# The 20 algorithms

Each gives every node a score from 0 (nothing to do here) to 1, from four signals: `cpu_usage`, `cpu_pressure`,
`memory_usage` and `memory_pressure`, all from 0 to 1. In the formulas

* `dev(x)` is `x` less its mean over the nodes, and 0 within 1e-9 of it;
* `pos(x)` is the same, but 0 where it is negative;
* the critical dimension is the signal whose `pos` is greatest on average, the first one within 1e-9 of it;
* `above_lowest(x)` and `below_highest(x)` are how far `x` is from the lowest and from the highest of all nodes;
* `[x > y]` and `[x ≤ y]` are 1 where that holds and 0 elsewhere, with 1e-9 added to `y`.

The first 19 are those of the reference. The last one was searched for with the simulator; [which algorithm](which-algorithm.md) says what
to choose for what, with figures.

The simulator computes the formulas directly. Prometheus computes them with the recording rules shown, which come from the
same definitions; a test against a real Prometheus keeps both equal. The page has exactly the rules of
[prometheus-rules.yaml](../../config/lab/prometheus-rules.yaml). The real descheduler can be driven by any of the
series: give it as the query of `LowNodeUtilization`; what comes of that is in [a table](loop-table.md). How the score is
turned into buckets is in [balance.md](../dev/balance.md).

";

const SHARED: &str = "\
## Series that all of them share

They are recorded first, in this order and in the same rule group. Shown for the lab's gauges and a window of a minute;
for the other sources of signals only the first four differ. A signal is recorded only while its node is scraped.

";

const OLDER: &str = "\
## The metric of older operators

It is none of the algorithms, and it is recorded last.

";

fn listing(text: &mut String, rules: &[Rule]) {
    text.push_str("```yaml\n");
    for Rule { record, expr } in rules {
        let _ = write!(text, "- record: {record}\n  expr: '{expr}'\n");
    }
    text.push_str("```\n\n");
}

fn page() -> String {
    let all = shipped();
    let of = |name: &str| {
        let (own, raw) = (format!("descheduler:node:{name}:avg1m"), format!("descheduler:node:{name}:raw:avg1m"));
        let average = format!("descheduler:cluster:{name}:avg1m");
        let is = |rule: &&Rule| [&own, &raw, &average].contains(&&rule.record);
        all.iter().filter(is).cloned().collect::<Vec<Rule>>()
    };
    let mut text = HEAD.to_owned();
    text.push_str("| # | Algorithm | On a command line | Relative to the other nodes |\n|---|---|---|---|\n");
    for (at, algorithm) in Algorithm::all().iter().enumerate() {
        let relative = if algorithm.is_relative() { "yes" } else { "no" };
        let _ = writeln!(text, "| {} | {} | `{}` | {relative} |", at + 1, algorithm.name(), algorithm.slug());
    }
    text.push('\n');
    for (at, algorithm) in Algorithm::all().iter().enumerate() {
        let _ = write!(text, "## {}. {}\n\n`{}`\n\n", at + 1, algorithm.name(), algorithm.formula());
        let parameters = algorithm.parameters();
        if !parameters.is_empty() {
            let shown: Vec<String> = parameters.iter().map(|(name, value)| format!("`{name}` = {value}")).collect();
            let _ = write!(text, "Parameters: {}.\n\n", shown.join(", "));
        }
        if *algorithm == Algorithm::ParetoFront {
            text.push_str(
                "A node is on front 0 when no node is at least as good in every signal and better in one, on front 1 when \
                 only\nnodes of front 0 are, and so on. Crowding adds up to 0.1 within a front: the closer a node's \
                 neighbors, the more.\nPromQL cannot compare every node with every other, so the exporter computes \
                 this score, from the signals of the\nmoment and with the same code as the simulator, and the rule \
                 exposes it.\n\n",
            );
        }
        if matches!(algorithm, Algorithm::HottestToColdest { .. }) {
            text.push_str(
                "While the CPU use of the hottest and of the coldest node differ by more than `gap`, nodes within `width` \
                 of the\nhottest have 1, nodes within `width` of the coldest have 0, and those between a half. Once the gap \
                 is closed, all\nhave 0, and the descheduler does nothing. Use it with the mode and the limits of \
                 [which algorithm](which-algorithm.md).\n\n",
            );
        }
        listing(&mut text, &of(&algorithm.slug()));
    }
    text.push_str(SHARED);
    let first = all.iter().position(|rule| rule.record == node_series(&Algorithm::all()[0])).unwrap();
    listing(&mut text, &all[..first]);
    text.push_str(OLDER);
    listing(&mut text, &all[all.len() - 1..]);
    text.push_str(&rule_names::section(&all));
    text
}

fn shipped() -> Vec<Rule> {
    PrometheusSettings::new("metrics-exporter:8000").rules()
}

fn file(name: &str) -> PathBuf {
    root().join(name)
}

#[test]
fn the_page_of_algorithms_is_current() {
    let path = file("docs/lab/PROMETHEUS_ALGORITHMS.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        current == page(),
        "run `UPDATE_DOCS=1 cargo test -p lab-parts algorithms` and commit docs/lab/PROMETHEUS_ALGORITHMS.md"
    );
}

/// Each rule once, and no other.
#[test]
fn the_page_shows_exactly_the_rules_that_are_shipped() {
    let text = std::fs::read_to_string(file("config/lab/prometheus-rules.yaml")).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let rules: Value = serde_saphyr::from_str(config["data"]["descheduler-rules.yml"].as_str().unwrap()).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    let mut shipped: Vec<String> = rules
        .iter()
        .map(|rule| format!("- record: {}\n  expr: '{}'", text(rule, "record"), text(rule, "expr")))
        .collect();
    let page = page();
    let mut shown: Vec<String> = page
        .split("```")
        .filter_map(|block| block.strip_prefix("yaml\n"))
        .flat_map(|block| block.trim_end().split("\n- ").map(|rule| format!("- {}", rule.trim_start_matches("- "))))
        .collect();
    shipped.sort();
    shown.sort();
    assert!(shipped.len() > 60);
    assert_eq!(shown, shipped);
}
