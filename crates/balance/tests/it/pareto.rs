//! The fast ranking, compared with a literal implementation of the definition.

use balance::{Algorithm, Scores, Signals, pareto};
use proptest::prelude::*;

use crate::clusters::clusters;

/// Takes away front after front by comparing every node with every other.
fn by_definition(signals: &Signals) -> Vec<u32> {
    let nodes: Vec<[f64; 4]> = (0..signals.len()).map(|node| signals.node(node)).collect();
    let dominates = |a: &[f64; 4], b: &[f64; 4]| a.iter().zip(b).all(|(a, b)| a <= b) && a != b;
    let mut front = vec![None; nodes.len()];
    for level in 0.. {
        let open: Vec<usize> = (0..nodes.len()).filter(|&node| front[node].is_none()).collect();
        if open.is_empty() {
            break;
        }
        let is_next = |&node: &usize| !open.iter().any(|&other| dominates(&nodes[other], &nodes[node]));
        let next: Vec<usize> = open.iter().copied().filter(is_next).collect();
        next.into_iter().for_each(|node| front[node] = Some(level));
    }
    front.into_iter().flatten().collect()
}

/// Crowding by its definition: each front is sorted by each objective, and equal nodes stay in their order.
fn scores_by_definition(signals: &Signals) -> Vec<f64> {
    let front = by_definition(signals);
    let last = front.iter().copied().max().unwrap_or(0);
    let mut scores = vec![0.0; front.len()];
    for level in 0..=last {
        let members: Vec<usize> = (0..front.len()).filter(|&node| front[node] == level).collect();
        let mut distance = vec![0.0; front.len()];
        for column in signals.columns() {
            let mut sorted = members.clone();
            sorted.sort_by(|&a, &b| column[a].total_cmp(&column[b]));
            let (first, end) = (sorted[0], sorted[sorted.len() - 1]);
            let range = column[end] - column[first];
            for at in 1..sorted.len().max(1) - 1 {
                if range > 0.0 {
                    distance[sorted[at]] += (column[sorted[at + 1]] - column[sorted[at - 1]]) / range;
                }
            }
            distance[first] = f64::INFINITY;
            distance[end] = f64::INFINITY;
        }
        let most = members.iter().map(|&node| distance[node]).filter(|d| d.is_finite()).fold(0.0, f64::max);
        for &node in &members {
            let crowding = match distance[node] {
                d if d.is_infinite() => 0.0,
                _ if most == 0.0 => 0.05,
                d => 0.1 * (1.0 - d / most),
            };
            scores[node] = (f64::from(level) / f64::from(last.max(1)) + crowding).min(1.0);
        }
    }
    scores
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fronts_are_those_of_the_definition(signals in clusters(1..120)) {
        prop_assert_eq!(pareto::fronts(&signals), by_definition(&signals));
    }

    #[test]
    fn scores_are_those_of_the_definition(signals in clusters(1..60)) {
        let mut scores = Scores::new();
        Algorithm::ParetoFront.score(&signals, &mut scores);
        prop_assert_eq!(scores.values(), scores_by_definition(&signals));
    }
}

/// Few values per signal give every split many ties. The sizes use all parts of the recursion.
#[test]
fn large_clusters_with_ties_are_ranked_as_by_definition() {
    let mut rng = fastrand::Rng::with_seed(7);
    for (nodes, values) in [(700, 3.0), (700, 8.0), (600, 40.0), (500, 1e6)] {
        let coarse = |value: f64| (value * values).floor() / values;
        let signals: Signals = (0..nodes).map(|_| [0; 4].map(|_| rng.f64()).map(coarse)).collect();
        assert_eq!(pareto::fronts(&signals), by_definition(&signals), "{nodes} nodes, {values} values");
    }
}

#[test]
fn a_single_front_and_a_pure_chain_are_what_they_are() {
    let step = |at: u32| f64::from(at) / 3000.0;
    let chain: Signals = (0..3000).rev().map(|at| [step(at); 4]).collect();
    assert_eq!(pareto::fronts(&chain), (0..3000).rev().collect::<Vec<u32>>());
    let front: Signals = (0..3000).map(|at| [step(at), step(2999 - at), step(at), step(2999 - at)]).collect();
    assert_eq!(pareto::fronts(&front), vec![0; 3000]);
}

#[test]
fn no_node_and_one_node_are_ranked_too() {
    assert!(pareto::fronts(&Signals::new()).is_empty());
    assert_eq!(pareto::fronts(&Signals::idle(1)), [0]);
    assert_eq!(pareto::fronts(&Signals::idle(9)), [0; 9]);
}
