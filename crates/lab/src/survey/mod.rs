//! A look at a running lab: its parts, its nodes, and what moved lately.
//!
//! What was read becomes a [`Survey`] by a function of values, and a survey becomes text by another.

mod assemble;
mod read;
mod text;

use jiff::Timestamp;
use serde::Serialize;
use sim::Spread;

use crate::up::Migration;

pub use read::{Sources, take};
pub use text::text;

/// A lab at a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Survey {
    pub lab: String,
    pub taken: Timestamp,
    pub time_scale: f64,
    pub parts: Vec<PartState>,
    pub nodes: Vec<NodeState>,
    /// How the descheduler tells nodes apart; none before one ran.
    pub scoring: Option<Scoring>,
    /// Of CPU use, over the nodes that take VMs.
    pub spread: Option<Spread>,
    pub vms: Vms,
    /// The latest first.
    pub migrations: Vec<Migration>,
    /// How many there were in all, as far as the lab remembers.
    pub migration_count: usize,
    /// What could not be found out.
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

/// A node; signals and scores are shares from 0 to 1, and none while Prometheus does not know them.
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
    /// Without what all their names begin with.
    pub soft_taints: Vec<String>,
}

/// By which query and which thresholds nodes are told apart. Thresholds are in percent, around the average if they are deviations.
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
