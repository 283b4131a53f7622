//! A scenario from measurements: samples of nodes and VMs become curves, and the curves a file. Who measured is not known here.
//!
//! VMs are written as they come, so that only the sums of nodes are kept in memory.

mod anonymize;
mod cluster;
mod grid;
mod node_use;
mod recording;
mod summary;
mod write;

pub use anonymize::{Names, anonymize};
pub use cluster::{Import, ImportedVm, Settings};
pub use grid::{Grid, Order};
pub use recording::Recording;
pub use summary::Summary;
