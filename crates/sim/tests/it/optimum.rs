//! The optimum: against all placements of tiny clusters, and on clusters of any size.

use balance::{Algorithm, Mode};
use proptest::prelude::*;
use sim::{
    Scenario, Variant,
    compare::{Criterion, Entry, compare},
    optimum::{BUDGET, Optimum, Problem, ProblemNode, ProblemVm, doubt, problem},
    report::tradeoff::of_comparison,
    scenario::{Limits, generate::generate, shipped},
    simulate,
};

use crate::support::{build, scenario};

/// A tiny cluster with all that restricts migrations: room, closed nodes, VMs that stay, labels, and VMs kept apart.
fn tiny() -> impl Strategy<Value = Problem> {
    let node =
        (2..9_u32, 0..8_u8, 2..12_u32, 1..5_u32, 0..3_u8).prop_map(|(cores, closed, memory, vms, own)| ProblemNode {
            cores: f64::from(cores),
            own: f64::from(own),
            open: closed != 0,
            room: [f64::from(memory), f64::INFINITY, f64::from(vms)],
        });
    let vm = (0.0..4.0_f64, 0..8_usize, 0..6_u8, 0..2_usize, 0..4_u32, 0..4_u32);
    (prop::collection::vec(node, 2..4), prop::collection::vec(vm, 0..6), any::<[bool; 3]>(), any::<bool>()).prop_map(
        |(nodes, vms, allowed, round)| Problem {
            vms: vms
                .into_iter()
                .map(|(cores, node, stays, class, apart, memory)| ProblemVm {
                    // Round loads have many equal solutions.
                    cores: if round { cores.round() } else { cores },
                    node: Some(node % nodes.len()),
                    movable: stays != 0,
                    class,
                    apart: (apart == 0).then_some(1),
                    takes: [f64::from(memory), 0.0, 1.0],
                })
                .collect(),
            allowed: vec![vec![true; nodes.len()], allowed[..nodes.len()].to_vec()],
            nodes,
            room_varies: false,
        },
    )
}

/// The least spread and whether balance is possible, by number of migrations, by trying everything.
fn brute_force(problem: &Problem) -> (Vec<f64>, Option<u64>) {
    let (nodes, vms) = (problem.nodes.len(), problem.vms.len());
    let mut best = vec![f64::INFINITY; vms + 1];
    let mut balanced = None;
    for number in 0..nodes.pow(vms as u32) {
        let place: Vec<usize> = (0..vms).map(|vm| number / nodes.pow(vm as u32) % nodes).collect();
        let moved: Vec<usize> = (0..vms).filter(|vm| problem.vms[*vm].node != Some(place[*vm])).collect();
        if !moved.iter().all(|vm| arrives(problem, &place, *vm)) {
            continue;
        }
        let usage: Vec<f64> = (0..nodes)
            .filter(|node| problem.nodes[*node].open)
            .map(|node| {
                let cores: f64 = (0..vms).filter(|g| place[*g] == node).map(|g| problem.vms[g].cores).sum();
                ((cores + problem.nodes[node].own) / problem.nodes[node].cores).min(1.0)
            })
            .collect();
        let mean = usage.iter().sum::<f64>() / usage.len().max(1) as f64;
        let squares: f64 = usage.iter().map(|usage| (usage - mean).powi(2)).sum();
        let spread = (squares / usage.len().max(1) as f64).sqrt();
        best[moved.len()..].iter_mut().for_each(|best| *best = best.min(spread));
        let heaviest = (0..vms)
            .filter(|vm| problem.nodes[place[*vm]].open)
            .map(|vm| problem.vms[vm].cores / problem.nodes[place[vm]].cores)
            .fold(0.1, f64::max);
        let gap = usage.iter().copied().fold(0.0, f64::max) - usage.iter().copied().fold(1.0, f64::min);
        if gap <= heaviest + 1e-12 {
            balanced = Some(balanced.unwrap_or(u64::MAX).min(moved.len() as u64));
        }
    }
    (best, balanced)
}

