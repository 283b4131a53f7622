//! What people read after an import: which metric was found and which was guessed, and what had to be assumed.

use std::fmt::Write;

use sim::units::Span;
use terminal::{Align, CompactTable};

use super::{Report, metrics::Origin};

/// Clocks that differ by less are told nothing about.
const SKEW: f64 = 2.0;
/// The most names that a line lists.
const MOST_NAMES: usize = 3;

/// The report as text, for a terminal of this width.
pub fn text(report: &Report, width: Option<usize>) -> String {
    let mut table = CompactTable::new(&[
        ("QUANTITY", Align::Left),
        ("ORIGIN", Align::Left),
        ("SERIES", Align::Right),
        ("METRIC", Align::Left),
    ]);
    for found in &report.metrics {
        let series = if found.origin == Origin::Found { found.series.to_string() } else { "-".to_owned() };
        table.row(vec![found.quantity.to_string(), found.origin.word().to_owned(), series, found.metric.clone()]);
    }
    let mut text = format!("{}\n", table.render(width));
    for line in lines(report) {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{line}");
    }
    text
}

fn lines(report: &Report) -> Vec<String> {
    let (summary, notes) = (&report.summary, &report.notes);
    let mut lines = vec![format!("{} nodes, {} VMs ({})", summary.nodes, summary.vms, report.kind)];
    if report.span_seconds > 0 {
        let [span, step] = [report.span_seconds + report.step_seconds, report.step_seconds].map(Span);
        lines.push(format!("{span} up to {} in steps of {step}: {} samples", report.end, summary.samples));
    } else {
        lines.push(format!("one snapshot at {}: {} samples", report.end, summary.samples));
    }
    let mut tell = |count: usize, line: String| {
        if count > 0 {
            lines.push(line);
        }
    };
    if let (Some(interval), Some(window)) = (notes.scrape_interval_seconds, notes.window_seconds) {
        tell(1, format!("scrapes every {interval:.1}s, rates over {}", Span(window)));
    }
    tell(
        summary.with_gaps,
        format!(
            "{} samples are missing in between ({} series; longest gap {}): straight lines",
            summary.missing,
            summary.with_gaps,
            Span(summary.longest_gap_seconds)
        ),
    );
    tell(summary.younger, format!("{} VMs came during the span: before, their mean counts", summary.younger));
    tell(summary.ended, format!("{} VMs are not measured up to the end: the last sample counts", summary.ended));
    tell(summary.moved, format!("{} VMs moved during the span; all start where they are now", summary.moved));
    tell(
        notes.gone,
        format!("{} VMs were measured and are gone: left out, and not counted as load of nodes", notes.gone),
    );
    match notes.resets {
        Some(resets) => tell(resets as usize, format!("counters began anew {resets} times: rates leave that out")),
        None => tell(usize::from(notes.window_seconds.is_some()), "resets of counters were not counted".into()),
    }
    let skew = notes.clock_ahead_seconds.filter(|skew| skew.abs() >= SKEW);
    if let Some(skew) = skew {
        let side = if skew > 0.0 { "ahead of" } else { "behind" };
        tell(
            1,
            format!("the clock of Prometheus is {:.0}s {side} this machine's: all times are by that clock", skew.abs()),
        );
    }
    let others = notes.other_instances.len();
    let listed: Vec<&str> = notes.other_instances.iter().take(MOST_NAMES).map(String::as_str).collect();
    tell(others, format!("{others} measured instances are none of the nodes: {}", listed.join(", ")));
    tell(
        summary.nodes_without_use,
        format!("{} nodes are not measured: they use what their VMs use", summary.nodes_without_use),
    );
    tell(
        summary.beyond_node,
        format!("on {} nodes VMs use more than the node, by over 5 % of it", summary.beyond_node),
    );
    tell(summary.vms_without_node, format!("{} VMs run nowhere: the simulator places them", summary.vms_without_node));
    tell(summary.stated, format!("{} VMs use what their object states", summary.stated));
    let [cpu, memory] = summary.guessed;
    tell(cpu + memory, format!("guessed from nodes: CPU of {cpu} VMs, memory of {memory}"));
    tell(
        summary.assumed,
        format!("nothing is known of {} VMs: half of their cores, 80 % of their memory", summary.assumed),
    );
    for (cause, count) in &summary.not_migratable {
        tell(1, format!("{count} VMs cannot be migrated: {cause}"));
    }
    lines.extend(report.objects.iter().cloned());
    lines
}
