//! The 20 algorithms: golden vectors, names, parameters, and properties of every cluster. That scores have the same
//! bits everywhere is tested in `sim`.

use balance::{Algorithm, Means, ParameterError, Scores, Signals};
use proptest::prelude::*;

use crate::clusters::{clusters, golden, random_cluster};

fn scores(algorithm: &Algorithm, signals: &Signals) -> Vec<f64> {
    let mut scores = Scores::new();
    algorithm.score(signals, &mut scores);
    scores.values().to_vec()
}

/// Name, slug, and the scores of n1, n2, n3 = n6, n4 and n5.
#[rustfmt::skip]
const GOLDEN: [(&str, &str, [f64; 5]); 20] = [
    ("Weighted Average", "weighted_average", [0.412500, 0.425000, 0.267500, 0.133750, 0.201750]),
    ("Max Metric", "max_metric", [0.920000, 0.800000, 0.500000, 0.300000, 0.700000]),
    ("Euclidean Distance", "euclidean_distance", [0.523760, 0.551135, 0.354419, 0.180719, 0.353571]),
    ("Pressure Focused", "pressure_focused", [0.330000, 0.308333, 0.190000, 0.095000, 0.135667]),
    ("Weighted RMS Positive Deviation", "weighted_rms_positive_deviation", [0.212249, 0.147706, 0.001936, 0.0, 0.064550]),
    ("Weighted Mean Square Positive Deviation", "weighted_mean_square_positive_deviation", [0.045050, 0.021817, 0.000004, 0.0, 0.004167]),
    ("Linear Weighted Positive Deviation", "linear_weighted_positive_deviation", [0.143025, 0.100358, 0.000750, 0.0, 0.025000]),
    ("Pareto Front (NSGA-II)", "pareto_front", [0.5, 1.0, 0.5, 0.0, 0.0]),
    ("Centroid Distance", "centroid_distance", [1.0, 0.750515, 0.102456, 0.762640, 0.871252]),
    ("Directional Centroid Distance", "directional_centroid_distance", [1.0, 0.777291, 0.010382, 0.0, 0.346077]),
    ("Variance Minimization", "variance_minimization", [1.0, 0.694478, 0.116795, 0.703578, 0.805495]),
    ("Directional Variance Minimization", "directional_variance_minimization", [1.0, 0.738041, 0.005695, 0.0, 0.189825]),
    ("Critical Dimension Focus", "critical_dimension_focus", [1.0, 0.600000, 0.011765, 0.0, 0.0]),
    ("Ideal Point Positive Distance", "ideal_point_positive_distance", [0.481588, 0.374334, 0.005, 0.0, 0.166667]),
    ("Linear Amplified Ideal Point Positive Distance (k=1.0)", "linear_amplified_ideal_point_positive_distance:k1", [0.481588, 0.374334, 0.005, 0.0, 0.166667]),
    ("Linear Amplified Ideal Point Positive Distance (k=3.0)", "linear_amplified_ideal_point_positive_distance:k3", [1.0, 1.0, 0.015, 0.0, 0.5]),
    ("Linear Amplified Ideal Point Positive Distance (k=5.0)", "linear_amplified_ideal_point_positive_distance:k5", [1.0, 1.0, 0.025, 0.0, 0.833333]),
    ("CPU Focused", "cpu_focused", [0.734, 0.54, 0.3605, 0.1442, 0.0721]),
    ("MEMORY Focused", "memory_focused", [0.289, 0.59, 0.3605, 0.2163, 0.49]),
    ("Hottest To Coldest", "hottest_to_coldest", [1.0, 0.5, 0.5, 0.5, 0.0]),
];

#[test]
fn golden_vectors_hold() {
    for (algorithm, (name, slug, [n1, n2, n3, n4, n5])) in Algorithm::all().iter().zip(GOLDEN) {
        assert_eq!(algorithm.name(), name);
        assert_eq!(algorithm.slug(), slug);
        for (got, expected) in scores(algorithm, &golden()).into_iter().zip([n1, n2, n3, n4, n5, n3]) {
            assert!((got - expected).abs() < 1e-6, "{name}: {got} instead of {expected}");
        }
    }
}

#[test]
fn algorithms_are_found_by_name_and_slug_and_parameter() {
    for algorithm in Algorithm::all() {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        assert_eq!(algorithm.slug().parse(), Ok(algorithm));
        assert_eq!(algorithm.slug().replace('_', "-").to_uppercase().parse(), Ok(algorithm));
    }
    assert_eq!("k3".parse(), Ok(Algorithm::amplified(3.0)));
    assert_eq!("k2.5".parse(), Ok(Algorithm::amplified(2.5)));
    let odd = Algorithm::amplified(2.5);
    assert_eq!(odd.slug(), "linear_amplified_ideal_point_positive_distance:k2_5");
    assert_eq!(odd.slug().parse(), Ok(odd));
    assert_eq!(odd.name().parse(), Ok(odd));
    assert_eq!("Pareto Front".parse(), Ok(Algorithm::ParetoFront));
}

