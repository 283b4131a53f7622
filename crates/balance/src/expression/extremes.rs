//! Operators for scores that compare nodes with the highest and the lowest of all, and decide by bounds.

use super::{Aggregates, Formula, Op, TOLERANCE};
use crate::signals::Signal;

#[derive(Debug, Clone, Copy)]
pub(crate) struct AboveLowest<const S: usize>;

impl<const S: usize> Op for AboveLowest<S> {
    const EXTREMES: bool = true;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        signals[S] - aggregates.lowest[S]
    }

    fn formula(self) -> Formula {
        Formula::AboveLowest(Signal::ALL[S])
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BelowHighest<const S: usize>;

impl<const S: usize> Op for BelowHighest<S> {
    const EXTREMES: bool = true;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        aggregates.highest[S] - signals[S]
    }

    fn formula(self) -> Formula {
        Formula::BelowHighest(Signal::ALL[S])
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Exceeds<T>(pub(super) T, pub(super) f64);

impl<T: Op> Op for Exceeds<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        exceeds(self.0.at(signals, aggregates), self.1)
    }

    fn formula(self) -> Formula {
        Formula::Exceeds(Box::new(self.0.formula()), self.1)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Within<T>(pub(super) T, pub(super) f64);

impl<T: Op> Op for Within<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        within(self.0.at(signals, aggregates), self.1)
    }

    fn formula(self) -> Formula {
        Formula::Within(Box::new(self.0.formula()), self.1)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Product<T, U>(pub(super) T, pub(super) U);

impl<T: Op, U: Op> Op for Product<T, U> {
    const CRITICAL: bool = T::CRITICAL || U::CRITICAL;
    const EXTREMES: bool = T::EXTREMES || U::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        self.0.at(signals, aggregates) * self.1.at(signals, aggregates)
    }

    fn formula(self) -> Formula {
        Formula::Product(Box::new(self.0.formula()), Box::new(self.1.formula()))
    }
}

/// A difference of round numbers may exceed a bound by a rounding error.
pub(crate) fn bound(given: f64) -> f64 {
    given + TOLERANCE
}

#[inline(always)]
pub(super) fn exceeds(value: f64, given: f64) -> f64 {
    if value > bound(given) { 1.0 } else { 0.0 }
}

#[inline(always)]
pub(super) fn within(value: f64, given: f64) -> f64 {
    if value <= bound(given) { 1.0 } else { 0.0 }
}
