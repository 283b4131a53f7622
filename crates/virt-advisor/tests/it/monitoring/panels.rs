//! The data behind the panels of the dashboard, as tables, and the page that shows them.

use std::fmt::Write as _;

use advisor::monitoring::dashboard::{Panel, ROWS, Unit};

use super::prometheus::{Series, Server};
use crate::guide::terminal::root;

const PAGE: &str = "docs/monitoring.md";
const START: &str = "<!-- panels: kept current by a test -->\n";
const END: &str = "<!-- end of panels -->";

/// Panels whose series depend on the load of the machine: their tables would differ from run to run.
const VARYING: [&str; 3] = ["Errors", "Requests to the API server", "Restarted watches"];

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

fn legend(template: &str, labels: &std::collections::BTreeMap<String, String>) -> String {
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

/// Compares both moments with the page, or rewrites it when asked to.
pub(super) fn compare_with_the_page(stuck: &Tables, healthy: &Tables) {
    let current = page(stuck, healthy);
    let text = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join(PAGE), format!("{before}{START}{current}{END}{after}")).unwrap();
    } else {
        assert_eq!(shown, current, "run `UPDATE_DOCS=1 cargo test -p virt-advisor` and commit the result");
    }
}

fn page(stuck: &Tables, healthy: &Tables) -> String {
    let mut text = String::new();
    let mut both = stuck.iter().zip(healthy);
    for row in ROWS {
        let _ = write!(text, "\n### {}\n\n", row.title);
        for _ in row.panels {
            let ((panel, stuck), (_, healthy)) = both.next().unwrap();
            let _ = write!(text, "**{}.** {}\n\n", panel.title, panel.about);
            if VARYING.contains(&panel.title) {
                text += "What it shows depends on the load of the cluster.\n\n";
                continue;
            }
            text += "| series | node stuck | node repaired |\n|---|---|---|\n";
            text += &table(stuck, healthy);
            text.push('\n');
        }
    }
    text
}

/// One line per series of either moment.
fn table(stuck: &[(String, String)], healthy: &[(String, String)]) -> String {
    let mut names: Vec<&String> = stuck.iter().chain(healthy).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    assert!(!names.is_empty() || stuck.is_empty());
    let of = |rows: &[(String, String)], name: &str| {
        rows.iter().find(|(found, _)| found == name).map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    match names.is_empty() {
        true => "| – | – | – |\n".to_owned(),
        false => {
            names.iter().map(|name| format!("| {name} | {} | {} |\n", of(stuck, name), of(healthy, name))).collect()
        }
    }
}

#[test]
fn a_series_is_named_by_its_labels() {
    let series: Series = ([("pool".to_owned(), "worker".to_owned())].into(), 1.0);
    assert_eq!(legend("{{pool}}: updated", &series.0), "worker: updated");
}
