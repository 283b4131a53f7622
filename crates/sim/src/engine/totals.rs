//! The counters of a run.

use serde::Serialize;

use crate::history::Cause;

/// The counters of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    pub evictions: u64,
    pub drained: u64,
    pub restarted: u64,
    pub failed_migrations: u64,
    /// Bytes sent over the network, failed migrations included.
    pub bytes: f64,
    /// The part of them that evictions caused.
    pub evicted_bytes: f64,
    pub ping_pong: u64,
    pub blocked: Blocked,
}

impl Totals {
    pub(super) fn sent(&mut self, bytes: f64, cause: Cause) {
        self.bytes += bytes;
        if cause == Cause::Eviction {
            self.evicted_bytes += bytes;
        }
    }
}

/// Evictions that were wanted but not possible, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    pub not_migratable: u64,
    pub cooling_down: u64,
    pub no_room: u64,
    /// Over-utilized nodes that a guard held back.
    pub held_back: u64,
}
