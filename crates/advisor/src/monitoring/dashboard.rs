//! The dashboard as data. `config/monitoring/grafana-dashboard.json` is generated from here; a test runs every query on a real Prometheus.

mod grafana;
mod panels;

pub(super) use grafana::grafana;
pub use panels::ROWS;

/// What the numbers of a panel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// How many there are. The same life of a cluster shows the same numbers.
    Count,
    Seconds,
    Bytes,
    PerSecond,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The current series, one per row, with their labels.
    Table,
    TimeSeries,
    Stat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// PromQL with the variables `$profile` and `$__rate_interval`.
    expr: &'static str,
    /// How a series is called, with `{{label}}` for its labels.
    pub legend: &'static str,
}

impl Query {
    /// The query as a server understands it.
    pub fn with(&self, profiles: &str, rate_interval: &str) -> String {
        self.expr.replace("$profile", profiles).replace("$__rate_interval", rate_interval)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    pub title: &'static str,
    pub about: &'static str,
    pub view: View,
    pub unit: Unit,
    pub queries: &'static [Query],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub title: &'static str,
    pub panels: &'static [Panel],
}

/// The panels of all rows, in their order.
pub fn panels() -> impl Iterator<Item = &'static Panel> {
    ROWS.iter().flat_map(|row| row.panels)
}

/// All queries, for all profiles.
pub fn queries() -> impl Iterator<Item = String> {
    panels().flat_map(|panel| panel.queries).map(|query| query.with(".*", "5m"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::{super::promql_names::metrics_of, *};

    #[test]
    fn queries_name_only_metrics_and_labels_that_the_operator_serves() {
        queries().for_each(|query| drop(metrics_of(&query)));
    }

    #[test]
    fn legends_name_only_labels_that_their_query_keeps() {
        for query in panels().flat_map(|panel| panel.queries) {
            let kept = query.expr.split_once(" by (").and_then(|(_, rest)| rest.split_once(')'));
            for label in query.legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap()) {
                let is_kept = kept.is_some_and(|(kept, _)| kept.split(", ").any(|kept| kept == label));
                assert!(is_kept || label == "instance" && kept.is_none(), "{}: {label}", query.expr);
            }
        }
    }

    #[test]
    fn the_file_is_a_dashboard_with_every_panel_in_its_place() {
        let dashboard: Value = serde_json::from_str(&grafana()).unwrap();
        let shown = dashboard["panels"].as_array().unwrap();
        let (rows, others): (Vec<&Value>, Vec<&Value>) = shown.iter().partition(|panel| panel["type"] == "row");
        assert_eq!((rows.len(), others.len()), (ROWS.len(), panels().count()));
        let ids: BTreeSet<u64> = shown.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), shown.len(), "every panel has an id of its own");
        let mut taken = BTreeSet::new();
        for panel in shown {
            let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            for (x, y) in (at("y")..at("y") + at("h")).flat_map(|y| (at("x")..at("x") + at("w")).map(move |x| (x, y))) {
                assert!(x < 24 && taken.insert((x, y)), "{} overlaps at {x}, {y}", panel["title"]);
            }
        }
        for (panel, shown) in panels().zip(others) {
            assert_eq!(shown["title"], panel.title);
            assert!(panel.about.ends_with('.') && shown["description"] == panel.about, "{}", panel.title);
            assert_eq!(shown["targets"].as_array().unwrap().len(), panel.queries.len());
            assert_eq!(shown["targets"][0]["expr"], panel.queries[0].expr);
        }
    }
}
