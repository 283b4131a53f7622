//! A formula as a PromQL expression over series that earlier rules record.

use super::rules::{CLUSTER, Series};
use crate::{
    expression::{Formula, TOLERANCE, bound},
    signals::Signal,
};

/// Renders formulas, with the series that they refer to.
pub(super) struct Renderer<'a> {
    pub(super) series: &'a Series<'a>,
}

impl Renderer<'_> {
    pub(super) fn expression(&self, formula: &Formula) -> String {
        let all = |terms: &[Formula], between: &str| {
            terms.iter().map(|term| self.operand(term)).collect::<Vec<_>>().join(between)
        };
        match formula {
            Formula::Signal(signal) => self.series.node(signal.name()),
            Formula::Deviation(signal) => self.series.node(&format!("{signal}:deviation")),
            Formula::Excess(signal) => self.series.node(&format!("{signal}:positive_deviation")),
            Formula::Critical => self.critical(),
            Formula::AboveLowest(signal) => self.series.node(&format!("{signal}:above_lowest")),
            Formula::BelowHighest(signal) => self.series.node(&format!("{signal}:below_highest")),
            Formula::Exceeds(inner, given) => format!("{} > bool {}", self.operand(inner), bound(*given)),
            Formula::Within(inner, given) => format!("{} <= bool {}", self.operand(inner), bound(*given)),
            Formula::Product(left, right) => format!("{} * {}", self.operand(left), self.operand(right)),
            Formula::Sum(terms) => all(terms, " + "),
            Formula::Greatest(terms) => self.greatest(terms),
            Formula::Times(factor, inner) => format!("{factor} * {}", self.operand(inner)),
            Formula::Over(inner, divisor) => format!("{} / {divisor}", self.operand(inner)),
            Formula::Square(inner) => format!("{} ^ 2", self.operand(inner)),
            Formula::Root(inner) => format!("sqrt({})", self.expression(inner)),
            Formula::AtMostOne(inner) => format!("clamp_max({}, 1)", self.expression(inner)),
            Formula::Normalized(inner) => self.normalized(&self.operand(inner)),
            Formula::ParetoFront => {
                format!("clamp(max by (instance) ({}), 0, 1)", self.series.source(super::PARETO_GAUGE, ""))
            }
        }
    }

    /// The division drops all series when the greatest value is 0; then the scores stay as they are, 0.
    pub(super) fn normalized(&self, raw: &str) -> String {
        format!("({raw} / on() group_left() (max({raw}) > 0)) or {raw}")
    }

    /// The expression in parentheses, unless it binds tighter than any operator.
    fn operand(&self, formula: &Formula) -> String {
        let text = self.expression(formula);
        match formula {
            Formula::Sum(_) | Formula::Times(..) | Formula::Over(..) | Formula::Square(_) | Formula::Normalized(_) => {
                format!("({text})")
            }
            Formula::Critical | Formula::Exceeds(..) | Formula::Within(..) | Formula::Product(..) => {
                format!("({text})")
            }
            _ => text,
        }
    }

    /// PromQL has no maximum of several vectors. An aggregation computes it, once the vectors differ in a label.
    fn greatest(&self, terms: &[Formula]) -> String {
        let labeled = |(at, term): (usize, &Formula)| {
            format!("label_replace({}, \"dimension\", \"{at}\", \"\", \"\")", self.expression(term))
        };
        let all: Vec<String> = terms.iter().enumerate().map(labeled).collect();
        format!("max by (instance) ({})", all.join(" or "))
    }

    /// `or` takes the first vector that exists, so the first dimension within the tolerance of the greatest wins.
    fn critical(&self) -> String {
        let mean = |signal: Signal| self.series.cluster(&format!("{signal}:positive_deviation"));
        let means: Vec<String> = Signal::ALL
            .into_iter()
            .enumerate()
            .map(|(at, signal)| format!("label_replace({}, \"dimension\", \"{at}\", \"\", \"\")", mean(signal)))
            .collect();
        let most = format!("(max({}) - {TOLERANCE:e})", means.join(" or "));
        let candidate = |signal: Signal| {
            let excess = self.expression(&Formula::Excess(signal));
            format!("({excess} and on() ({} >= on() {most}))", mean(signal))
        };
        Signal::ALL.map(candidate).join(" or ")
    }

    /// How far a signal is from the lowest and the highest of all nodes.
    pub(super) fn above_lowest(&self, signal: Signal) -> String {
        let value = self.series.node(signal.name());
        format!("{value} - on() group_left() {}", self.series.cluster(&format!("{signal}:lowest")))
    }

    pub(super) fn below_highest(&self, signal: Signal) -> String {
        let value = self.series.node(signal.name());
        format!("-({value} - on() group_left() {})", self.series.cluster(&format!("{signal}:highest")))
    }

    /// The difference from the mean, 0 within the tolerance.
    pub(super) fn deviation(&self, signal: Signal) -> String {
        let difference = format!(
            "({} - on() group_left() {})",
            self.series.node(signal.name()),
            self.series.named(&format!("{CLUSTER}{signal}:avg1m"))
        );
        format!("{difference} * (abs{difference} >= bool {TOLERANCE:e})")
    }
}
