//! The page of all algorithms is generated from their definitions.

use std::{fmt::Write, path::Path};

use balance::{
    Algorithm,
    promql::{Options, Rule, node_series, rules},
};

const HEAD: &str = "\
<!-- Made from the definitions in crates/balance by `UPDATE_DOCS=1 cargo test -p balance docs`; a test keeps it current. -->

# The 19 algorithms

Each gives every node a score from 0 (nothing to do here) to 1, from four signals: `cpu_usage`, `cpu_pressure`,
`memory_usage` and `memory_pressure`, all from 0 to 1. In the formulas

* `dev(x)` is `x` less its mean over the nodes, and 0 within 1e-9 of it;
* `pos(x)` is the same, but 0 where it is negative;
* the critical dimension is the signal whose `pos` is greatest on average, the first one within 1e-9 of it.

The simulator computes the formulas directly. Prometheus computes them with the recording rules shown, which come from the
same definitions; a test against a real Prometheus keeps both equal. The real descheduler can be driven by any of the
series: give it as the query of `LowNodeUtilization`; what comes of that is in [a table](loop-table.md). How the score is
turned into buckets is in [balance.md](../dev/balance.md).

";

const SHARED: &str = "\
## Series that all of them share

They are recorded first, in this order and in the same rule group. Shown for the lab's gauges and a window of a minute;
for the other sources of signals only the first four differ.

";

fn listing(text: &mut String, rules: &[Rule]) {
    text.push_str("```yaml\n");
    for Rule { record, expr } in rules {
        let _ = write!(text, "- record: {record}\n  expr: '{expr}'\n");
    }
    text.push_str("```\n\n");
}

fn page() -> String {
    let all = rules(&Options::default());
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
        listing(&mut text, &of(&algorithm.slug()));
    }
    text.push_str(SHARED);
    let first = all.iter().position(|rule| rule.record == node_series(&Algorithm::all()[0])).unwrap();
    listing(&mut text, &all[..first]);
    text.truncate(text.trim_end().len());
    text + "\n"
}

#[test]
fn the_page_of_algorithms_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/algorithms.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, page()).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(current == page(), "run `UPDATE_DOCS=1 cargo test -p balance docs` and commit docs/lab/algorithms.md");
}
