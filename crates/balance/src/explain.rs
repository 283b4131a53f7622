//! Why a node has its score: the definition's terms with their values for that node.

use std::fmt;

use crate::{
    algorithm::Algorithm,
    evaluate::Scores,
    expression::{Aggregates, Formula},
    signals::Signals,
};

/// A part of a score: what it is, its value for the node, and what that was computed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    pub what: String,
    pub value: f64,
    pub parts: Vec<Term>,
}

impl Algorithm {
    /// The score of `node`, term by term. The value at the top is the score itself.
    pub fn explain(&self, signals: &Signals, node: usize) -> Term {
        let formula = self.formula();
        if formula == Formula::ParetoFront {
            return self.explain_pareto(signals, node);
        }
        let (aggregates, greatest) = self.aggregates(signals);
        let explained = Explained { signals: signals.node(node), aggregates, greatest };
        let mut score = explained.term(&formula);
        score.what = format!("{} = {}", self.name(), score.what);
        score
    }

    fn explain_pareto(&self, signals: &Signals, node: usize) -> Term {
        let mut scores = Scores::new();
        self.score(signals, &mut scores);
        let front = crate::pareto::fronts(signals);
        let last = front.iter().copied().max().unwrap_or(0);
        let value = scores.values()[node];
        let level = f64::from(front[node]) / f64::from(last.max(1));
        let parts = vec![
            Term {
                what: format!("front {} of 0 to {last}, divided by the last", front[node]),
                value: level,
                parts: Vec::new(),
            },
            Term { what: "crowding within the front".into(), value: value - level, parts: Vec::new() },
        ];
        Term { what: format!("{} = {}", self.name(), Formula::ParetoFront), value, parts }
    }
}

struct Explained {
    signals: [f64; 4],
    aggregates: Aggregates,
    greatest: f64,
}

impl Explained {
    fn term(&self, formula: &Formula) -> Term {
        let value = formula.value(&self.signals, &self.aggregates, self.greatest);
        let parts = match formula {
            Formula::Deviation(signal) | Formula::Excess(signal) => vec![
                self.term(&Formula::Signal(*signal)),
                leaf(format!("mean of {signal} over the nodes"), self.aggregates.means[signal.index()]),
            ],
            Formula::AboveLowest(signal) => vec![
                self.term(&Formula::Signal(*signal)),
                leaf(format!("lowest {signal} of all nodes"), self.aggregates.lowest[signal.index()]),
            ],
            Formula::BelowHighest(signal) => vec![
                leaf(format!("highest {signal} of all nodes"), self.aggregates.highest[signal.index()]),
                self.term(&Formula::Signal(*signal)),
            ],
            Formula::Critical => vec![self.term(&Formula::Excess(self.aggregates.critical))],
            Formula::Normalized(inner) => {
                vec![self.term(inner), leaf("greatest of all nodes".to_owned(), self.greatest)]
            }
            other => other.parts().into_iter().map(|part| self.term(part)).collect(),
        };
        Term { what: formula.to_string(), value, parts }
    }
}

fn leaf(what: String, value: f64) -> Term {
    Term { what, value, parts: Vec::new() }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn write(term: &Term, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            writeln!(f, "{:.6}  {:indent$}{}", term.value, "", term.what, indent = 2 * depth)?;
            term.parts.iter().try_for_each(|part| write(part, depth + 1, f))
        }
        write(self, 0, f)
    }
}
