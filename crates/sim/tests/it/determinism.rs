//! The same seed gives the same bytes with any number of threads, in debug and in release builds.
//! `digests.csv` is valid for both builds: `cargo test -p sim` checks it in debug, `cargo test -p sim --release
//! determinism` in release. `UPDATE_DIGESTS=1` rewrites it.

use std::path::Path;

use balance::{Algorithm, Scores, Signals};
use proptest::prelude::*;
use sim::{
    Rng, RunSettings, Variant,
    compare::{Criterion, compare},
    scenario::shipped,
    simulate,
};

use crate::support::{build, scenario};

#[test]
fn every_shipped_scenario_has_the_committed_digest_in_every_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/digests.csv");
    let mut found = "scenario,seed,digest\n".to_owned();
    for scenario in shipped::all() {
        let (model, settings) = build(&scenario);
        for seed in [0, 1] {
            found += &format!("{},{seed},{}\n", scenario.name, simulate(&model, &settings, seed).0.digest);
        }
    }
    for (number, algorithm) in Algorithm::all().into_iter().enumerate() {
        let scenario = shipped::find("mixed").unwrap();
        let (model, settings) = build(&scenario);
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

/// The scores of `balance` for 1234 random nodes.
#[test]
fn scores_have_the_same_bits_everywhere() {
    // The digests were computed with the stream that this seed begins.
    let mut rng = Rng::new(0x2300_02ea_4f41_30f4);
    let signals: Signals = (0..1234).map(|_| [rng.unit(), rng.unit(), rng.unit(), rng.unit()]).collect();
    let digest = |algorithm: &Algorithm| {
        let mut scores = Scores::new();
        algorithm.score(&signals, &mut scores);
        let fold = |hash: u64, value: &f64| (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        scores.values().iter().fold(0xcbf2_9ce4_8422_2325, fold)
    };
    let found: Vec<String> =
        Algorithm::all().iter().map(|algorithm| format!("{:016x} {}", digest(algorithm), algorithm.slug())).collect();
    assert_eq!(found.join("\n"), include_str!("../score-digests.txt").trim_end());
}

/// Holds L44 (shared task state).
#[test]
fn a_comparison_does_not_depend_on_the_number_of_threads() {
    let scenario = shipped::find("light").unwrap();
    let (model, settings) = build(&scenario);
    let with = |threads: usize| {
        let algorithms = [Algorithm::amplified(3.0), Algorithm::amplified(5.0), Algorithm::MaxMetric];
        let variants = Variant::all(&settings, &algorithms, &[], &[]);
        let comparison = compare(&model, &settings, &variants, 3..9, Criterion::Migrations, threads, &|_, _| {});
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
    let (model, settings) = build(&scenario);
    assert_ne!(simulate(&model, &settings, 1).0.digest, simulate(&model, &settings, 2).0.digest);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_seed_gives_the_same_bytes(scenario in scenario(), seed in any::<u64>()) {
        let (model, settings) = build(&scenario);
        let (first, one) = simulate(&model, &settings, seed);
        let (second, other) = simulate(&model, &settings, seed);
        prop_assert_eq!(one.history(), other.history());
        prop_assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&second).unwrap());
    }
}
