//! The language of the definitions: combinators whose types are the expression.
//! One definition has two uses. As a Rust value it is compiled into a single loop over the columns; [`Op::formula`]
//! turns the same value into a [`Formula`], from which the PromQL, the documentation and the explanations are made.

mod extremes;
mod formula;

use std::ops::Add;

pub use formula::Formula;

pub(crate) use extremes::{AboveLowest, BelowHighest, Exceeds, Product, Within, bound};

use crate::signals::Signal;

/// A smaller difference from the mean counts as 0. Means have rounding errors, and algorithms that divide by the
/// greatest deviation would turn these into 1 when all nodes are equal.
pub const TOLERANCE: f64 = 1e-9;

/// The values of the whole cluster that an expression may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Aggregates {
    pub(crate) means: [f64; 4],
    /// The signal whose positive deviation is greatest on average.
    pub(crate) critical: Signal,
    /// By signal: the lowest and the highest value of any node.
    pub(crate) lowest: [f64; 4],
    pub(crate) highest: [f64; 4],
}

/// A value of each node, computed from its four signals and the cluster's aggregates.
pub(crate) trait Op: Copy {
    /// Whether the expression uses [`Aggregates::critical`], which takes a separate pass over the nodes.
    const CRITICAL: bool = false;
    /// Whether the expression uses the lowest and the highest values, which takes a pass over the nodes as well.
    const EXTREMES: bool = false;

    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64;

    fn formula(self) -> Formula;
}

/// An expression with the operators that combine it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expr<T>(T);

macro_rules! leaves {
    ($($name:ident = $signal:ident),*) => { $(
        pub(crate) const $name: Expr<Raw<{ Signal::$signal.index() }>> = Expr(Raw);
    )* };
}
leaves!(CPU_USAGE = CpuUsage, CPU_PRESSURE = CpuPressure, MEMORY_USAGE = MemoryUsage, MEMORY_PRESSURE = MemoryPressure);

/// The positive deviation of the dimension in which it is greatest on average; the first of equals.
pub(crate) const CRITICAL: Expr<Critical> = Expr(Critical);

impl<const S: usize> Expr<Raw<S>> {
    /// The difference from the cluster's mean.
    pub(crate) fn deviation(self) -> Expr<Deviation<S>> {
        Expr(Deviation)
    }

    /// The difference above the cluster's mean, 0 below it.
    pub(crate) fn excess(self) -> Expr<Excess<S>> {
        Expr(Excess)
    }

    /// The difference from the lowest value of any node.
    pub(crate) fn above_lowest(self) -> Expr<AboveLowest<S>> {
        Expr(AboveLowest)
    }

    /// The difference from the highest value of any node.
    pub(crate) fn below_highest(self) -> Expr<BelowHighest<S>> {
        Expr(BelowHighest)
    }
}

impl<T: Op> Expr<T> {
    pub(crate) fn squared(self) -> Expr<Square<T>> {
        Expr(Square(self.0))
    }

    pub(crate) fn root(self) -> Expr<Root<T>> {
        Expr(Root(self.0))
    }

    pub(crate) fn times(self, factor: f64) -> Expr<Times<T>> {
        Expr(Times(self.0, factor))
    }

    pub(crate) fn over(self, divisor: f64) -> Expr<Over<T>> {
        Expr(Over(self.0, divisor))
    }

    pub(crate) fn at_most_one(self) -> Expr<AtMostOne<T>> {
        Expr(AtMostOne(self.0))
    }

    /// 1 where the value is greater than the bound, otherwise 0.
    pub(crate) fn exceeds(self, bound: f64) -> Expr<Exceeds<T>> {
        Expr(Exceeds(self.0, bound))
    }

    /// 1 where the value is at most the bound, otherwise 0.
    pub(crate) fn within(self, bound: f64) -> Expr<Within<T>> {
        Expr(Within(self.0, bound))
    }

    /// The product, of factors that are not negative.
    pub(crate) fn and<U: Op>(self, other: Expr<U>) -> Expr<Product<T, U>> {
        Expr(Product(self.0, other.0))
    }

    pub(crate) fn or_greater<U: Op>(self, other: Expr<U>) -> Expr<Greater<T, U>> {
        Expr(Greater(self.0, other.0))
    }
}

impl<T: Op> Op for Expr<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        self.0.at(signals, aggregates)
    }

    fn formula(self) -> Formula {
        self.0.formula()
    }
}

