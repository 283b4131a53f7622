//! Means, their confidence intervals, and whether two means differ.

use serde::Serialize;

/// The mean, and 0 without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A mean over seeds with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub mean: f64,
    /// Half the width of the interval; 0 for a single value.
    pub margin: f64,
    /// The number of values.
    pub count: usize,
}

impl Estimate {
    /// The mean with Student's interval at a level such as 0.95.
    pub fn of(values: &[f64], level: f64) -> Self {
        let count = values.len();
        if count == 0 {
            return Self { mean: 0.0, margin: 0.0, count };
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        if count == 1 {
            return Self { mean, margin: 0.0, count };
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        Self { mean, margin: t_quantile(0.5 + level / 2.0, (count - 1) as f64) * error, count }
    }
}

/// Whether the means of two samples differ: the interval of their pairwise differences does not contain 0. Both samples
/// come from the same seeds, so a paired test is stronger than two intervals.
pub fn differ(one: &[f64], other: &[f64], level: f64) -> bool {
    let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    if differences.len() < 2 {
        return false;
    }
    let Estimate { mean, margin, .. } = Estimate::of(&differences, level);
    // Equal differences have no margin, so a difference within rounding errors is ignored.
    let magnitude = if mean < 0.0 { -mean } else { mean };
    magnitude > margin && magnitude > 1e-12
}

/// The value below which Student's t with `freedom` degrees of freedom lies with probability `p` (0.5 to 1): Hill's
/// approximation (1970), good to five digits, and exact for one and two degrees.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    let tails = 2.0 * (1.0 - p);
    if freedom <= 1.0 {
        let angle = tails * std::f64::consts::FRAC_PI_2;
        return libm::cos(angle) / libm::sin(angle);
    }
    if freedom <= 2.0 {
        return (2.0 / (tails * (2.0 - tails)) - 2.0).sqrt();
    }
    let a = 1.0 / (freedom - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * std::f64::consts::FRAC_PI_2).sqrt() * freedom;
    let mut y = libm::pow(d * tails, 2.0 / freedom);
    if y > 0.05 + a {
        let x = normal_quantile(tails / 2.0);
        y = x * x;
        if freedom < 5.0 {
            c += 0.3 * (freedom - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = a * y * y;
        y = libm::expm1(y);
    } else {
        y = ((1.0 / (((freedom + 6.0) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2.0) * 3.0)
            + 0.5 / (freedom + 4.0))
            * y
            - 1.0)
            * (freedom + 1.0)
            / (freedom + 2.0)
            + 1.0 / y;
    }
    (freedom * y).sqrt()
}

/// The value below which a standard normal variable lies with probability `p` (0 to 1): Acklam's rational
/// approximation, good to nine digits.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    let polynomial = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, next| sum * x + next);
    let tail = |q: f64| polynomial(&C, q) / (polynomial(&D, q) * q + 1.0);
    if p < 0.02425 {
        tail((-2.0 * libm::log(p)).sqrt())
    } else if p > 1.0 - 0.02425 {
        -tail((-2.0 * libm::log(1.0 - p)).sqrt())
    } else {
        let q = p - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from published tables.
    #[test]
    fn quantiles_of_students_t_are_those_of_the_tables() {
        for (p, freedom, expected) in [
            (0.975, 1.0, 12.7062),
            (0.975, 2.0, 4.30265),
            (0.975, 3.0, 3.18245),
            (0.975, 4.0, 2.77645),
            (0.975, 9.0, 2.26216),
            (0.975, 19.0, 2.09302),
            (0.975, 99.0, 1.98422),
            (0.995, 9.0, 3.24984),
            (0.9995, 19.0, 3.88341),
            (0.975, 1e6, 1.95996),
        ] {
            let found = t_quantile(p, freedom);
            assert!((found - expected).abs() < 2e-4, "{p} {freedom}: {found} instead of {expected}");
        }
    }

    #[test]
    fn an_interval_is_that_of_the_textbook() {
        let estimate = Estimate::of(&[4.0, 5.0, 6.0, 7.0, 8.0], 0.95);
        assert!((estimate.mean - 6.0).abs() < 1e-12);
        assert!((estimate.margin - 1.96324).abs() < 1e-4, "{estimate:?}");
        assert_eq!(Estimate::of(&[3.0], 0.95), Estimate { mean: 3.0, margin: 0.0, count: 1 });
        assert_eq!(Estimate::of(&[], 0.95).count, 0);
    }

    #[test]
    fn a_small_but_steady_difference_is_told_and_a_large_unsteady_one_is_not() {
        let base = [10.0, 50.0, 20.0, 90.0, 40.0, 70.0];
        let steady = base.map(|value| value + 1.0);
        let unsteady = [60.0, 10.0, 80.0, 30.0, 90.0, 20.0];
        assert!(differ(&base, &steady, 0.95));
        assert!(!differ(&base, &unsteady, 0.95));
        assert!(!differ(&base, &base, 0.95), "what is equal does not differ");
        assert!(!differ(&[1.0], &[2.0], 0.95), "a single seed tells nothing");
    }
}
