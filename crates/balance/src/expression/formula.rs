//! An expression as data: to be printed, rendered as PromQL, or evaluated step by step for one node.

use std::fmt;

use super::{Aggregates, deviation, excess, extremes};
use crate::signals::Signal;

/// A definition as a tree, in the order of computation.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    Signal(Signal),
    /// The signal minus its mean over the nodes.
    Deviation(Signal),
    /// The deviation, or 0 where it is negative.
    Excess(Signal),
    /// The excess of the signal whose excess is greatest on average.
    Critical,
    /// The signal minus the lowest of all nodes.
    AboveLowest(Signal),
    /// The highest of all nodes minus the signal.
    BelowHighest(Signal),
    /// 1 where the value is greater than the bound, otherwise 0.
    Exceeds(Box<Formula>, f64),
    /// 1 where the value is at most the bound, otherwise 0.
    Within(Box<Formula>, f64),
    Product(Box<Formula>, Box<Formula>),
    Sum(Vec<Formula>),
    Greatest(Vec<Formula>),
    Times(f64, Box<Formula>),
    Over(Box<Formula>, f64),
    Square(Box<Formula>),
    Root(Box<Formula>),
    AtMostOne(Box<Formula>),
    /// Divided by the greatest value of any node, unless that is 0.
    Normalized(Box<Formula>),
    /// The level of the Pareto front and the crowding within it. This is no expression: see [`crate::pareto`].
    ParetoFront,
}

impl Formula {
    /// The value for one node. `greatest` is what [`Formula::Normalized`] divides by.
    pub(crate) fn value(&self, signals: &[f64; 4], aggregates: &Aggregates, greatest: f64) -> f64 {
        let of = |formula: &Formula| formula.value(signals, aggregates, greatest);
        match self {
            Formula::Signal(signal) => signals[signal.index()],
            Formula::Deviation(signal) => deviation(signals[signal.index()], aggregates.means[signal.index()]),
            Formula::Excess(signal) => excess(signals[signal.index()], aggregates.means[signal.index()]),
            Formula::Critical => of(&Formula::Excess(aggregates.critical)),
            Formula::AboveLowest(signal) => signals[signal.index()] - aggregates.lowest[signal.index()],
            Formula::BelowHighest(signal) => aggregates.highest[signal.index()] - signals[signal.index()],
            Formula::Exceeds(inner, bound) => extremes::exceeds(of(inner), *bound),
            Formula::Within(inner, bound) => extremes::within(of(inner), *bound),
            Formula::Product(left, right) => of(left) * of(right),
            Formula::Sum(terms) => terms.iter().map(of).reduce(|sum, term| sum + term).unwrap_or(0.0),
            Formula::Greatest(terms) => terms.iter().map(of).reduce(|a, b| if a > b { a } else { b }).unwrap_or(0.0),
            Formula::Times(factor, inner) => factor * of(inner),
            Formula::Over(inner, divisor) => of(inner) / divisor,
            Formula::Square(inner) => {
                let value = of(inner);
                value * value
            }
            Formula::Root(inner) => of(inner).sqrt(),
            Formula::AtMostOne(inner) => {
                let value = of(inner);
                if value < 1.0 { value } else { 1.0 }
            }
            Formula::Normalized(inner) if greatest > 0.0 => of(inner) / greatest,
            Formula::Normalized(inner) => of(inner),
            Formula::ParetoFront => 0.0,
        }
    }

    /// The operands of the outermost operation.
    pub fn parts(&self) -> Vec<&Formula> {
        match self {
            Formula::Sum(terms) | Formula::Greatest(terms) => terms.iter().collect(),
            Formula::Product(left, right) => vec![left, right],
            Formula::Exceeds(inner, _)
            | Formula::Within(inner, _)
            | Formula::Times(_, inner)
            | Formula::Over(inner, _)
            | Formula::Square(inner)
            | Formula::Root(inner)
            | Formula::AtMostOne(inner)
            | Formula::Normalized(inner) => vec![inner],
            Formula::Signal(_)
            | Formula::Deviation(_)
            | Formula::Excess(_)
            | Formula::Critical
            | Formula::AboveLowest(_)
            | Formula::BelowHighest(_)
            | Formula::ParetoFront => Vec::new(),
        }
    }

    /// Whether it needs parentheses as an operand of `×` or `÷`.
    fn is_loose(&self) -> bool {
        matches!(
            self,
            Formula::Sum(_) | Formula::Product(..) | Formula::Times(..) | Formula::Over(..) | Formula::Normalized(_)
        )
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, terms: &[Formula], between: &str| {
            for (at, term) in terms.iter().enumerate() {
                write!(f, "{}{term}", if at == 0 { "" } else { between })?;
            }
            Ok(())
        };
        let operand = |inner: &Formula| if inner.is_loose() { format!("({inner})") } else { inner.to_string() };
        match self {
            Formula::Signal(signal) => write!(f, "{signal}"),
            Formula::Deviation(signal) => write!(f, "dev({signal})"),
            Formula::Excess(signal) => write!(f, "pos({signal})"),
            Formula::Critical => f.write_str("pos(critical dimension)"),
            Formula::AboveLowest(signal) => write!(f, "above_lowest({signal})"),
            Formula::BelowHighest(signal) => write!(f, "below_highest({signal})"),
            Formula::Exceeds(inner, bound) => write!(f, "[{inner} > {bound}]"),
            Formula::Within(inner, bound) => write!(f, "[{inner} ≤ {bound}]"),
            Formula::Product(left, right) => write!(f, "{} × {}", operand(left), operand(right)),
            Formula::Sum(terms) => list(f, terms, " + "),
            Formula::Greatest(terms) => {
                f.write_str("max(")?;
                list(f, terms, ", ")?;
                f.write_str(")")
            }
            Formula::Times(factor, inner) => write!(f, "{factor} × {}", operand(inner)),
            Formula::Over(inner, divisor) => write!(f, "{} ÷ {divisor}", operand(inner)),
            Formula::Square(inner) => write!(f, "{}²", operand(inner)),
            Formula::Root(inner) => write!(f, "√({inner})"),
            Formula::AtMostOne(inner) => write!(f, "min(1, {inner})"),
            Formula::Normalized(inner) => write!(f, "{} ÷ greatest of all nodes", operand(inner)),
            Formula::ParetoFront => f.write_str("level of the Pareto front ÷ last level + crowding"),
        }
    }
}