/// Whether a VM that moved may be where it is.
fn arrives(problem: &Problem, place: &[usize], vm: usize) -> bool {
    let (one, to) = (&problem.vms[vm], place[vm]);
    let node = &problem.nodes[to];
    let there: Vec<usize> = (0..place.len()).filter(|other| place[*other] == to).collect();
    let taken = |kind: usize| there.iter().map(|other| problem.vms[*other].takes[kind]).sum::<f64>();
    let alone = |other: &usize| *other == vm || one.apart.is_none() || problem.vms[*other].apart != one.apart;
    one.movable
        && node.open
        && problem.allowed[one.class][to]
        && (0..3).all(|kind| taken(kind) <= node.room[kind])
        && there.iter().all(alone)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_the_optimum_of_tiny_clusters(problem in tiny()) {
        let (best, balanced) = brute_force(&problem);
        let optimum = Optimum::of(&problem, BUDGET);
        for (migrations, best) in best.iter().enumerate() {
            let (found, bound) = (optimum.spread(migrations as u64), optimum.bound(migrations as u64));
            prop_assert!((found - best).abs() < 1e-6, "{migrations}: {found} instead of {best}");
            prop_assert!((bound - best).abs() < 1e-6, "{migrations}: bound {bound} of {best}");
        }
        prop_assert_eq!((optimum.balanced, optimum.balanced_bound), (balanced, balanced));
    }

    #[test]
    fn without_a_search_the_optimum_of_tiny_clusters_is_within_the_bounds(problem in tiny()) {
        let (best, balanced) = brute_force(&problem);
        let optimum = Optimum::of(&problem, 0);
        for (migrations, best) in best.iter().enumerate() {
            let (found, bound) = (optimum.spread(migrations as u64), optimum.bound(migrations as u64));
            prop_assert!(found >= best - 1e-9, "{migrations}: {found} is better than {best}");
            prop_assert!(bound <= best + 1e-9, "{migrations}: bound {bound} of {best}");
        }
        let least = optimum.balanced_bound.unwrap_or(u64::MAX);
        prop_assert!(least <= balanced.unwrap_or(u64::MAX), "{least} of {balanced:?}");
        prop_assert!(optimum.balanced.unwrap_or(u64::MAX) >= balanced.unwrap_or(u64::MAX), "{optimum:?} {balanced:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a run does, it is not better than the bounds.
    #[test]
    fn no_run_is_better_than_the_bounds(scenario in scenario(), seed in 0..1000_u64) {
        let (model, settings) = build(&scenario);
        prop_assume!(doubt(&model).is_none());
        let optimum = Optimum::of(&problem(&model, &settings, seed), 2_000);
        let (outcome, _) = simulate(&model, &settings, seed);
        let (spread, migrations) = (outcome.end.cpu.sigma, outcome.migrations.total);
        let bound = optimum.bound(migrations);
        prop_assert!(spread >= bound - 1e-9, "{spread} after {migrations} migrations is below {bound}");
        if outcome.end.balanced {
            let least = optimum.balanced_bound.unwrap_or(u64::MAX);
            prop_assert!(migrations >= least, "{migrations} migrations balanced it, fewer than {least}");
        }
    }
}

fn optimum_of(scenario: &Scenario) -> Optimum {
    let (model, settings) = build(scenario);
    Optimum::of(&problem(&model, &settings, 0), BUDGET)
}

/// Nodes of the same size with many VMs: the heuristic and the bound are close.
#[test]
fn the_optimum_of_large_clusters_is_known_nearly() {
    let shipped = ["light", "mixed", "heavy", "progression"].map(|name| shipped::find(name).unwrap());
    for scenario in shipped.iter().chain([&generate(60, 3000, 1, false).unwrap()]) {
        let optimum = optimum_of(scenario);
        let start = optimum.spread(0);
        for migrations in 0..=optimum.last() {
            let (spread, bound) = (optimum.spread(migrations), optimum.bound(migrations));
            let open = spread - bound;
            assert!((0.0..=0.005).contains(&open), "{}: {bound} to {spread}", scenario.name);
            assert!(migrations == 0 || spread < optimum.spread(migrations - 1), "each migration is of use");
        }
        assert!(optimum.spread(optimum.last()) < 0.05 * start, "{}: nearly even in the end", scenario.name);
        let (known, least) = (optimum.balanced.unwrap(), optimum.balanced_bound.unwrap());
        assert!(least <= known && known <= least + 1 + least / 10, "{}: {least} to {known}", scenario.name);
    }
}

/// Two equal VMs on one of two nodes: one migration is best, and none is not enough.
#[test]
fn an_optimum_says_how_many_migrations_a_spread_needs() {
    let node = ProblemNode { cores: 4.0, own: 0.0, open: true, room: [8.0, f64::INFINITY, 9.0] };
    let vm = ProblemVm { cores: 2.0, node: Some(0), movable: true, class: 0, apart: None, takes: [4.0, 0.0, 1.0] };
    let mut problem = Problem {
        nodes: vec![node.clone(), node],
        vms: vec![vm.clone(), vm],
        allowed: vec![vec![true; 2]],
        room_varies: false,
    };
    let optimum = Optimum::of(&problem, BUDGET);
    assert_eq!([0, 1, 2, 99].map(|migrations| optimum.spread(migrations)), [0.5, 0.0, 0.0, 0.0]);
    assert_eq!([0.6, 0.5, 0.4, 0.0].map(|spread| optimum.migrations_for(spread)), [0, 0, 1, 1]);
    assert_eq!((optimum.balanced, optimum.balanced_bound), (Some(1), Some(1)));
    problem.nodes[1].room[0] = 3.0;
    let full = Optimum::of(&problem, BUDGET);
    assert_eq!((full.bound(9), full.balanced, full.balanced_bound), (0.5, None, None), "nothing fits");
    // The room may have been there at another time, so nothing is proven by it.
    problem.room_varies = true;
    let unsure = Optimum::of(&problem, BUDGET);
    assert_eq!((unsure.spread(9), unsure.bound(9), unsure.balanced_bound), (0.5, 0.0, Some(1)));
}

#[test]
fn a_comparison_has_every_mode_and_all_limits_and_its_distance_from_the_optimum() {
    let (model, settings) = build(&shipped::find("mixed").unwrap());
    let limits = [Limits { total: 5, per_node: 2 }, Limits { total: 50, per_node: 20 }];
    let algorithms = [Algorithm::MaxMetric, Algorithm::amplified(3.0)];
    let modes = [Mode::AsymmetricLow, Mode::High];
    let variants = Variant::all(&settings, &algorithms, &modes, &limits);
    assert_eq!(variants.len(), 8);
    let comparison = compare(&model, &settings, &variants, 0..3, Criterion::Spread, 2, &|_, _| {});
    for entry in &comparison.entries {
        let optimum = entry.optimum;
        assert!(optimum.bound.mean <= optimum.spread.mean && optimum.spread.mean <= entry.end_spread.mean + 1e-12);
        assert!(optimum.migrations.mean <= entry.migrations.mean);
        let beats = |other: &Entry| {
            other.migrations.mean < entry.migrations.mean && other.end_spread.mean < entry.end_spread.mean
        };
        assert!(!entry.efficient || !comparison.entries.iter().any(beats));
    }
    assert!(comparison.entries.iter().any(|entry| entry.efficient));
    assert!(comparison.entries.iter().any(|entry| !entry.efficient));
    let points = &comparison.optimum.points;
    assert!(points.len() <= 120 && points[0].migrations == 0);
    assert!(points.windows(2).all(|pair| pair[0].migrations < pair[1].migrations && pair[0].bound >= pair[1].bound));
    let chart = of_comparison(&comparison);
    for part in ["max_metric", "Max Metric, high, 50:20", "bound: nothing can be below", "<polyline"] {
        assert_eq!(chart.contains(part), part != "max_metric", "{part}");
    }
    assert_eq!(chart.matches("<text").count(), chart.matches("</text>").count());
}
