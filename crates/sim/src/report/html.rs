//! The report: one HTML file that contains everything and loads nothing.

use serde_json::json;

use super::{
    bytes, color, escape,
    frames::{Frame, frames},
    svg::{self, Line},
    tradeoff::{self, Dot},
};
use crate::{
    compare::{Comparison, LEVEL},
    history::History,
    model::ClusterModel,
    optimum::{Curve, Distance, Optima},
    result::RunResult,
    settings::RunSettings,
    stats::Estimate,
};
use balance::Bucket;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

#[derive(Debug)]
pub struct Report<'a> {
    model: &'a ClusterModel,
    outcome: &'a RunResult,
    settings: String,
    history: &'a History,
    frames: Vec<Frame>,
    comparison: Option<&'a Comparison>,
    /// The optimum with the seed of the run, and how far the run is from it.
    curve: Curve,
    distance: Distance,
}

impl<'a> Report<'a> {
    /// A report on a recorded run, with a comparison if there is one.
    pub fn of(
        model: &'a ClusterModel,
        settings: &RunSettings,
        outcome: &'a RunResult,
        history: &'a History,
        comparison: Option<&'a Comparison>,
    ) -> Self {
        let frames = frames(model, settings, outcome.seed, history);
        let optima = Optima::new(model, settings, outcome.seed..outcome.seed.saturating_add(1), 1);
        let (curve, distance) = (optima.curve(), optima.distance([outcome].into_iter()));
        Self { model, outcome, settings: settings.describe(), history, frames, comparison, curve, distance }
    }

    pub fn render(&self) -> String {
        let outcome = self.outcome;
        let title = format!("{} with {}", outcome.scenario, outcome.algorithm);
        let names: Vec<&str> = (0..self.model.node_count() as u32).map(|node| self.model.node_name(node)).collect();
        let colors: Vec<&str> = Bucket::ALL.into_iter().map(color).collect();
        let words: Vec<String> =
            Bucket::ALL.into_iter().map(|bucket| format!("{} {bucket}", bucket.symbol())).collect();
        let data = json!({ "names": names, "frames": self.frames, "colors": colors, "words": words });
        // A closing tag within the data would end the script.
        let data = data.to_string().replace('<', "\\u003c");
        PAGE.replace("{{title}}", &escape(&title))
            .replace("{{settings}}", &escape(&self.settings))
            .replace("{{summary}}", &self.summary())
            .replace("{{tradeoff}}", &self.tradeoff())
            .replace("{{convergence}}", &self.convergence())
            .replace("{{ranking}}", &self.ranking())
            .replace("{{last}}", &self.frames.len().saturating_sub(1).to_string())
            .replace("{{script}}", SCRIPT)
            .replace("{{data}}", &data)
    }

    fn summary(&self) -> String {
        let outcome = self.outcome;
        let balanced = outcome.balanced_at_step.map_or("never".to_owned(), |step| {
            format!("step {step} ({})", crate::units::Span(step * outcome.step_seconds))
        });
        let rows = [
            ("nodes / VMs", format!("{} / {}", outcome.nodes, outcome.vms)),
            ("seed", outcome.seed.to_string()),
            ("steps", format!("{} of {}", outcome.steps, crate::units::Span(outcome.step_seconds))),
            ("spread of CPU use", format!("{:.4} → {:.4}", outcome.start.cpu.sigma, outcome.end.cpu.sigma)),
            ("highest CPU use", format!("{:.3} → {:.3}", outcome.start.cpu.max, outcome.end.cpu.max)),
            ("balanced at", balanced),
            ("migrations", outcome.migrations.total.to_string()),
            ("least spread with as many migrations", self.least_spread()),
            ("least migrations for this spread", format!("{:.0}", self.distance.migrations.mean)),
            ("bytes moved", bytes(outcome.migrations.bytes)),
            ("ping-pong", outcome.migrations.ping_pong.to_string()),
            ("VM-seconds under pressure", format!("{:.0}", outcome.vm_seconds_under_pressure)),
        ];
        rows.iter().map(|(name, value)| format!("<tr><th>{name}</th><td>{}</td></tr>", escape(value))).collect()
    }

    fn least_spread(&self) -> String {
        let Distance { spread, bound, .. } = self.distance;
        format!("{:.4} known, {:.4} at best", spread.mean, bound.mean)
    }

    fn tradeoff(&self) -> String {
        let (chart, optimum) = match self.comparison {
            Some(comparison) => (tradeoff::of_comparison(comparison), &comparison.optimum),
            None => {
                let one = |value: f64| Estimate::of(&[value], LEVEL);
                let dot = Dot {
                    name: self.outcome.algorithm.clone(),
                    migrations: one(self.outcome.migrations.total as f64),
                    spread: one(self.outcome.end.cpu.sigma),
                    efficient: true,
                };
                (tradeoff::chart(&self.curve, &[dot]), &self.curve)
            }
        };
        let doubt = optimum.doubt.map(|doubt| format!(" The optimum is an estimate here: {doubt}."));
        format!("<p>{}{}</p>{chart}", optimum.describe(), doubt.unwrap_or_default())
    }

    fn convergence(&self) -> String {
        let samples = self.history.samples();
        let column = |of: fn(&crate::Sample) -> f64| crate::compare::curve(samples.iter().map(of).collect());
        let (cpu, memory, pressure, gap) = (
            column(|sample| sample.cpu.sigma),
            column(|sample| sample.memory.sigma),
            column(|sample| sample.cpu_pressure.sigma),
            column(|sample| sample.cpu.max - sample.cpu.min),
        );
        let hours = (self.outcome.steps * self.outcome.step_seconds) as f64 / 3600.0;
        svg::lines(
            "Balance over time",
            "standard deviation, and highest minus lowest",
            hours,
            &[
                Line { name: "σ of CPU use", values: &cpu },
                Line { name: "σ of memory use", values: &memory },
                Line { name: "σ of CPU pressure", values: &pressure },
                Line { name: "CPU use, highest − lowest", values: &gap },
            ],
        )
    }

    fn ranking(&self) -> String {
        let Some(comparison) = self.comparison else {
            return "<p>One run has no ranking; <code>rebalance-lab sim compare</code> makes one.</p>".to_owned();
        };
        let hours = (self.outcome.steps * self.outcome.step_seconds) as f64 / 3600.0;
        let curves: Vec<Line<'_>> =
            comparison.entries.iter().map(|entry| Line { name: &entry.name, values: &entry.curve }).collect();
        format!(
            "<p>Equal ranks (=) cannot be told apart with {} seeds: the interval of their differences, seed by seed, holds 0.</p>{}\
             <h2>Convergence of each algorithm</h2>{}",
            comparison.seeds,
            svg::ranking(comparison),
            svg::lines("Spread of CPU use, mean over seeds", "standard deviation of CPU use", hours, &curves)
        )
    }
}
