//! Pareto ranking: the front of each node, and how crowded each front is.
//!
//! Where an order matters it is the order of the nodes, so that equal input gives equal output.

mod fronts;

use fronts::{DIMENSIONS, Point, Sorter};

use crate::signals::Signals;

/// The most that crowding adds to a score.
const CROWDING: f64 = 0.1;

/// The front of every node: 0 for those that no node dominates, 1 for those that only they dominate, and so on.
/// A node dominates another that is at least as loaded in every signal and more in one.
pub fn fronts(signals: &Signals) -> Vec<u32> {
    let mut ranking = Ranking::default();
    ranking.rank(signals);
    ranking.front
}

/// The buffers of a ranking.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranking {
    front: Vec<u32>,
    /// The nodes sorted by each signal. Nodes with equal values stay in their order.
    order: [Vec<u32>; DIMENSIONS],
    /// The ranks of each node's signals. Equal values have equal ranks.
    points: Vec<Point>,
    by_point: Vec<u32>,
    distinct: Vec<Point>,
    sorter: Sorter,
    starts: Vec<u32>,
    members: Vec<u32>,
    distance: Vec<f64>,
}

impl Ranking {
    fn rank(&mut self, signals: &Signals) {
        let nodes = signals.len();
        self.points.clear();
        self.points.resize(nodes, [0; DIMENSIONS]);
        for (dimension, column) in signals.columns().into_iter().enumerate() {
            let order = &mut self.order[dimension];
            order.clear();
            order.extend(0..nodes as u32);
            // Adding 0 turns -0 into 0, because both are the same value.
            let value = |node: u32| column[node as usize] + 0.0;
            order.sort_unstable_by(|&a, &b| value(a).total_cmp(&value(b)).then(a.cmp(&b)));
            let mut rank = 0;
            for at in 0..nodes {
                if at > 0 && value(order[at]) != value(order[at - 1]) {
                    rank += 1;
                }
                self.points[order[at] as usize][dimension] = rank;
            }
        }

        // Equal nodes have the same front, so each point is sorted once.
        self.by_point.clear();
        self.by_point.extend(0..nodes as u32);
        let points = &self.points;
        self.by_point.sort_unstable_by(|&a, &b| points[a as usize].cmp(&points[b as usize]));
        self.distinct.clear();
        self.distinct.extend(self.by_point.iter().map(|&node| points[node as usize]));
        self.distinct.dedup();
        let fronts = self.sorter.sort(&self.distinct);
        self.front.clear();
        self.front.resize(nodes, 0);
        let mut at = 0;
        for &node in &self.by_point {
            at += usize::from(self.distinct[at] != points[node as usize]);
            self.front[node as usize] = fronts[at];
        }
    }

    /// The scores: the front divided by the last front, plus up to a tenth for crowding.
    pub(crate) fn score(&mut self, signals: &Signals, scores: &mut [f64]) {
        self.rank(signals);
        let Some(last) = self.front.iter().copied().max() else { return };
        self.crowding(signals, last);
        let steps = f64::from(last.max(1));
        for ((score, &front), &crowding) in scores.iter_mut().zip(&self.front).zip(&self.distance) {
            let sum = f64::from(front) / steps + crowding;
            *score = if sum < 1.0 { sum } else { 1.0 };
        }
    }

    /// Computes what crowding adds to each score, into `distance`.
    fn crowding(&mut self, signals: &Signals, last: u32) {
        let nodes = signals.len();
        self.starts.clear();
        self.starts.resize(last as usize + 2, 0);
        for &front in &self.front {
            self.starts[front as usize + 1] += 1;
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        self.distance.clear();
        self.distance.resize(nodes, 0.0);
        self.members.resize(nodes, 0);
        for (order, column) in self.order.iter().zip(signals.columns()) {
            // The nodes of each front in the order of this signal: `starts[f]` moves to the end of front f.
            for &node in order {
                let slot = &mut self.starts[self.front[node as usize] as usize];
                self.members[*slot as usize] = node;
                *slot += 1;
            }
            self.starts.rotate_right(1);
            self.starts[0] = 0;
            for bounds in self.starts.windows(2) {
                let members = &self.members[bounds[0] as usize..bounds[1] as usize];
                add_distances(members, column, &mut self.distance);
            }
        }
        for bounds in self.starts.windows(2) {
            share(&self.members[bounds[0] as usize..bounds[1] as usize], &mut self.distance);
        }
    }
}

/// Adds to each node of a front the distance between its neighbors in one signal. The outermost nodes get an infinite
/// distance.
fn add_distances(members: &[u32], column: &[f64], distance: &mut [f64]) {
    let value = |at: usize| column[members[at] as usize];
    let (Some(&first), Some(&end)) = (members.first(), members.last()) else { return };
    let range = value(members.len() - 1) - value(0);
    if range > 0.0 {
        for at in 1..members.len() - 1 {
            distance[members[at] as usize] += (value(at + 1) - value(at - 1)) / range;
        }
    }
    distance[first as usize] = f64::INFINITY;
    distance[end as usize] = f64::INFINITY;
}

/// Turns the distances of a front into what they add to the score: the closer the neighbors, the more.
fn share(members: &[u32], distance: &mut [f64]) {
    let finite = |value: f64| value < f64::INFINITY;
    let most = members.iter().map(|&node| distance[node as usize]).filter(|&value| finite(value)).fold(0.0, f64::max);
    for &node in members {
        let value = &mut distance[node as usize];
        *value = match *value {
            value if !finite(value) => 0.0,
            _ if most <= 0.0 => CROWDING / 2.0,
            value => CROWDING * (1.0 - value / most),
        };
    }
}