#[test]
fn a_wrong_name_is_answered_with_the_closest_and_all_others() {
    let error = "max metrics".parse::<Algorithm>().unwrap_err();
    assert_eq!(error.closest.as_deref(), Some("max_metric"));
    assert_eq!(error.known.len(), 20);
    let text = error.to_string();
    assert!(
        text.starts_with(r#"there is no algorithm "max metrics" (did you mean "max_metric"?); there are: weig"#),
        "{text}"
    );
    for wrong in ["", "k", "k0", "k-1", "kinf", "kNaN", "pareto k3", "💥"] {
        assert!(wrong.parse::<Algorithm>().is_err(), "{wrong:?}");
    }
}

#[test]
fn parameters_are_settable_and_checked() {
    let algorithm: Algorithm = "weighted average".parse().unwrap();
    let changed = algorithm.with("cpu_weight", 0.5).unwrap();
    let first = scores(&changed, &golden())[0];
    assert!((first - (0.4125 + 0.25 * 0.92)).abs() < 1e-12, "{first}");
    assert_eq!(changed.parameters()[0], ("cpu_weight", 0.5));
    assert!(matches!(algorithm.with("k", 1.0), Err(ParameterError::Unknown { .. })));
    assert!(matches!(Algorithm::MaxMetric.with("k", 1.0), Err(ParameterError::Unknown { .. })));
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(algorithm.with("cpu_weight", value), Err(ParameterError::Value { .. })), "{value}");
    }
    assert!(Algorithm::amplified(3.0).with("sensitivity", 0.0).is_err());
    // A weighted mean needs a weight.
    let mut rms: Algorithm = "weighted rms positive deviation".parse().unwrap();
    for (name, _) in rms.parameters().into_iter().skip(1) {
        rms = rms.with(name, 0.0).unwrap();
    }
    assert!(rms.with("cpu_usage_weight", 0.0).is_err());
}

#[test]
fn the_19_of_the_reference_come_first() {
    assert_eq!(Algorithm::all()[..19], Algorithm::of_the_reference());
}

/// Between the extremes nodes count as neither, and rounding errors do not open a gap.
#[test]
fn hottest_to_coldest_is_0_everywhere_once_the_gap_is_closed() {
    let algorithm = Algorithm::HottestToColdest { gap: 0.1, width: 0.02 };
    let of = |uses: &[f64]| {
        let signals: Signals = uses.iter().map(|usage| [*usage, 0.0, 0.5, 0.0]).collect();
        scores(&algorithm, &signals)
    };
    assert_eq!(of(&[0.6, 0.58, 0.57, 0.43, 0.42, 0.4]), [1.0, 1.0, 0.5, 0.5, 0.0, 0.0]);
    assert_eq!(of(&[0.7, 0.7, 0.7, 0.1]), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(of(&[0.6, 0.5, 0.55]), [0.0; 3]);
    assert_eq!(of(&[0.4, 0.3]), [0.0; 2], "the difference is 0.10000000000000003");
    assert_eq!(of(&[0.601, 0.5]), [1.0, 0.0]);
}

/// Parameters of any size, which may drive scores out of their range.
fn with_parameters() -> impl Strategy<Value = Algorithm> {
    (prop::sample::select(Algorithm::all().to_vec()), prop::collection::vec(0.0..10.0, 4)).prop_map(
        |(algorithm, values)| {
            let names = algorithm.parameters();
            names
                .iter()
                .zip(values)
                .fold(algorithm, |algorithm, ((name, _), value)| algorithm.with(name, value).unwrap_or(algorithm))
        },
    )
}

proptest! {
    #[test]
    fn every_score_is_from_0_to_1(signals in clusters(1..80), odd in with_parameters()) {
        for algorithm in Algorithm::all().into_iter().chain([odd]) {
            for score in scores(&algorithm, &signals) {
                prop_assert!((0.0..=1.0).contains(&score), "{algorithm} gives {score}");
            }
        }
    }

    #[test]
    fn the_explanation_ends_in_the_score_to_the_bit(signals in clusters(1..40), odd in with_parameters(), at: prop::sample::Index) {
        let node = at.index(signals.len());
        for algorithm in Algorithm::all().into_iter().chain([odd]) {
            let term = algorithm.explain(&signals, node);
            prop_assert_eq!(term.value.to_bits(), scores(&algorithm, &signals)[node].to_bits(), "{}\n{}", algorithm, term);
            prop_assert!(!term.parts.is_empty());
        }
    }

    #[test]
    fn means_kept_up_to_date_are_those_taken_anew(mut signals in clusters(600), changes in prop::collection::vec((0_usize..600, [0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0]), 1..20)) {
        let mut means = Means::of(&signals);
        for (node, values) in changes {
            signals.set(node, values);
            means.update(&signals, node);
        }
        prop_assert_eq!(&means, &Means::of(&signals));
        let (mut kept, mut anew) = (Scores::new(), Scores::new());
        Algorithm::default().score_with(&signals, &means, &mut kept);
        Algorithm::default().score(&signals, &mut anew);
        prop_assert_eq!(kept.values(), anew.values());
        prop_assert_eq!(kept.mean().to_bits(), anew.mean().to_bits());
    }

    #[test]
    fn nodes_that_are_all_equal_do_not_deviate(node in [0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0], count in 1_usize..500) {
        let signals: Signals = std::iter::repeat_n(node, count).collect();
        for algorithm in Algorithm::all().into_iter().filter(|it| it.is_relative() && *it != Algorithm::ParetoFront) {
            prop_assert!(scores(&algorithm, &signals).iter().all(|&score| score == 0.0), "{algorithm}");
        }
    }
}

#[test]
fn buffers_of_another_cluster_leave_no_trace() {
    let mut rng = fastrand::Rng::with_seed(3);
    let (big, small) = (random_cluster(&mut rng, 1000), random_cluster(&mut rng, 10));
    for algorithm in Algorithm::all() {
        let mut used = Scores::new();
        algorithm.score(&big, &mut used);
        algorithm.score(&small, &mut used);
        assert_eq!(used.values(), scores(&algorithm, &small), "{algorithm}");
        algorithm.score(&Signals::new(), &mut used);
        assert!(used.values().is_empty());
        assert_eq!(used.mean(), 0.0);
    }
}