impl<T: Op, U: Op> Add<Expr<U>> for Expr<T> {
    type Output = Expr<Plus<T, U>>;

    fn add(self, other: Expr<U>) -> Self::Output {
        Expr(Plus(self.0, other.0))
    }
}

#[inline(always)]
pub(crate) fn deviation(value: f64, mean: f64) -> f64 {
    let difference = value - mean;
    if difference.abs() >= TOLERANCE { difference } else { 0.0 }
}

#[inline(always)]
pub(crate) fn excess(value: f64, mean: f64) -> f64 {
    let difference = value - mean;
    if difference >= TOLERANCE { difference } else { 0.0 }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<const S: usize>;

impl<const S: usize> Op for Raw<S> {
    #[inline(always)]
    fn at(self, signals: &[f64; 4], _: &Aggregates) -> f64 {
        signals[S]
    }

    fn formula(self) -> Formula {
        Formula::Signal(Signal::ALL[S])
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviation<const S: usize>;

impl<const S: usize> Op for Deviation<S> {
    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        deviation(signals[S], aggregates.means[S])
    }

    fn formula(self) -> Formula {
        Formula::Deviation(Signal::ALL[S])
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Excess<const S: usize>;

impl<const S: usize> Op for Excess<S> {
    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        excess(signals[S], aggregates.means[S])
    }

    fn formula(self) -> Formula {
        Formula::Excess(Signal::ALL[S])
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Critical;

impl Op for Critical {
    const CRITICAL: bool = true;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        let at = aggregates.critical.index();
        excess(signals[at], aggregates.means[at])
    }

    fn formula(self) -> Formula {
        Formula::Critical
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Square<T>(T);

impl<T: Op> Op for Square<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        let value = self.0.at(signals, aggregates);
        value * value
    }

    fn formula(self) -> Formula {
        Formula::Square(Box::new(self.0.formula()))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Root<T>(T);

impl<T: Op> Op for Root<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        self.0.at(signals, aggregates).sqrt()
    }

    fn formula(self) -> Formula {
        Formula::Root(Box::new(self.0.formula()))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Times<T>(T, f64);

impl<T: Op> Op for Times<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        self.1 * self.0.at(signals, aggregates)
    }

    fn formula(self) -> Formula {
        Formula::Times(self.1, Box::new(self.0.formula()))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Over<T>(T, f64);

impl<T: Op> Op for Over<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        self.0.at(signals, aggregates) / self.1
    }

    fn formula(self) -> Formula {
        Formula::Over(Box::new(self.0.formula()), self.1)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AtMostOne<T>(T);

impl<T: Op> Op for AtMostOne<T> {
    const CRITICAL: bool = T::CRITICAL;
    const EXTREMES: bool = T::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        let value = self.0.at(signals, aggregates);
        if value < 1.0 { value } else { 1.0 }
    }

    fn formula(self) -> Formula {
        Formula::AtMostOne(Box::new(self.0.formula()))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plus<T, U>(T, U);

impl<T: Op, U: Op> Op for Plus<T, U> {
    const CRITICAL: bool = T::CRITICAL || U::CRITICAL;
    const EXTREMES: bool = T::EXTREMES || U::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        self.0.at(signals, aggregates) + self.1.at(signals, aggregates)
    }

    /// Addition is left-associative: `a + b + c` becomes one sum of three terms in the order of computation.
    fn formula(self) -> Formula {
        Formula::Sum(match (self.0.formula(), self.1.formula()) {
            (Formula::Sum(mut terms), last) => {
                terms.push(last);
                terms
            }
            (first, second) => vec![first, second],
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Greater<T, U>(T, U);

impl<T: Op, U: Op> Op for Greater<T, U> {
    const CRITICAL: bool = T::CRITICAL || U::CRITICAL;
    const EXTREMES: bool = T::EXTREMES || U::EXTREMES;

    #[inline(always)]
    fn at(self, signals: &[f64; 4], aggregates: &Aggregates) -> f64 {
        let (left, right) = (self.0.at(signals, aggregates), self.1.at(signals, aggregates));
        if left > right { left } else { right }
    }

    fn formula(self) -> Formula {
        Formula::Greatest(match (self.0.formula(), self.1.formula()) {
            (Formula::Greatest(mut terms), last) => {
                terms.push(last);
                terms
            }
            (first, second) => vec![first, second],
        })
    }
}
