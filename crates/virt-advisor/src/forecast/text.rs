//! A forecast for people.

use sim::{
    forecast::{Alternative, Figure, Forecast},
    units::Span,
};
use terminal::table::{self, Cell};

use super::document::ForecastReport;
use crate::prose::{BOLD, counted, hanging, outdented, section};

const GIB: f64 = 1_073_741_824.0;

pub(super) fn render(report: &ForecastReport, width: usize) -> String {
    let ForecastReport { profile, plan_digest, assumed, forecast, .. } = report;
    let horizon = Span(forecast.horizon_seconds);
    let (nodes, vms) = (counted(forecast.nodes, "node"), counted(forecast.vms, "VM"));
    let title = format!(
        "Forecast for {profile}: {nodes} and {vms} of {} for {horizon}, {}",
        forecast.scenario,
        counted(forecast.seeds as usize, "run")
    );
    let mut text = outdented(&format!("{BOLD}{title}{BOLD:#}"), width);
    text += &hanging("", &forecast.settings, 0, width);
    text += &hanging("", &format!("Plan digest {plan_digest}"), 0, width);
    text += "\n";
    for (label, value) in rows(forecast) {
        text += &hanging(&format!("   {label}"), &value, 32, width);
    }
    let wide = forecast.wide.iter().map(|wide| format!("{}: {}", wide.figure.describe(), wide.because));
    text += &section("Wide intervals", wide, width);
    let moved = forecast.most_moved.iter().map(|moved| {
        format!("{}: {} on average, in {} of runs", moved.vm, rounded(moved.migrations, 1), percent(moved.share))
    });
    text += &section("VMs that move most", moved, width);
    let hot =
        forecast.hot_nodes.iter().map(|hot| format!("{} in {} of runs: {}", hot.node, percent(hot.share), hot.because));
    text += &section("Nodes that stay hot", hot, width);
    let stuck = forecast.stuck_vms.iter().map(|stuck| {
        let more = stuck.count - stuck.vms.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}, {}: {}{more}", counted(stuck.count, "VM"), stuck.because, stuck.vms.join(", "))
    });
    text += &section("VMs that cannot move", stuck, width);
    text += &alternatives(forecast, width);
    text += &section("Assumed", assumed.iter().cloned(), width);
    text + &section("Not modeled", forecast.not_modeled.iter().cloned(), width)
}

fn rows(forecast: &Forecast) -> Vec<(&'static str, String)> {
    let rest = Span(forecast.rest_seconds);
    let settles = match (forecast.settles, forecast.settled_after_seconds) {
        (1.0, Some(after)) => {
            format!("yes, after {} ({} to {})", minutes(after.expected), minutes(after.low), minutes(after.high))
        }
        (0.0, _) | (_, None) => "no: VMs still move at the end of every run".to_owned(),
        (share, _) => format!("in {} of runs; in the others VMs still move at the end", percent(share)),
    };
    vec![
        ("spread of CPU use now", in_percent(forecast.spread_now)),
        ("spread of CPU use at rest", format!("{}, the mean of the last {rest}", in_percent(forecast.spread_at_rest))),
        ("migrations in the first hour", figure(forecast.migrations_first_hour, 0)),
        ("migrations in the first day", figure(forecast.migrations_first_day, 0)),
        ("migrations per hour at rest", figure(forecast.migrations_per_hour_at_rest, 1)),
        (
            "memory moved",
            format!("{} GiB in {}", scaled(forecast.bytes_moved, 1.0 / GIB, 0), Span(forecast.horizon_seconds)),
        ),
        ("settles", settles),
    ]
}

/// What other thresholds and limits would do.
fn alternatives(forecast: &Forecast, width: usize) -> String {
    if forecast.alternatives.len() < 2 {
        return String::new();
    }
    let headers = ["THRESHOLDS", "LIMITS", "SPREAD AT REST", "FIRST HOUR", "FIRST DAY", "SETTLES"];
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let recommended = forecast.recommendation.as_ref();
    for row in &forecast.alternatives {
        let Alternative { thresholds, limit_total, limit_node, .. } = row;
        let is_recommended = recommended.is_some_and(|best| {
            (&best.thresholds, best.limit_total, best.limit_node) == (thresholds, *limit_total, *limit_node)
        });
        let mark = match (row.is_planned, is_recommended) {
            (true, _) => " (plan)",
            (false, true) => " (better)",
            (false, false) => "",
        };
        let cells = [
            format!("{thresholds}{mark}"),
            format!("{limit_total}/{limit_node}"),
            in_percent(row.spread_at_rest),
            figure(row.migrations_first_hour, 0),
            figure(row.migrations_first_day, 0),
            percent(row.settles),
        ];
        rows.push(cells.map(Cell::from).to_vec());
    }
    let advice = match recommended {
        Some(best) => format!(
            "Better than the plan: {} with limits {}/{}: {}.",
            best.thresholds, best.limit_total, best.limit_node, best.because
        ),
        None => "None is better than the plan: the intervals overlap, or less spread costs more migrations.".to_owned(),
    };
    format!(
        "\n{BOLD}Other thresholds and limits{BOLD:#}\n{}{}",
        table::render(&headers, &rows, width),
        hanging("", &advice, 0, width)
    )
}

/// `12 (9 to 15)`
fn figure(figure: Figure, digits: usize) -> String {
    scaled(figure, 1.0, digits)
}

fn scaled(figure: Figure, factor: f64, digits: usize) -> String {
    let [expected, low, high] = [figure.expected, figure.low, figure.high].map(|value| rounded(value * factor, digits));
    if low == high { expected } else { format!("{expected} ({low} to {high})") }
}

/// `3.1 % (2.8 to 3.5)`
fn in_percent(figure: Figure) -> String {
    let [expected, low, high] = [figure.expected, figure.low, figure.high].map(|value| rounded(value * 100.0, 1));
    if low == high { format!("{expected} %") } else { format!("{expected} % ({low} to {high})") }
}

fn rounded(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn minutes(seconds: f64) -> String {
    format!("{:.0}m", seconds / 60.0)
}
