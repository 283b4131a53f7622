//! The chart of spread against migrations, with the curve of the optimum.

use std::fmt::Write;

use super::{
    escape,
    svg::{Plot, document},
};
use crate::{
    compare::{Comparison, Entry},
    optimum::{Curve, Point},
    stats::Estimate,
};

const TITLE: &str = "Spread of CPU use at the end against migrations";
/// The height of a line of the legend.
const LINE: f64 = 17.0;
/// The names and the dashes of the lines of the optimum.
const OPTIMUM: [(&str, &str); 2] = [("optimum: the least that is known", ""), ("bound: nothing can be below", "2 3")];

/// What is drawn as a point.
pub(crate) struct Dot {
    pub(crate) name: String,
    pub(crate) migrations: Estimate,
    pub(crate) spread: Estimate,
    /// Whether no other one is better in both.
    pub(crate) efficient: bool,
}

/// The chart of a comparison. The names have modes and limits where these differ.
pub fn of_comparison(comparison: &Comparison) -> String {
    let dot = |entry: &Entry| Dot {
        name: label(comparison, entry),
        migrations: entry.migrations,
        spread: entry.end_spread,
        efficient: entry.efficient,
    };
    chart(&comparison.optimum, &comparison.entries.iter().map(dot).collect::<Vec<Dot>>())
}

/// The name of an entry, with its mode and its limits if others have different ones.
pub fn label(comparison: &Comparison, entry: &Entry) -> String {
    let entries = &comparison.entries;
    let mut name = entry.name.clone();
    if entries.iter().any(|other| other.mode != entry.mode) {
        name += &format!(", {}", entry.mode);
    }
    if entries.iter().any(|other| other.limits != entry.limits) {
        name += &format!(", {}:{}", entry.limits.total, entry.limits.per_node);
    }
    name
}

/// Numbered points, their names beside the chart, and the optimum below them. Points that others are better than in
/// both are hollow.
pub(crate) fn chart(curve: &Curve, dots: &[Dot]) -> String {
    let greatest = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(0.0_f64, |most, value| if value > most { value } else { most })
    };
    let end = |estimate: Estimate| estimate.mean + estimate.margin;
    let last = curve.points.last().map_or(0, |point| point.migrations) as f64;
    let wide = greatest(&mut dots.iter().map(|dot| end(dot.migrations)).chain([last, 1.0]));
    let high =
        greatest(&mut dots.iter().map(|dot| end(dot.spread)).chain(curve.points.iter().map(|point| point.spread)));
    let legend = LINE * (dots.len() + 2) as f64;
    let mut plot = Plot {
        text: String::new(),
        left: 56.0,
        top: 34.0,
        width: 460.0,
        height: if legend > 320.0 { legend } else { 320.0 },
        x: (0.0, wide * 1.05),
        y: (0.0, if high > 0.0 { high * 1.05 } else { 1.0 }),
    };
    plot.axes("migrations", "standard deviation of CPU use at the end");
    let of_optimum: [fn(&Point) -> f64; 2] = [|point| point.spread, |point| point.bound];
    for (number, ((name, dash), of)) in OPTIMUM.into_iter().zip(of_optimum).enumerate() {
        let place = |point: &Point| format!("{:.1},{:.1}", plot.x(point.migrations as f64), plot.y(of(point)));
        let mut points: Vec<String> = curve.points.iter().map(place).collect();
        // More migrations than are of use change nothing.
        points.extend(curve.points.last().map(|point| format!("{:.1},{:.1}", plot.x(wide), plot.y(of(point)))));
        let y = plot.top + 8.0 + LINE * number as f64;
        let _ = write!(
            plot.text,
            "<polyline fill=\"none\" stroke=\"#000\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\" points=\"{}\"/>\
             <line x1=\"532\" x2=\"560\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#000\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>\
             <text x=\"566\" y=\"{:.1}\">{name}</text>",
            points.join(" "),
            y + 4.0,
        );
    }
    for (at, dot) in dots.iter().enumerate() {
        mark(&mut plot, at, dot);
    }
    let height = plot.height + 90.0;
    document(900.0, height, TITLE, &plot.text)
}

/// Draws a point with its intervals and its number, and its line of the legend.
fn mark(plot: &mut Plot, at: usize, dot: &Dot) {
    let (number, color) = (at + 1, "#0072b2");
    let fill = if dot.efficient { color } else { "#fff" };
    let (x, y) = (plot.x(dot.migrations.mean), plot.y(dot.spread.mean));
    let low = |estimate: Estimate| if estimate.margin < estimate.mean { estimate.mean - estimate.margin } else { 0.0 };
    let (left, right) = (plot.x(low(dot.migrations)), plot.x(dot.migrations.mean + dot.migrations.margin));
    let (top, bottom) = (plot.y(dot.spread.mean + dot.spread.margin), plot.y(low(dot.spread)));
    let line = plot.top + 8.0 + LINE * (at + 2) as f64;
    let _ = write!(
        plot.text,
        "<path stroke=\"{color}\" fill=\"none\" d=\"M{left:.1} {y:.1}H{right:.1}M{x:.1} {top:.1}V{bottom:.1}\"/>\
         <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{fill}\" stroke=\"{color}\" stroke-width=\"1.5\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{number}</text>\
         <circle cx=\"546\" cy=\"{line:.1}\" r=\"4.5\" fill=\"{fill}\" stroke=\"{color}\" stroke-width=\"1.5\"/>\
         <text x=\"566\" y=\"{:.1}\">{number} {}</text>",
        x + 7.0,
        y - 5.0,
        line + 4.0,
        escape(&dot.name)
    );
}
