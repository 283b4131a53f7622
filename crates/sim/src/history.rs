//! The history of a run: the moves of VMs and a few measures per step. Its size does not depend on the cluster's.
//!
//! The model, the seed and the moves give every state of the run again: see [`crate::Run::replay`].

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::measure::Sample;

/// Why a VM moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// It was evicted to balance load.
    Eviction,
    /// Its node was drained.
    Drain,
    /// It was started again, after its node failed.
    Restart,
    /// Its node failed.
    Failure,
}

/// A VM that changed its node; [`Move::NOWHERE`] stands for no node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub step: u32,
    pub vm: u32,
    pub from: u32,
    pub to: u32,
    pub cause: Cause,
}

impl Move {
    pub const NOWHERE: u32 = u32::MAX;
}

/// The moves of a run and the measures of its steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub(crate) moves: Vec<Move>,
    pub(crate) samples: Vec<Sample>,
}

impl History {
    /// In order of time.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// One sample for each step, taken before its evictions, and one of the end.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The size of the history in bytes, without spare capacity.
    pub fn bytes(&self) -> usize {
        std::mem::size_of_val(self.moves.as_slice()) + std::mem::size_of_val(self.samples.as_slice())
    }

    /// A digest of every bit of the history. Equal runs have equal digests on any machine.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for moved in &self.moves {
            for number in [moved.step, moved.vm, moved.from, moved.to, moved.cause as u32] {
                hash.update(number.to_le_bytes());
            }
        }
        for sample in &self.samples {
            for number in sample.numbers() {
                hash.update(number.to_bits().to_le_bytes());
            }
        }
        HEXLOWER.encode(&hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded step takes a sample, and a move for each VM that moved.
    #[test]
    fn a_recorded_step_takes_what_is_documented() {
        assert_eq!((size_of::<Move>(), size_of::<Sample>()), (20, 176));
    }
}
