//! Sums that have the same bits on any machine, in whatever order values changed. The shape of the sum is fixed by position alone:
//! eight lanes within a block of 256 values, the lanes in one order, then the blocks in the same way. The lanes let the compiler use
//! vector instructions, and the blocks let a changed value cost one block instead of a whole column.

pub(crate) const BLOCK: usize = 256;
const LANES: usize = 8;

/// The sum of up to a block of values, or of the block sums.
#[inline]
fn lanes(values: &[f64]) -> f64 {
    let mut lane = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lane.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    for (lane, value) in lane.iter_mut().zip(rest) {
        *lane += value;
    }
    let half = |at: usize| (lane[at] + lane[at + 4]) + (lane[at + 2] + lane[at + 6]);
    half(0) + half(1)
}

/// The sum of a column, block by block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockSum {
    blocks: Vec<f64>,
}

impl BlockSum {
    pub fn of(column: &[f64]) -> Self {
        let mut sum = BlockSum::default();
        sum.reset(column);
        sum
    }

    /// Computes the sum of the whole column.
    pub fn reset(&mut self, column: &[f64]) {
        self.begin();
        column.chunks(BLOCK).for_each(|block| self.add_block(block));
    }

    /// Updates the sum after `column[at]` changed. The column must have the same length as before.
    pub fn update(&mut self, column: &[f64], at: usize) {
        let block = at / BLOCK;
        let start = block * BLOCK;
        self.blocks[block] = lanes(&column[start..column.len().min(start + BLOCK)]);
    }

    pub fn total(&self) -> f64 {
        lanes(&self.blocks)
    }

    /// Starts a sum of a column that is produced block by block; `add_block` adds each full block and the rest.
    pub(crate) fn begin(&mut self) {
        self.blocks.clear();
    }

    pub(crate) fn add_block(&mut self, block: &[f64]) {
        self.blocks.push(lanes(block));
    }
}
