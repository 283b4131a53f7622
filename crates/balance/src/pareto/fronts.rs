//! Non-dominated sorting of points with four coordinates by divide and conquer, after Jensen (2003) and the correction of Buzdalov and
//! Shalyto (2014): O(n log³ n). Points are distinct and in lexicographic order. A set of points is a range of `sets`; the recursion
//! appends parts of a set there and truncates afterwards, so that it does not allocate once the buffers have grown.

use std::ops::Range;

pub(super) const DIMENSIONS: usize = 4;
pub(super) type Point = [u32; DIMENSIONS];

/// Up to this many pairs it is faster to compare all of them.
const FEW_PAIRS: usize = 256;

type Set = Range<usize>;

/// The buffers of the sort.
#[derive(Debug, Clone, Default)]
pub(super) struct Sorter {
    fronts: Vec<u32>,
    sets: Vec<u32>,
    values: Vec<u32>,
    /// For the sweep: second coordinates with the fronts that they reach, both rising.
    stairs: Vec<(u32, u32)>,
}

impl Sorter {
    /// The front of each point.
    pub(super) fn sort(&mut self, points: &[Point]) -> &[u32] {
        debug_assert!(points.is_sorted_by(|a, b| a < b), "points are distinct and in lexicographic order");
        self.fronts.clear();
        self.fronts.resize(points.len(), 0);
        self.sets.clear();
        self.sets.extend(0..points.len() as u32);
        let all = 0..points.len();
        Run { sorter: self, points }.within(all, DIMENSIONS);
        &self.fronts
    }
}

struct Run<'a> {
    sorter: &'a mut Sorter,
    points: &'a [Point],
}

/// The parts of a set whose values are less than, equal to and greater than a pivot. They lie one after the other.
struct Parts {
    less: Set,
    equal: Set,
    greater: Set,
}

