//! Thresholds and buckets, in both semantics.

use balance::{Algorithm, Bucket, Buckets, Classifier, Mode, Scores, Semantics};
use proptest::prelude::*;

use crate::clusters::golden;

use Bucket::{Appropriate, Over, Under};

fn classify(mode: Mode, semantics: Semantics, scores: &[f64]) -> Buckets {
    let mut buckets = Buckets::new();
    Classifier::new(mode, semantics).classify(&Scores::of(scores.to_vec()), &mut buckets);
    buckets
}

#[test]
fn golden_buckets_hold_in_every_mode() {
    let mut scores = Scores::new();
    Algorithm::amplified(3.0).score(&golden(), &mut scores);
    for mode in Mode::ALL {
        let mut buckets = Buckets::new();
        Classifier::new(mode, Semantics::Reference).classify(&scores, &mut buckets);
        assert!((buckets.average() - 0.421667).abs() < 1e-6);
        assert_eq!(buckets.of(), [Over, Over, Under, Under, Appropriate, Under], "{mode}");
    }
}

/// Holds L8 (mode by name).
#[test]
fn modes_have_the_names_and_offsets_of_the_reference() {
    let shown: Vec<String> = Mode::ALL.iter().map(Mode::to_string).collect();
    let expected = [
        "Low (10%:10%)",
        "Medium (20%:20%)",
        "High (30%:30%)",
        "AsymmetricLow (0%:10%)",
        "AsymmetricMedium (0%:20%)",
        "AsymmetricHigh (0%:30%)",
    ];
    assert_eq!(shown, expected);
    for mode in Mode::ALL {
        assert_eq!(mode.slug().parse(), Ok(mode));
        assert_eq!(mode.name().parse(), Ok(mode));
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    assert!("asym-lo".parse::<Mode>().unwrap_err().to_string().contains("asym-low"));
}

#[test]
fn whoever_classifies_says_by_which_semantics() {
    let classifier = Classifier::new(Mode::Low, Semantics::Descheduler);
    assert_eq!(classifier.to_string(), "Low (10%:10%), descheduler semantics (whole percent, <= and >)");
    let buckets = classify(Mode::Low, Semantics::Reference, &[0.5]);
    assert_eq!(buckets.classifier().to_string(), "Low (10%:10%), reference semantics (exact score, <= and >=)");
}

/// Scores, mode, and the buckets by the reference and by the descheduler.
#[test]
fn the_two_semantics_differ_at_the_edges() {
    use Mode::*;
    type Case = (&'static str, &'static [f64], Mode, &'static [Bucket], &'static [Bucket]);
    #[rustfmt::skip]
    let cases: [Case; 8] = [
        ("all equal: under by both, and never over", &[0.5, 0.5], AsymmetricLow, &[Under, Under], &[Under, Under]),
        ("on the upper bound: over by >=, not by >", &[0.0, 0.2], AsymmetricLow, &[Under, Over], &[Under, Appropriate]),
        ("beyond it", &[0.0, 0.22], AsymmetricLow, &[Under, Over], &[Under, Over]),
        ("cut to the same percent", &[0.109, 0.101], AsymmetricLow, &[Appropriate, Under], &[Under, Under]),
        ("cut across the upper bound: 0.219 is 21 %", &[0.009, 0.219], AsymmetricLow, &[Under, Over], &[Under, Over]),
        ("a lower bound below 0 is clamped to it", &[0.0, 0.0, 0.24], Low, &[Appropriate, Appropriate, Over], &[Under, Under, Over]),
        ("an upper bound above 1 is clamped to it", &[1.0, 1.0, 0.9], High, &[Appropriate; 3], &[Appropriate; 3]),
        ("under comes first", &[1.0, 1.0], AsymmetricLow, &[Under, Under], &[Under, Under]),
    ];
    for (why, scores, mode, reference, descheduler) in cases {
        assert_eq!(classify(mode, Semantics::Reference, scores).of(), reference, "reference: {why}");
        assert_eq!(classify(mode, Semantics::Descheduler, scores).of(), descheduler, "descheduler: {why}");
    }
}

/// The average of equal scores may round to less than them, and 0.1 + 0.2 to more than 0.3.
#[test]
fn a_score_within_the_tolerance_of_a_bound_lies_on_it() {
    for count in 1..200 {
        for score in [0.1, 0.2, 0.3, 0.7, 1.0 / 3.0, 0.937_551_020_408_163_2] {
            let buckets = classify(Mode::AsymmetricLow, Semantics::Reference, &vec![score; count]);
            assert_eq!(buckets.count(Under), count, "{count} nodes with {score}: average {}", buckets.average());
        }
    }
    // The average is 0.2, so the upper bounds are 0.3, 0.4 and 0.5.
    for (mode, bound) in [(Mode::AsymmetricLow, 0.3), (Mode::AsymmetricMedium, 0.4), (Mode::AsymmetricHigh, 0.5)] {
        for (off, bucket) in [(0.0, Over), (-4e-10, Over), (4e-10, Over), (-1e-8, Appropriate), (1e-8, Over)] {
            let score: f64 = bound + off;
            let buckets = classify(mode, Semantics::Reference, &[0.2 - (score - 0.2), score]);
            assert_eq!(buckets.of(), [Under, bucket], "{mode}: {score}");
        }
    }
    for (off, bucket) in [(4e-10, Under), (-4e-10, Under), (1e-8, Appropriate)] {
        let low = 0.4 - 0.1 + off;
        let buckets = classify(Mode::Low, Semantics::Reference, &[low, 0.8 - low]);
        assert_eq!(buckets.of()[0], bucket, "{off}");
    }
}

#[test]
fn percent_is_cut_as_the_descheduler_cuts_it() {
    // 0.29 * 100 is 28.999999999999996 in floating point, and so 28 %: on the bound of 28.
    let buckets = classify(Mode::AsymmetricLow, Semantics::Descheduler, &[0.29, 0.28]);
    assert_eq!(buckets.average(), 0.28);
    assert_eq!(buckets.of(), [Under, Under]);
}

#[test]
fn a_cordoned_node_is_no_destination_for_the_descheduler() {
    let scores = [0.0, 0.0, 0.9];
    let mut buckets = classify(Mode::AsymmetricLow, Semantics::Descheduler, &scores);
    buckets.cordon(0);
    buckets.cordon(2);
    assert_eq!(buckets.of(), [Appropriate, Under, Over], "it may be a source, though");
    assert_eq!(Bucket::ALL.map(|bucket| buckets.count(bucket)), [1, 1, 1]);
    let mut buckets = classify(Mode::AsymmetricLow, Semantics::Reference, &scores);
    buckets.cordon(0);
    assert_eq!(buckets.count(Under), 2, "the reference knows no cordon");
}

#[test]
fn sources_come_by_falling_score_and_equals_in_order() {
    let values = vec![0.81, 0.0, 0.95, 0.819, 0.95, 0.0, 0.0, 0.0, 0.0];
    let sources = |semantics| {
        let scores = Scores::of(values.clone());
        let mut buckets = Buckets::new();
        Classifier::new(Mode::AsymmetricLow, semantics).classify(&scores, &mut buckets);
        let mut sources = vec![99];
        buckets.sources(&scores, &mut sources);
        sources
    };
    assert_eq!(sources(Semantics::Reference), [2, 4, 3, 0]);
    assert_eq!(sources(Semantics::Descheduler), [2, 4, 0, 3], "both of the last are 81 %");
}

proptest! {
    /// A plain implementation of the descheduler's rules, with integers.
    #[test]
    fn descheduler_buckets_are_those_of_the_rules(
        scores in prop::collection::vec(prop_oneof![0.0..=1.0, (0_u8..=100).prop_map(|percent| f64::from(percent) / 100.0)], 1..400),
        mode in prop::sample::select(Mode::ALL.to_vec()),
    ) {
        let percent: Vec<i64> = scores.iter().map(|&score: &f64| (score * 100.0) as i64).collect();
        let average = percent.iter().sum::<i64>() as f64 / percent.len() as f64;
        let (below, above) = mode.percent();
        let low = (average - f64::from(below)).clamp(0.0, 100.0);
        let high = (average + f64::from(above)).clamp(0.0, 100.0);
        let bucket = |&percent: &i64| match percent as f64 {
            usage if usage <= low => Under,
            usage if usage > high => Over,
            _ => Appropriate,
        };
        let expected: Vec<Bucket> = percent.iter().map(bucket).collect();
        let found = classify(mode, Semantics::Descheduler, &scores);
        prop_assert_eq!(found.of(), &expected[..]);
        for bucket in Bucket::ALL {
            prop_assert_eq!(found.count(bucket), expected.iter().filter(|of| **of == bucket).count());
            prop_assert_eq!(found.nodes(bucket).count(), found.count(bucket));
        }
    }
}
