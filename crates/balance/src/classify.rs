//! Which nodes are under-utilized, appropriately utilized and over-utilized, by their scores.
//!
//! The two semantics differ at the bounds. Output that shows buckets names the semantics.

use std::{fmt, str::FromStr};

use crate::{
    error::Unknown,
    evaluate::Scores,
    expression::TOLERANCE,
    mode::Mode,
    sum::{BLOCK, BlockSum},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Bucket {
    Under,
    #[default]
    Appropriate,
    Over,
}

impl Bucket {
    pub const ALL: [Bucket; 3] = [Bucket::Under, Bucket::Appropriate, Bucket::Over];

    pub const fn symbol(self) -> char {
        match self {
            Bucket::Under => '▼',
            Bucket::Appropriate => '■',
            Bucket::Over => '▲',
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Bucket::Under => "under-utilized",
            Bucket::Appropriate => "appropriately-utilized",
            Bucket::Over => "over-utilized",
        })
    }
}

/// Which program's comparisons are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Semantics {
    /// The reference simulator's: exact scores, bounds that may lie outside 0 to 1, under when `score <= lower`, over
    /// when `score >= upper`, under first. A score within [`TOLERANCE`] of a bound lies on it.
    Reference,
    /// The real descheduler's LowNodeUtilization: scores cut to whole percent, their mean, bounds clamped to 0 to 100,
    /// under when `percent <= lower`, over when `percent > upper`.
    #[default]
    Descheduler,
}

impl Semantics {
    pub const ALL: [Semantics; 2] = [Semantics::Reference, Semantics::Descheduler];

    pub const fn slug(self) -> &'static str {
        match self {
            Semantics::Reference => "reference",
            Semantics::Descheduler => "descheduler",
        }
    }
}

impl fmt::Display for Semantics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Semantics::Reference => "reference semantics (exact score, <= and >=)",
            Semantics::Descheduler => "descheduler semantics (whole percent, <= and >)",
        })
    }
}

impl FromStr for Semantics {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let found = Semantics::ALL.into_iter().find(|semantics| semantics.slug().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| Unknown::new("semantics", text, Semantics::ALL.map(Semantics::slug)))
    }
}

/// How scores become buckets: the thresholds and the way to compare with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Classifier {
    pub mode: Mode,
    pub semantics: Semantics,
}

impl fmt::Display for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.mode, self.semantics)
    }
}

/// The bucket of every node, with the average and the bounds that decided. These are on the scale of the scores (0 to
/// 1) in either semantics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buckets {
    classifier: Classifier,
    buckets: Vec<Bucket>,
    average: f64,
    bounds: (f64, f64),
    under: usize,
    over: usize,
}

impl Buckets {
    pub fn new() -> Self {
        Buckets::default()
    }

    /// By node.
    pub fn of(&self) -> &[Bucket] {
        &self.buckets
    }

    pub fn classifier(&self) -> Classifier {
        self.classifier
    }

    pub fn average(&self) -> f64 {
        self.average
    }

    pub fn lower(&self) -> f64 {
        self.bounds.0
    }

    pub fn upper(&self) -> f64 {
        self.bounds.1
    }

    pub fn count(&self, bucket: Bucket) -> usize {
        match bucket {
            Bucket::Under => self.under,
            Bucket::Over => self.over,
            Bucket::Appropriate => self.buckets.len() - self.under - self.over,
        }
    }

    pub fn nodes(&self, bucket: Bucket) -> impl Iterator<Item = usize> {
        self.buckets.iter().enumerate().filter(move |(_, of)| **of == bucket).map(|(node, _)| node)
    }

    /// Marks a node as cordoned, after the classification. The descheduler then counts an under-utilized node as
    /// appropriate; the reference does not know cordons.
    pub fn cordon(&mut self, node: usize) {
        if self.classifier.semantics == Semantics::Descheduler && self.buckets[node] == Bucket::Under {
            self.buckets[node] = Bucket::Appropriate;
            self.under -= 1;
        }
    }

