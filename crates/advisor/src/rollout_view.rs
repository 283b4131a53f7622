//! How far a rollout is, as the night shift wants to see it: the configuration, its pools, the nodes with the worst first, and the
//! virtual machines that still hold a node.
//! Pure functions of the objects that the caller may read. What could not be read is said, and nothing is assumed in its place.

mod changes;
mod config;
mod eta;
mod guests;
mod node_phase;
mod pool;
mod report;

pub use changes::changes;
pub use config::{Approved, Cluster, ConfigStatus, Health, Notice, is_rolling_out};
pub use guests::{Guest, GuestState, Move, guests};
pub use node_phase::{NodePhase, NodeProgress};
pub use pool::PoolProgress;
pub use report::NodeReport;
