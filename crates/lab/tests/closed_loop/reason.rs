//! Why a run of the loop did not reduce the spread enough, or did not end. The reason is derived from the load of the nodes
//! and the scores that the algorithm computes from it.

use balance::{Algorithm, Bucket, Buckets, Classifier, Mode, PressureModel, Scores, Semantics};

use crate::{
    course::{Observation, QUIET},
    observer::{Demand, Move, mean_cpu},
};

/// Nodes are balanced if their CPU use differs by at most this many percent.
const BALANCED: f64 = 10.0;

/// Returns None if the loop stops and the spread has fallen by at least the share `enough`.
pub(crate) fn reason(algorithm: &Algorithm, mode: Mode, record: &Observation, enough: f64) -> Option<String> {
    let end = Look::at(algorithm, mode, &record.frames.last()?.nodes);
    match record.course.stops() {
        true => (record.course.gain() < enough).then(|| end.standstill()),
        false => Some(unrest(algorithm, mode, record)),
    }
}

/// The scores of nodes whose load does not change. Scores and bounds are in percent.
#[derive(Debug, PartialEq)]
struct Look {
    /// The CPU use of the least and the most used node, in percent.
    cpu: (f64, f64),
    lowest: f64,
    highest: f64,
    average: f64,
    /// A node is under-utilized up to the first score, and over-utilized above the second.
    bounds: (f64, f64),
    under: usize,
    over: usize,
    /// The number of over-utilized nodes without any load.
    over_and_empty: usize,
}

impl Look {
    fn at(algorithm: &Algorithm, mode: Mode, nodes: &[Demand]) -> Look {
        let model = PressureModel::default();
        let signals = nodes.iter().map(|[cpu, memory]| model.signals(*cpu, *memory)).collect();
        let (mut scores, mut buckets) = (Scores::new(), Buckets::new());
        algorithm.score(&signals, &mut scores);
        Classifier::new(mode, Semantics::Descheduler).classify(&scores, &mut buckets);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
        };
        let percent = |share: f64| share * 100.0;
        let (lowest, highest) = range(&mut scores.values().iter().map(|score| percent(*score).floor()));
        Look {
            cpu: range(&mut nodes.iter().map(|[cpu, _]| percent(cpu.min(1.0)))),
            lowest,
            highest,
            average: percent(buckets.average()),
            bounds: (percent(buckets.lower()), percent(buckets.upper())),
            under: buckets.count(Bucket::Under),
            over: buckets.count(Bucket::Over),
            over_and_empty: buckets.nodes(Bucket::Over).filter(|node| nodes[*node] == Demand::default()).count(),
        }
    }

    fn range(&self) -> f64 {
        self.cpu.1 - self.cpu.0
    }

    fn use_(&self) -> String {
        format!("CPU use from {:.0} to {:.0} %", self.cpu.0, self.cpu.1)
    }

    /// Says why nothing is evicted any more.
    fn standstill(&self) -> String {
        let Look { lowest, highest, average, bounds: (lower, upper), over, under, over_and_empty, .. } = self;
        let left = self.use_();
        if *over == 0 && lowest == highest {
            return format!("all nodes score {highest:.0}, with {left}");
        }
        if *over == 0 && *upper >= 100.0 {
            return format!("the average score is {average:.0}, so that none can be far enough above it, with {left}");
        }
        if *over == 0 {
            return format!(
                "no score is above {upper:.0}: the highest is {highest:.0}, the average {average:.0}, with {left}"
            );
        }
        if over == over_and_empty {
            return format!("the only nodes that it takes for over-utilized are empty by now, with {left}");
        }
        if *under == 0 {
            return format!(
                "nowhere to go: over-utilized nodes: {over}, but no score at or below {lower:.0}, with {left}"
            );
        }
        format!("not by its scores: over-utilized nodes: {over}, under-utilized: {under}, with {left}")
    }
}

/// Says why evictions go on, from the last cycles.
fn unrest(algorithm: &Algorithm, mode: Mode, record: &Observation) -> String {
    let since = record.frames.len().saturating_sub(QUIET as usize);
    let late = &record.frames[since..];
    let first = late.first().map_or(0, |frame| frame.moves);
    let moves = &record.moves[first.min(record.moves.len())..];
    let all = moves.len();
    let uphill = moves.iter().filter(|moved| moved.excess < 0.0).count();
    if uphill * 2 > all {
        return format!("takes VMs from nodes with less CPU use than the average: {uphill} of the last {all} moves");
    }
    let looks: Vec<Look> = late.iter().map(|frame| Look::at(algorithm, mode, &frame.nodes)).collect();
    let calmest = looks.iter().filter(|look| look.over > 0).min_by(|one, other| one.range().total_cmp(&other.range()));
    if let Some(look @ Look { highest, average, .. }) = calmest.filter(|look| look.range() <= BALANCED) {
        let seen = format!("the highest score is {highest:.0}, the average {average:.0}, with {}", look.use_());
        return format!("evicts although it is balanced: {seen}");
    }
    let returns = returns(&record.moves, record.moves.len() - all);
    if returns * 2 > all {
        return format!("VMs go back to nodes that they had left: {returns} of the last {all} moves");
    }
    let mean = late.last().map_or(0.0, |frame| mean_cpu(&frame.nodes) * 100.0);
    let now = looks.last().map(Look::use_).unwrap_or_default();
    format!("{uphill} of the last {all} moves from nodes below the average of {mean:.0} %, {returns} back; {now}")
}

