//! Scenarios on a running lab: its VMs, their load as time goes by, and what happens to its nodes.
//! [`Player`] plays a whole scenario. What is due at a step is computed by [`LoadSchedule`] and [`NodeSchedule`] without a
//! cluster.

mod dirty_rates;
mod load;
mod nodes;
mod pattern;
mod placement;
mod player;
mod sample;

pub use load::{LoadSchedule, set_utilization};
pub use nodes::{NodeAction, NodeSchedule};
pub use pattern::matches;
pub use placement::{NewVm, NodeSize, OpenNodes, Placement, node_sizes};
pub use player::{Ending, Player};

/// How many objects are written at the same time.
const CONCURRENCY: usize = 16;
