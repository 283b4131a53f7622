//! The search: its scenarios are what their families say, and its figures do not depend on threads.

use balance::{Algorithm, Mode};
use sim::{
    ClusterModel, RunSettings, Variant,
    optimum::problem,
    scenario::{Limits, parse},
    search::{Candidate, Case, Family, Lift, cases, scenario, tally, tally_lifted},
};

const SEED: u64 = 5;

fn candidate() -> Candidate {
    let algorithm = Algorithm::HottestToColdest { gap: 0.1, width: 0.02 };
    Candidate { variant: Variant { algorithm, mode: Mode::Low, limits: Limits { total: 1, per_node: 1 } } }
}

fn case(family: Family) -> Case {
    let number = (0..).find(|number| Family::of(*number) == family).unwrap();
    Case::new(SEED, number).unwrap()
}

/// By node: its use at the end without rebalancing.
fn usage(number: u64) -> Vec<f64> {
    let scenario = scenario(SEED, number);
    let (model, settings) = (ClusterModel::new(&scenario).unwrap(), RunSettings::new(&scenario).unwrap());
    let problem = problem(&model, &settings, number);
    let mut used = vec![0.0; problem.nodes.len()];
    for vm in &problem.vms {
        used[vm.node.unwrap()] += vm.cores;
    }
    used.iter().zip(&problem.nodes).map(|(used, node)| used / node.cores).collect()
}

#[test]
fn the_same_number_gives_the_same_scenario_and_others_give_others() {
    for number in 0..70 {
        let one = scenario(SEED, number);
        assert_eq!(one, scenario(SEED, number));
        assert_ne!(one.vms, scenario(SEED, number + 7).vms);
        assert_ne!(one.vms, scenario(SEED + 1, number).vms);
        assert_eq!(parse(&one.to_yaml()).unwrap(), [one], "a scenario can be saved as a file");
    }
}

#[test]
fn families_take_turns_and_their_scenarios_are_what_they_say() {
    for number in 0..70 {
        let (family, usage, scenario) = (Family::of(number), usage(number), scenario(SEED, number));
        let above = |bound: f64| usage.iter().filter(|usage| **usage > bound).count();
        let per_node = scenario.vms.len() as f64 / usage.len() as f64;
        match family {
            Family::UnevenNodes => assert!(scenario.nodes.iter().all(|node| [16.0, 32.0, 64.0].contains(&node.cores))),
            Family::MemoryBound => {
                let requested: u64 = scenario.vms.iter().map(|vm| vm.memory.0).sum();
                let all: u64 = scenario.nodes.iter().map(|node| node.memory.0).sum();
                assert!(requested as f64 > 0.45 * all as f64, "{number}: {requested} of {all}");
            }
            Family::Bursts => assert_eq!(scenario.tasks.len(), 1),
            Family::DailyCurves => assert!(!ClusterModel::new(&scenario).unwrap().is_steady()),
            Family::FewBigVms => assert!(per_node <= 4.0, "{number}: {per_node}"),
            Family::OneHotNode => assert_eq!(above(0.6), 1, "{number}: {usage:?}"),
            Family::AllHotButOne => assert_eq!(above(0.35), usage.len() - 1, "{number}: {usage:?}"),
        }
        assert!(usage.iter().all(|usage| (0.005..=1.0).contains(usage)), "{number}: {usage:?}");
    }
}

#[test]
fn figures_do_not_depend_on_threads() {
    let all = cases(SEED, 0..14, 2, &|_, _| {}).unwrap();
    assert_eq!(all.iter().map(|case| case.number).collect::<Vec<u64>>(), (0..14).collect::<Vec<u64>>());
    let [one, three] = [1, 3].map(|threads| tally(&all, &candidate(), threads, &|_, _| {}));
    assert_eq!(one, three);
    assert_eq!(one.all.of, 14);
    assert!(one.by_family.iter().all(|(_, count)| count.of == 2));
    assert_eq!(tally_lifted(&all, &candidate(), Lift::Nothing, 2, &|_, _| {}).unwrap(), one);
}

#[test]
fn a_run_that_gives_up_early_is_judged_as_the_whole_run_is() {
    for case in cases(SEED, 0..21, 2, &|_, _| {}).unwrap() {
        for algorithm in [candidate().variant.algorithm, Algorithm::default(), Algorithm::CentroidDistance] {
            let candidate = Candidate { variant: Variant { algorithm, ..candidate().variant } };
            assert_eq!(case.is_near(&candidate), case.judge(&candidate).1.is_near(), "{} {algorithm}", case.number);
        }
    }
}

/// With equal clusters but for one hot node, the score moves VMs from it to the coldest until the gap is closed.
#[test]
fn hottest_to_coldest_evens_out_one_hot_node_and_stops() {
    let case = case(Family::OneHotNode);
    let (done, judgement) = case.judge(&candidate());
    assert!(judgement.stops && judgement.none_back && done.migrations > 0, "{done:?} {:?}", case.yardstick);
}
