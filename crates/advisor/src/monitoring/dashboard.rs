//! The dashboard as data. The files for Grafana and Perses in `config/monitoring` are generated from here; a test runs every query on a
//! real Prometheus.

mod grafana;
mod panels;
mod perses;

pub use panels::ROWS;
pub(super) use {grafana::grafana, perses::perses};

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

impl Panel {
    /// Whether the labels of a series say everything, and its value is always 1.
    fn has_telling_labels(&self) -> bool {
        self.unit == Unit::Count && self.queries[0].expr.ends_with("== 1")
    }
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

    #[test]
    fn the_file_for_perses_shows_every_panel_once_with_its_queries() {
        let dashboard: Value = serde_json::from_str(&perses()).unwrap();
        let spec = &dashboard["spec"];
        let grids = spec["layouts"].as_array().unwrap();
        assert_eq!((grids.len(), spec["panels"].as_object().unwrap().len()), (ROWS.len(), panels().count()));
        for (row, grid) in ROWS.iter().zip(grids) {
            assert_eq!(grid["spec"]["display"]["title"], row.title);
            let items = grid["spec"]["items"].as_array().unwrap();
            assert_eq!(items.len(), row.panels.len());
            let mut taken = BTreeSet::new();
            for (panel, item) in row.panels.iter().zip(items) {
                let at = |name: &str| item[name].as_u64().unwrap();
                assert!(at("x") + at("width") <= 24 && taken.insert((at("x"), at("y"))), "{}", panel.title);
                let reference = item["content"]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
                let shown = &dashboard.pointer(reference).unwrap()["spec"];
                assert_eq!(shown["display"], serde_json::json!({"name": panel.title, "description": panel.about}));
                let queries = shown["queries"].as_array().unwrap();
                let exprs: Vec<&Value> =
                    queries.iter().map(|query| &query["spec"]["plugin"]["spec"]["query"]).collect();
                assert_eq!(exprs, panel.queries.iter().map(|query| query.expr).collect::<Vec<_>>(), "{}", panel.title);
            }
        }
        let variable = &spec["variables"][0]["spec"];
        let matcher = variable["plugin"]["spec"]["matchers"][0].as_str().unwrap();
        assert_eq!(variable["name"], "profile");
        drop(metrics_of(matcher));
    }
}
