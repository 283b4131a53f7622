//! The data behind the panels of the dashboard, as tables, and the page that shows them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use advisor::monitoring::dashboard::{Panel, ROWS, Unit};

use super::prometheus::{Series, Server};
use crate::guide::terminal::root;

const PAGE: &str = "docs/monitoring.md";
const START: &str = "<!-- panels: kept current by a test -->\n";
const END: &str = "<!-- end of panels -->";

/// Panels whose series depend on the load of the machine, and how those end that are there in every run.
const VARYING: [(&str, Option<&str>); 3] =
    [("Errors", None), ("Requests to the API server", Some(" 200")), ("Restarted watches", None)];

/// A panel and its rows: the legend of a series, and its value as the page shows it.
pub(super) type Tables = Vec<(&'static Panel, Vec<(String, String)>)>;

/// The answers of a server to all queries of the dashboard. Fails if it refuses one.
pub(super) fn tables(server: &Server) -> Tables {
    let panels = ROWS.iter().flat_map(|row| row.panels);
    panels.map(|panel| (panel, rows(server, panel))).collect()
}

fn rows(server: &Server, panel: &'static Panel) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for query in panel.queries {
        let found = server.query(&query.with(".*", "1m")).unwrap_or_else(|error| panic!("{}: {error}", panel.title));
        for (labels, value) in found {
            rows.push((legend(query.legend, &labels), shown(panel, value)));
        }
    }
    rows.sort();
    rows
}

fn legend(template: &str, labels: &BTreeMap<String, String>) -> String {
    let legend = labels.iter().fold(template.to_owned(), |text, (label, value)| {
        let value = if label == "instance" { "virt-advisor-operator-0:8443" } else { value };
        text.replace(&format!("{{{{{label}}}}}"), value)
    });
    assert!(!legend.contains("{{"), "{template}: {labels:?}");
    legend
}

/// Only counts are the same in every run.
fn shown(panel: &Panel, value: f64) -> String {
    assert!(value >= 0.0 || value.is_nan(), "{}: {value}", panel.title);
    match panel.unit {
        Unit::Count if panel.title != "Open files and connections" => value.to_string(),
        Unit::Count => "…".to_owned(),
        Unit::Seconds => "… s".to_owned(),
        Unit::Bytes => "… bytes".to_owned(),
        Unit::PerSecond => "… per second".to_owned(),
    }
}

/// Compares the tables of all moments, each with its name, with the page, or rewrites it when asked to.
pub(super) fn compare_with_the_page(moments: &[(&str, Tables)]) {
    let current = page(moments);
    let text = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join(PAGE), format!("{before}{START}{current}{END}{after}")).unwrap();
    } else {
        assert_eq!(shown, current, "run `UPDATE_DOCS=1 cargo test -p virt-advisor` and commit the result");
    }
}

fn page(moments: &[(&str, Tables)]) -> String {
    let mut text = String::new();
    let names: Vec<&str> = moments.iter().map(|(name, _)| *name).collect();
    let head = format!("| series | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    let mut at = 0;
    for row in ROWS {
        let _ = write!(text, "\n### {}\n", row.title);
        for panel in row.panels {
            let rows: Vec<&[(String, String)]> = moments.iter().map(|(_, tables)| &tables[at].1[..]).collect();
            at += 1;
            let _ = write!(text, "\n**{}.** {}\n\n", panel.title, panel.about);
            // A rate needs two scrapes of its series, so when it begins differs from run to run.
            let is_rate = panel.queries.iter().any(|query| query.with("", "").contains("rate("));
            match VARYING.iter().find(|(title, _)| *title == panel.title) {
                Some((_, None)) => text += "What it shows depends on the load of the cluster.\n",
                Some((_, Some(end))) => text += &(head.clone() + &table(&rows, is_rate, end)),
                None => text += &(head.clone() + &table(&rows, is_rate, "")),
            }
        }
    }
    text + "\n"
}

/// One line per series with this end that there is at any moment. A rate is shown as if it had always been there.
fn table(moments: &[&[(String, String)]], is_rate: bool, end: &str) -> String {
    let names = moments.iter().flat_map(|rows| rows.iter().map(|(name, _)| name.as_str()));
    let names: BTreeSet<&str> = names.filter(|name| name.ends_with(end)).collect();
    let of = |rows: &[(String, String)], name: &str| {
        rows.iter().find(|(found, _)| found == name).map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    let line = |name: &str| {
        let found: Vec<String> = moments.iter().map(|rows| of(rows, name)).collect();
        let last = || found.last().cloned().unwrap_or_default();
        let values = if is_rate { vec![last(); found.len()] } else { found };
        format!("| {name} | {} |\n", values.join(" | "))
    };
    assert!(!names.is_empty(), "a panel without any data is not shown to work");
    names.into_iter().map(line).collect()
}

#[test]
fn a_series_is_named_by_its_labels() {
    let series: Series = ([("pool".to_owned(), "worker".to_owned())].into(), 1.0);
    assert_eq!(legend("{{pool}}: updated", &series.0), "worker: updated");
}
