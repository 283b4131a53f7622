//! The state of a running lab: its parts, its nodes, and the last migrations.
//!
//! `read` collects, `assemble` makes a [`Survey`] of it, and `text` formats the survey. The last two are pure functions.

mod assemble;
mod read;
mod text;

use jiff::Timestamp;
use serde::Serialize;
use sim::Spread;

use crate::up::JournalEntry;

pub use read::{Sources, take};
pub use text::text;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Survey {
    pub lab: String,
    pub taken: Timestamp,
    pub time_scale: f64,
    pub parts: Vec<PartState>,
    pub nodes: Vec<NodeState>,
    /// How the descheduler classifies nodes. None before the first one has started.
    pub scoring: Option<Scoring>,
    /// The spread of CPU use over the nodes that take VMs.
    pub spread: Option<Spread>,
    pub vms: Vms,
    /// The latest first.
    pub migrations: Vec<JournalEntry>,
    /// How many there are in the journal.
    pub migration_count: usize,
    /// What could not be read.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartState {
    pub name: String,
    pub ready: bool,
    /// `ready`, or what is wrong.
    pub state: String,
    pub place: String,
}

/// Signals and scores are shares from 0 to 1. None if Prometheus has no value.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    pub name: String,
    pub takes_vms: bool,
    pub cpu_use: Option<f64>,
    pub cpu_pressure: Option<f64>,
    pub memory_use: Option<f64>,
    pub memory_pressure: Option<f64>,
    pub score: Option<f64>,
    /// `under-utilized`, `appropriately-utilized` or `over-utilized`.
    pub bucket: Option<String>,
    pub vms: u32,
    /// Without the common prefix of their keys.
    pub soft_taints: Vec<String>,
}

/// The query and the thresholds that classify nodes. Thresholds are in percent, around the average if they are deviations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scoring {
    pub query: String,
    pub under: u8,
    pub over: u8,
    pub deviation: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Vms {
    pub all: u32,
    pub running: u32,
    pub migrating: u32,
}