impl Run<'_> {
    /// Computes the fronts within a set by the first `dimensions` coordinates. In the others all points are equal.
    fn within(&mut self, set: Set, dimensions: usize) {
        if set.len() < 2 {
            return;
        }
        if set.len() * set.len() <= 2 * FEW_PAIRS {
            for at in set.start + 1..set.end {
                self.push_behind(set.start..at, at, dimensions);
            }
            return;
        }
        if dimensions == 2 {
            return self.sweep_within(set);
        }
        let last = dimensions - 1;
        let pivot = self.median(std::slice::from_ref(&set), last);
        let mark = self.sorter.sets.len();
        let Parts { less, equal, greater } = self.split(set, last, pivot);
        self.within(less.clone(), dimensions);
        self.across(less.clone(), equal.clone(), last);
        self.within(equal.clone(), last);
        if !greater.is_empty() {
            let lower = self.merge(less, equal);
            self.across(lower, greater.clone(), last);
            self.within(greater, dimensions);
        }
        self.sorter.sets.truncate(mark);
    }

    /// Moves points of `high` behind the points of `low` that dominate them by the first `dimensions` coordinates. In
    /// the others each point of `low` is at least as good. The fronts of `low` are final.
    fn across(&mut self, low: Set, high: Set, dimensions: usize) {
        if low.is_empty() || high.is_empty() {
            return;
        }
        if low.len() * high.len() <= FEW_PAIRS {
            for at in high {
                self.push_behind(low.clone(), at, dimensions);
            }
            return;
        }
        if dimensions == 2 {
            return self.sweep_across(low, high);
        }
        let last = dimensions - 1;
        let (low_least, low_most) = self.extent(low.clone(), last);
        let (high_least, high_most) = self.extent(high.clone(), last);
        if low_most <= high_least {
            return self.across(low, high, last);
        }
        if low_least > high_most {
            return;
        }
        let pivot = self.median(&[low.clone(), high.clone()], last);
        let mark = self.sorter.sets.len();
        let low = self.split(low, last, pivot);
        let high = self.split(high, last, pivot);
        self.across(low.less.clone(), high.less, dimensions);
        self.across(low.greater, high.greater.clone(), dimensions);
        let lower = self.merge(low.less, low.equal);
        // In this coordinate the points at the pivot and above it are no better than any of `lower`.
        let upper = self.merge(high.equal, high.greater);
        self.across(lower, upper, last);
        self.sorter.sets.truncate(mark);
    }

    fn point(&self, at: usize) -> (usize, Point) {
        let id = self.sorter.sets[at] as usize;
        (id, self.points[id])
    }

    /// Compares one point with all of `low`.
    fn push_behind(&mut self, low: Set, at: usize, dimensions: usize) {
        let (id, point) = self.point(at);
        let mut front = self.sorter.fronts[id];
        for &other in &self.sorter.sets[low] {
            let dominates = (0..dimensions).all(|d| self.points[other as usize][d] <= point[d]);
            if dominates {
                front = front.max(self.sorter.fronts[other as usize] + 1);
            }
        }
        self.sorter.fronts[id] = front;
    }

    /// Two coordinates are left. The points come in the order of the first, so the second decides.
    fn sweep_within(&mut self, set: Set) {
        self.sorter.stairs.clear();
        for at in set {
            let (id, point) = self.point(at);
            let front = self.sorter.fronts[id].max(self.reached(point[1]));
            self.sorter.fronts[id] = front;
            self.reach(point[1], front + 1);
        }
    }

    fn sweep_across(&mut self, low: Set, high: Set) {
        self.sorter.stairs.clear();
        let mut next = low.start;
        for at in high {
            let (id, point) = self.point(at);
            while next < low.end {
                let (other, coordinates) = self.point(next);
                if coordinates[0] > point[0] {
                    break;
                }
                self.reach(coordinates[1], self.sorter.fronts[other] + 1);
                next += 1;
            }
            self.sorter.fronts[id] = self.sorter.fronts[id].max(self.reached(point[1]));
        }
    }

    /// The front that a point with this second coordinate has at least.
    fn reached(&self, value: u32) -> u32 {
        let stairs = &self.sorter.stairs;
        let above = stairs.partition_point(|&(at, _)| at <= value);
        above.checked_sub(1).map_or(0, |last| stairs[last].1)
    }

    /// From this second coordinate on, points have at least this front.
    fn reach(&mut self, value: u32, front: u32) {
        let stairs = &mut self.sorter.stairs;
        let from = stairs.partition_point(|&(at, _)| at < value);
        if from > 0 && stairs[from - 1].1 >= front {
            return;
        }
        let covered = stairs[from..].partition_point(|&(_, reached)| reached <= front);
        match covered {
            0 if stairs.get(from).is_some_and(|&(at, _)| at == value) => {}
            0 => stairs.insert(from, (value, front)),
            _ => {
                stairs[from] = (value, front);
                stairs.drain(from + 1..from + covered);
            }
        }
    }

    fn extent(&self, set: Set, dimension: usize) -> (u32, u32) {
        self.sorter.sets[set]
            .iter()
            .map(|&id| self.points[id as usize][dimension])
            .fold((u32::MAX, 0), |(least, most), value| (least.min(value), most.max(value)))
    }

    fn median(&mut self, of: &[Set], dimension: usize) -> u32 {
        let Sorter { values, sets, .. } = &mut *self.sorter;
        values.clear();
        for set in of {
            values.extend(sets[set.clone()].iter().map(|&id| self.points[id as usize][dimension]));
        }
        let middle = values.len() / 2;
        *values.select_nth_unstable(middle).1
    }

    /// Appends the three parts of a set, each in order.
    fn split(&mut self, set: Set, dimension: usize, pivot: u32) -> Parts {
        let sets = &mut self.sorter.sets;
        let start = sets.len();
        // One more than needed: each point is written at the end, and the end advances only if the point belongs.
        sets.resize(start + set.len() + 1, 0);
        let mut end = start;
        let mut part = |belongs: fn(u32, u32) -> bool| {
            let begin = end;
            for at in set.clone() {
                let id = sets[at];
                sets[end] = id;
                end += usize::from(belongs(self.points[id as usize][dimension], pivot));
            }
            begin..end
        };
        let less = part(|value, pivot| value < pivot);
        let equal = part(|value, pivot| value == pivot);
        let greater = part(|value, pivot| value > pivot);
        Parts { less, equal, greater }
    }

    /// Appends the union of two sets, in order.
    fn merge(&mut self, a: Set, b: Set) -> Set {
        if a.is_empty() {
            return b;
        }
        if b.is_empty() {
            return a;
        }
        let sets = &mut self.sorter.sets;
        let start = sets.len();
        let (mut left, mut right) = (a.start, b.start);
        while left < a.end && right < b.end {
            let take_left = sets[left] < sets[right];
            sets.push(if take_left { sets[left] } else { sets[right] });
            left += usize::from(take_left);
            right += usize::from(!take_left);
        }
        sets.extend_from_within(left..a.end);
        sets.extend_from_within(right..b.end);
        start..sets.len()
    }
}