    /// The over-utilized nodes by falling score. Nodes with equal scores stay in their order.
    pub fn sources(&self, scores: &Scores, into: &mut Vec<usize>) {
        into.clear();
        into.extend(self.nodes(Bucket::Over));
        let values = scores.values();
        match self.classifier.semantics {
            Semantics::Reference => into.sort_by(|&a, &b| values[b].total_cmp(&values[a])),
            Semantics::Descheduler => into.sort_by(|&a, &b| percent(values[b]).total_cmp(&percent(values[a]))),
        }
    }
}

impl Classifier {
    pub fn new(mode: Mode, semantics: Semantics) -> Self {
        Classifier { mode, semantics }
    }

    /// Puts every node into its bucket.
    pub fn classify(self, scores: &Scores, into: &mut Buckets) {
        let values = scores.values();
        into.classifier = self;
        into.buckets.resize(values.len(), Bucket::Appropriate);
        let (below, above) = self.mode.percent();
        match self.semantics {
            Semantics::Reference => {
                let average = scores.mean();
                let (lower, upper) = (average - f64::from(below) / 100.0, average + f64::from(above) / 100.0);
                (into.average, into.bounds) = (average, (lower, upper));
                // The average of equal scores may differ from them in its last bit.
                let (end_of_under, start_of_over) = (lower + TOLERANCE, upper - TOLERANCE);
                into.fill(values, |score| score < end_of_under, |score| score > start_of_over);
            }
            Semantics::Descheduler => {
                let average = average_percent(values);
                let lower = (average - f64::from(below)).clamp(0.0, 100.0);
                let upper = (average + f64::from(above)).clamp(0.0, 100.0);
                (into.average, into.bounds) = (average / 100.0, (lower / 100.0, upper / 100.0));
                // A percentage that is cut to at most the bound is below the next whole number.
                let (end_of_under, start_of_over) = (lower.floor() + 1.0, upper.floor() + 1.0);
                into.fill(values, |score| score * 100.0 < end_of_under, |score| score * 100.0 >= start_of_over);
            }
        }
    }
}

impl Buckets {
    /// A score that is both under and over counts as under.
    #[inline]
    fn fill(&mut self, values: &[f64], is_under: impl Fn(f64) -> bool, is_over: impl Fn(f64) -> bool) {
        for (bucket, &score) in self.buckets.iter_mut().zip(values) {
            let otherwise = if is_over(score) { Bucket::Over } else { Bucket::Appropriate };
            *bucket = if is_under(score) { Bucket::Under } else { otherwise };
        }
        (self.under, self.over) = (0, 0);
        // The counters are bytes, which a chunk cannot overflow, so that one vector instruction counts sixteen nodes.
        for chunk in self.buckets.chunks(128) {
            let count = |bucket| chunk.iter().map(|&of| u8::from(of == bucket)).sum::<u8>();
            self.under += usize::from(count(Bucket::Under));
            self.over += usize::from(count(Bucket::Over));
        }
    }
}

/// The whole percent of a score from 0 to 1, cut and not rounded, as the descheduler stores it (`int64(v*100)`).
#[inline]
pub(crate) fn percent(score: f64) -> f64 {
    // Adding 2^52 rounds to a whole number, and a value that was rounded up is corrected. Unlike a conversion to an
    // integer, this vectorizes.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let exact = score * 100.0;
    let rounded = (exact + WHOLE) - WHOLE;
    if rounded > exact { rounded - 1.0 } else { rounded }
}

/// The sum is exact, because all its terms are whole numbers.
fn average_percent(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let mut sum = BlockSum::default();
    let mut buffer = [0.0; BLOCK];
    for block in values.chunks(BLOCK) {
        let buffer = &mut buffer[..block.len()];
        for (to, &score) in buffer.iter_mut().zip(block) {
            *to = percent(score);
        }
        sum.add_block(buffer);
    }
    sum.total() / values.len() as f64
}