/// Counts the moves, from index `since` on, to a node that the VM had left before.
fn returns(moves: &[Move], since: usize) -> usize {
    let had_left =
        |at: usize| moves[..at].iter().any(|before| before.vm == moves[at].vm && before.from == moves[at].to);
    (since..moves.len()).filter(|at| had_left(*at)).count()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::course::{Course, Frame};

    fn algorithm(slug: &str) -> Algorithm {
        slug.parse().unwrap()
    }

    fn cpu(uses: [f64; 5]) -> Vec<Demand> {
        uses.iter().map(|cpu| [*cpu, 0.2]).collect()
    }

    fn moved(vm: &str, from: &str, to: &str, excess: f64) -> Move {
        Move { vm: vm.into(), from: from.into(), to: to.into(), excess, took: Duration::ZERO, was_evicted: true }
    }

    /// A run with the same nodes in all cycles, and at most one move per cycle.
    fn record(nodes: [f64; 5], moves: Vec<Move>, last: u64, after: f64) -> Observation {
        let frames = (0..=31).map(|cycle| Frame { nodes: cpu(nodes), moves: moves.len().min(cycle) }).collect();
        let course = Course {
            before: 0.2,
            after,
            cycles: 31,
            last,
            active: last,
            evictions: moves.len() as u64,
            migrations: moves.len(),
            most_of_one: 1,
            repeated: 0,
            moved_again: 0,
            took: 2.0,
        };
        Observation { course, frames, moves }
    }

    fn going_on(slug: &str, nodes: [f64; 5], moves: Vec<Move>) -> String {
        reason(&algorithm(slug), Mode::Low, &record(nodes, moves, 31, 0.05), 0.6).unwrap()
    }

    #[test]
    fn a_run_that_evens_out_and_stops_needs_no_reason() {
        let record = record([0.5; 5], vec![], 4, 0.05);
        assert_eq!(reason(&algorithm("k3"), Mode::Low, &record, 0.6), None);
    }

    #[test]
    fn a_run_that_stops_short_is_explained_by_the_scores_at_its_end() {
        let reason = |slug: &str, mode, nodes| reason(&algorithm(slug), mode, &record(nodes, vec![], 0, 0.19), 0.6);
        let said = reason("weighted_average", Mode::Low, [0.5, 0.5, 0.2, 0.2, 0.2]).unwrap();
        assert_eq!(said, "no score is above 23: the highest is 18, the average 13, with CPU use from 20 to 50 %");
        let said = reason("memory_focused", Mode::Low, [0.5, 0.5, 0.2, 0.2, 0.2]).unwrap();
        assert_eq!(said, "all nodes score 14, with CPU use from 20 to 50 %");
        let said = reason("max_metric", Mode::Low, [1.0, 0.95, 0.95, 0.95, 0.7]).unwrap();
        assert_eq!(
            said,
            "the average score is 91, so that none can be far enough above it, with CPU use from 70 to 100 %"
        );
    }

    #[test]
    fn a_node_that_was_emptied_because_it_was_unlike_the_others_is_told() {
        let mut run = record([0.4, 0.4, 0.4, 0.4, 0.0], vec![], 9, 0.19);
        for frame in &mut run.frames {
            frame.nodes[4] = [0.0, 0.0];
        }
        let said = reason(&algorithm("centroid_distance"), Mode::AsymmetricLow, &run, 0.75).unwrap();
        let expected = "the only nodes that it takes for over-utilized are empty by now, with CPU use from 0 to 40 %";
        assert_eq!(said, expected);
    }

    #[test]
    fn nodes_without_a_destination_and_a_loop_that_should_have_acted_are_told_apart() {
        let look = Look {
            cpu: (20.0, 60.0),
            lowest: 22.0,
            highest: 60.0,
            average: 30.0,
            bounds: (20.0, 40.0),
            under: 0,
            over: 2,
            over_and_empty: 0,
        };
        let expected =
            "nowhere to go: over-utilized nodes: 2, but no score at or below 20, with CPU use from 20 to 60 %";
        assert_eq!(look.standstill(), expected);
        let said = Look { under: 1, ..look }.standstill();
        assert_eq!(said, "not by its scores: over-utilized nodes: 2, under-utilized: 1, with CPU use from 20 to 60 %");
    }

    #[test]
    fn a_run_that_goes_on_is_explained_by_what_moved() {
        let many =
            |excess: f64| -> Vec<Move> { (0..31).map(|at| moved(&format!("vm-{at}"), "a", "b", excess)).collect() };
        let said = going_on("centroid_distance", [0.5, 0.4, 0.4, 0.4, 0.2], many(-0.1));
        assert_eq!(said, "takes VMs from nodes with less CPU use than the average: 9 of the last 9 moves");
        let said = going_on("directional_centroid_distance", [0.42, 0.4, 0.4, 0.4, 0.4], many(0.02));
        let expected =
            "evicts although it is balanced: the highest score is 100, the average 20, with CPU use from 40 to 42 %";
        assert_eq!(said, expected);
        let back = (0..31).map(|at| if at % 2 == 0 { ("a", "b") } else { ("b", "a") });
        let back = back.map(|(from, to)| moved("vm", from, to, 0.1)).collect();
        let said = going_on("k3", [0.8, 0.2, 0.2, 0.2, 0.2], back);
        assert_eq!(said, "VMs go back to nodes that they had left: 9 of the last 9 moves");
        let said = going_on("k3", [0.8, 0.2, 0.2, 0.2, 0.2], many(0.1));
        assert_eq!(said, "0 of the last 9 moves from nodes below the average of 32 %, 0 back; CPU use from 20 to 80 %");
    }
}
