//! Plots as SVG. Shapes and dashes repeat what colors say, and each plot has a title for screen readers.

use std::fmt::Write;

use balance::Bucket;

use super::{color, escape, frames::Frame};
use crate::compare::Comparison;

/// Line colors (Okabe and Ito) and dashes. Together they distinguish 21 lines.
const LINES: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
const DASHES: [&str; 3] = ["", "6 3", "2 3"];

const STYLE: &str = "<style>text{font:12px system-ui,sans-serif;fill:#222}.axis{stroke:#888;stroke-width:1}\
.grid{stroke:#ddd;stroke-width:1}</style>";

/// A plotting area with its axes.
pub(super) struct Plot {
    pub(super) text: String,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
}

impl Plot {
    pub(super) fn x(&self, value: f64) -> f64 {
        let (low, high) = self.x;
        self.left + (value - low) / if high > low { high - low } else { 1.0 } * self.width
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let (low, high) = self.y;
        self.top + self.height - (value - low) / if high > low { high - low } else { 1.0 } * self.height
    }

    pub(super) fn axes(&mut self, x_label: &str, y_label: &str) {
        let (left, top, right, bottom) = (self.left, self.top, self.left + self.width, self.top + self.height);
        for tick in ticks(self.y.0, self.y.1) {
            let y = self.y(tick);
            let _ = write!(
                self.text,
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                label(tick)
            );
        }
        for tick in ticks(self.x.0, self.x.1) {
            let x = self.x(tick);
            let _ = write!(
                self.text,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                label(tick)
            );
        }
        let _ = write!(
            self.text,
            "<path class=\"axis\" fill=\"none\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{left:.1}\" y=\"{:.1}\">{}</text>",
            left + self.width / 2.0,
            bottom + 34.0,
            escape(x_label),
            top - 8.0,
            escape(y_label),
        );
    }
}

/// About five round numbers from `low` to `high`.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let span = if high > low { high - low } else { 1.0 };
    let mut step = libm::pow(10.0, libm::floor(libm::log10(span / 4.0)));
    for factor in [2.0, 2.5, 2.0] {
        if span / step > 6.0 {
            step *= factor;
        }
    }
    let first = libm::ceil(low / step - 1e-9) as i64;
    (0..12).map(|at| (first + at) as f64 * step).take_while(|tick| *tick <= high + step * 1e-9).collect()
}

fn label(value: f64) -> String {
    if value >= 1000.0 {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

pub(super) fn document(width: f64, height: f64, title: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>{STYLE}<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{body}</svg>\n",
        escape(title)
    )
}

/// A line of a chart.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) values: &'a [f64],
}

