//! The same seed gives the same bytes: with other threads, and in debug and release builds.
//!
//! `digests.csv` was written once and must hold in both builds. `cargo test -p sim` checks it in debug;
//! `cargo test -p sim --release determinism` in release. `UPDATE_DIGESTS=1` writes it anew.

use std::path::Path;

use balance::Algorithm;
use proptest::prelude::*;
use sim::{
    ClusterModel, RunSettings,
    compare::{Criterion, compare},
    scenario::shipped,
    simulate,
};

use crate::support::{run, scenario};

#[test]
fn every_shipped_scenario_has_the_committed_digest_in_every_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/digests.csv");
    let mut found = "scenario,seed,digest\n".to_owned();
    for scenario in shipped::all() {
        let (model, settings) = (ClusterModel::new(&scenario).unwrap(), RunSettings::new(&scenario).unwrap());
        for seed in [0, 1] {
            found += &format!("{},{seed},{}\n", scenario.name, simulate(&model, &settings, seed).0.digest);
        }
    }
    for (number, algorithm) in Algorithm::all().into_iter().enumerate() {
        let scenario = shipped::find("mixed").unwrap();
        let (model, settings) = (ClusterModel::new(&scenario).unwrap(), RunSettings::new(&scenario).unwrap());
        let settings = RunSettings { algorithm, ..settings };
        found += &format!(
            "mixed with {},{number},{}\n",
            algorithm.slug(),
            simulate(&model, &settings, number as u64).0.digest
        );
    }
    if std::env::var_os("UPDATE_DIGESTS").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    for (found, committed) in found.lines().zip(committed.lines()) {
        assert_eq!(
            found, committed,
            "a seed means something else now: if that is meant, UPDATE_DIGESTS=1 writes it anew"
        );
    }
    assert_eq!(found.lines().count(), committed.lines().count());
}

/// Holds L44.
#[test]
fn a_comparison_does_not_depend_on_the_number_of_threads() {
    let scenario = shipped::find("light").unwrap();
    let (model, settings) = (ClusterModel::new(&scenario).unwrap(), RunSettings::new(&scenario).unwrap());
    let with = |threads: usize| {
        let algorithms = [Algorithm::amplified(3.0), Algorithm::amplified(5.0), Algorithm::MaxMetric];
        let comparison = compare(&model, &settings, &algorithms, 3..9, Criterion::Migrations, threads, &|_, _| {});
        serde_json::to_string(&comparison).unwrap()
    };
    let one = with(1);
    for threads in [2, 3, 7, 64] {
        assert_eq!(with(threads), one, "{threads} threads");
    }
}

#[test]
fn another_seed_gives_another_run() {
    let scenario = shipped::find("mixed").unwrap();
    let (model, settings, _) = run(&scenario, 0);
    assert_ne!(simulate(&model, &settings, 1).0.digest, simulate(&model, &settings, 2).0.digest);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_seed_gives_the_same_bytes(scenario in scenario(), seed in any::<u64>()) {
        let (model, settings, seed) = run(&scenario, seed);
        let (first, one) = simulate(&model, &settings, seed);
        let (second, other) = simulate(&model, &settings, seed);
        prop_assert_eq!(one.history(), other.history());
        prop_assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&second).unwrap());
    }
}
