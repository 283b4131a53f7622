//! Scores of all nodes, in buffers that are reused. The compiler turns each definition into one loop over the columns.

use crate::{
    algorithm::{Algorithm, Visitor},
    expression::{Aggregates, Op, TOLERANCE, excess},
    pareto::Ranking,
    signals::{Signal, Signals},
    sum::{BLOCK, BlockSum},
};

/// The means of the four signals. The update of one node costs one block of each sum. The means depend on the signals
/// alone, not on earlier changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Means {
    sums: [BlockSum; 4],
    nodes: usize,
}

impl Means {
    pub fn of(signals: &Signals) -> Self {
        let mut means = Means::default();
        means.reset(signals);
        means
    }

    /// Computes the sums of all columns.
    pub fn reset(&mut self, signals: &Signals) {
        self.nodes = signals.len();
        for (sum, column) in self.sums.iter_mut().zip(signals.columns()) {
            sum.reset(column);
        }
    }

    /// Updates the sums after the signals of `node` changed.
    pub fn update(&mut self, signals: &Signals, node: usize) {
        for (sum, column) in self.sums.iter_mut().zip(signals.columns()) {
            sum.update(column, node);
        }
    }

    /// In the order of [`Signal::ALL`]; all 0 without nodes.
    pub fn values(&self) -> [f64; 4] {
        [0, 1, 2, 3].map(|at| mean(&self.sums[at], self.nodes))
    }
}

fn mean(sum: &BlockSum, count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum.total() / count as f64 }
}

/// The scores of all nodes, with buffers that are reused.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    values: Vec<f64>,
    sum: BlockSum,
    means: Means,
    ranking: Ranking,
}

impl Scores {
    pub fn new() -> Self {
        Scores::default()
    }

    /// Scores that come from elsewhere.
    pub fn of(values: Vec<f64>) -> Self {
        Scores { sum: BlockSum::of(&values), values, ..Scores::default() }
    }

    /// By node, each from 0 to 1.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub fn mean(&self) -> f64 {
        mean(&self.sum, self.values.len())
    }
}

impl Algorithm {
    /// Scores all nodes.
    pub fn score(&self, signals: &Signals, scores: &mut Scores) {
        let mut means = std::mem::take(&mut scores.means);
        means.reset(signals);
        self.score_with(signals, &means, scores);
        scores.means = means;
    }

    /// Scores all nodes with means that the caller keeps up to date.
    pub fn score_with(&self, signals: &Signals, means: &Means, scores: &mut Scores) {
        // When all columns have the same length, the loops need no bounds checks.
        let nodes = signals.len();
        assert!(signals.columns().iter().all(|column| column.len() == nodes), "the four columns differ in length");
        assert_eq!(means.nodes, nodes, "the means are those of other signals");
        scores.values.resize(nodes, 0.0);
        self.define(Fill { signals, means: means.values(), scores });
    }

    /// The aggregates that the definition refers to, and the divisor of a normalized score.
    pub(crate) fn aggregates(&self, signals: &Signals) -> (Aggregates, f64) {
        self.define(AggregatesVisitor { signals, means: Means::of(signals).values() })
    }
}

struct Fill<'a> {
    signals: &'a Signals,
    means: [f64; 4],
    scores: &'a mut Scores,
}

impl Visitor for Fill<'_> {
    type Output = ();

    fn plain(self, expression: impl Op) {
        let aggregates = aggregates(&expression, self.signals, self.means);
        let Scores { values, sum, .. } = self.scores;
        sum.begin();
        for (block, values) in values.chunks_mut(BLOCK).enumerate() {
            fill(expression, self.signals, &aggregates, block * BLOCK, values);
            sum.add_block(values);
        }
    }

    fn normalized(self, expression: impl Op) {
        let aggregates = aggregates(&expression, self.signals, self.means);
        let Scores { values, sum, .. } = self.scores;
        fill(expression, self.signals, &aggregates, 0, values);
        let greatest = greatest(values);
        if greatest > 0.0 {
            values.iter_mut().for_each(|value| *value /= greatest);
        }
        sum.reset(values);
    }

    fn pareto_front(self) {
        let Scores { values, sum, ranking, .. } = self.scores;
        ranking.score(self.signals, values);
        sum.reset(values);
    }
}

struct AggregatesVisitor<'a> {
    signals: &'a Signals,
    means: [f64; 4],
}

impl Visitor for AggregatesVisitor<'_> {
    type Output = (Aggregates, f64);

    fn plain(self, expression: impl Op) -> Self::Output {
        (aggregates(&expression, self.signals, self.means), 0.0)
    }

    fn normalized(self, expression: impl Op) -> Self::Output {
        let aggregates = aggregates(&expression, self.signals, self.means);
        let mut values = vec![0.0; self.signals.len()];
        fill(expression, self.signals, &aggregates, 0, &mut values);
        (aggregates, greatest(&values))
    }

    fn pareto_front(self) -> Self::Output {
        (Aggregates { means: self.means, critical: Signal::CpuUsage, lowest: [0.0; 4], highest: [0.0; 4] }, 0.0)
    }
}

/// The values of the nodes from `start` on.
#[inline]
fn fill<E: Op>(expression: E, signals: &Signals, aggregates: &Aggregates, start: usize, values: &mut [f64]) {
    let end = start + values.len();
    let [a, b, c, d] = signals.columns().map(|column| &column[start..end]);
    for ((((value, &a), &b), &c), &d) in values.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *value = expression.at(&[a, b, c, d], aggregates);
    }
}

fn aggregates<E: Op>(_: &E, signals: &Signals, means: [f64; 4]) -> Aggregates {
    let critical = if E::CRITICAL { critical(signals, &means) } else { Signal::CpuUsage };
    let of_columns = |of: fn(&[f64]) -> f64| if E::EXTREMES { signals.columns().map(of) } else { [0.0; 4] };
    Aggregates { means, critical, lowest: of_columns(least), highest: of_columns(greatest) }
}

/// The first dimension whose mean excess is within the tolerance of the greatest.
fn critical(signals: &Signals, means: &[f64; 4]) -> Signal {
    let mut buffer = [0.0; BLOCK];
    let excesses = Signal::ALL.map(|signal| {
        let mut sum = BlockSum::default();
        for block in signals.column(signal).chunks(BLOCK) {
            let buffer = &mut buffer[..block.len()];
            for (to, &value) in buffer.iter_mut().zip(block) {
                *to = excess(value, means[signal.index()]);
            }
            sum.add_block(buffer);
        }
        mean(&sum, signals.len())
    });
    let most = greatest(&excesses);
    Signal::ALL.into_iter().find(|signal| excesses[signal.index()] >= most - TOLERANCE).unwrap_or(Signal::CpuUsage)
}

/// Eight lanes let the compiler use vector instructions. The order does not change a maximum.
fn greatest(values: &[f64]) -> f64 {
    let mut lane = [0.0_f64; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (lane, &value) in lane.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    rest.iter().chain(&lane).fold(0.0, |most, &value| if value > most { value } else { most })
}

/// 0 without nodes.
fn least(values: &[f64]) -> f64 {
    values.iter().copied().reduce(|least, value| if value < least { value } else { least }).unwrap_or(0.0)
}