/// Values over time; each line's points are evenly spread over `hours`.
pub(crate) fn lines(title: &str, y_label: &str, hours: f64, lines: &[Line<'_>]) -> String {
    let most = lines
        .iter()
        .flat_map(|line| line.values)
        .fold(0.0_f64, |most, value| if *value > most { *value } else { most });
    let legend = 17.0 * lines.len() as f64;
    let mut plot = Plot {
        text: String::new(),
        left: 56.0,
        top: 34.0,
        width: 460.0,
        height: if legend > 260.0 { legend } else { 260.0 },
        x: (0.0, hours),
        y: (0.0, if most > 0.0 { most * 1.05 } else { 1.0 }),
    };
    plot.axes("hours", y_label);
    for (number, line) in lines.iter().enumerate() {
        let (stroke, dash) = (LINES[number % LINES.len()], DASHES[number / LINES.len() % DASHES.len()]);
        let last = line.values.len().saturating_sub(1).max(1) as f64;
        let points: Vec<String> = line
            .values
            .iter()
            .enumerate()
            .map(|(at, value)| format!("{:.1},{:.1}", plot.x(hours * at as f64 / last), plot.y(*value)))
            .collect();
        let y = plot.top + 8.0 + 17.0 * number as f64;
        let _ = write!(
            plot.text,
            "<polyline fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\" points=\"{}\"/>\
             <line x1=\"532\" x2=\"560\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{stroke}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>\
             <text x=\"566\" y=\"{:.1}\">{}</text>",
            points.join(" "),
            y + 4.0,
            escape(line.name)
        );
    }
    let height = plot.height + 90.0;
    document(900.0, height, title, &plot.text)
}

/// Means with their intervals, best first. Shared ranks have the sign `=`.
pub fn ranking(comparison: &Comparison) -> String {
    let entries = &comparison.entries;
    let high = entries
        .iter()
        .map(|entry| entry.score.mean + entry.score.margin)
        .fold(0.0_f64, |most, end| if end > most { end } else { most });
    let mut plot = Plot {
        text: String::new(),
        left: 400.0,
        top: 34.0,
        width: 440.0,
        height: 24.0 * entries.len() as f64,
        x: (0.0, if high > 0.0 { high * 1.05 } else { 1.0 }),
        y: (1.0, 0.0),
    };
    for tick in ticks(plot.x.0, plot.x.1) {
        let x = plot.x(tick);
        let bottom = plot.top + plot.height;
        let _ = write!(
            plot.text,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            plot.top,
            bottom + 16.0,
            label(tick)
        );
    }
    for (position, entry) in entries.iter().enumerate() {
        let y = plot.top + 24.0 * position as f64 + 12.0;
        let (mean, low, high) = (
            plot.x(entry.score.mean),
            plot.x(entry.score.mean - entry.score.margin),
            plot.x(entry.score.mean + entry.score.margin),
        );
        let low = if low < plot.left { plot.left } else { low };
        let _ = write!(
            plot.text,
            "<text x=\"10\" y=\"{0:.1}\">{1}{2}</text><text x=\"44\" y=\"{0:.1}\">{3}</text>\
             <path stroke=\"#0072b2\" stroke-width=\"1.6\" fill=\"none\" d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {4:.1}v10M{high:.1} {4:.1}v10\"/>\
             <circle cx=\"{mean:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#0072b2\"/>",
            y + 4.0,
            entry.rank,
            if entry.tied { "=" } else { "" },
            escape(&entry.name),
            y - 5.0
        );
    }
    let title = format!("{}, mean and 95 % interval over {} seeds", comparison.criterion.describe(), comparison.seeds);
    let _ = write!(plot.text, "<text x=\"400\" y=\"22\">{}</text>", escape(&title));
    let height = plot.height + 70.0;
    document(900.0, height, &title, &plot.text)
}

/// Use and pressure of all nodes at one step, side by side.
pub fn scatter(title: &str, frame: &Frame) -> String {
    let mut body = format!("<text x=\"16\" y=\"18\">{}</text>", escape(title));
    for (left, name, across, up) in
        [(56.0, "use", &frame.cpu, &frame.memory), (506.0, "pressure", &frame.cpu_pressure, &frame.memory_pressure)]
    {
        let most = |values: &[f32]| {
            values.iter().fold(0.1_f64, |most, value| if f64::from(*value) > most { f64::from(*value) } else { most })
        };
        let mut plot = Plot {
            text: String::new(),
            left,
            top: 50.0,
            width: 360.0,
            height: 320.0,
            x: (0.0, most(across) * 1.05),
            y: (0.0, most(up) * 1.05),
        };
        plot.axes(&format!("CPU {name}"), &format!("memory {name}"));
        for at in 0..across.len() {
            let bucket = frame.bucket(at);
            let (x, y) = (plot.x(f64::from(across[at])), plot.y(f64::from(up[at])));
            let shape = match bucket {
                Bucket::Under => format!("M{:.1} {:.1}h10l-5 9z", x - 5.0, y - 4.0),
                Bucket::Appropriate => format!("M{:.1} {:.1}h8v8h-8z", x - 4.0, y - 4.0),
                Bucket::Over => format!("M{:.1} {:.1}h10l-5 -9z", x - 5.0, y + 5.0),
            };
            let _ = write!(plot.text, "<path d=\"{shape}\" fill=\"{}\" fill-opacity=\"0.75\"/>", color(bucket));
        }
        body += &plot.text;
    }
    for (at, bucket) in Bucket::ALL.into_iter().enumerate() {
        let count = frame.bucket.iter().filter(|known| **known == bucket as u8).count();
        let _ = write!(
            body,
            "<text x=\"{}\" y=\"432\" style=\"fill:{}\">{} {bucket}: {count}</text>",
            56 + 220 * at,
            color(bucket),
            bucket.symbol()
        );
    }
    document(900.0, 446.0, title, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_round() {
        for (low, high) in [(0.0, 1.0), (0.0, 0.123), (0.0, 168.0), (0.0, 5e12), (0.0, 0.0), (0.2, 0.21)] {
            let ticks = ticks(low, high);
            assert!((1..=8).contains(&ticks.len()), "{low} {high}: {ticks:?}");
        }
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
    }
}
