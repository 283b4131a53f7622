//! The stand-in for the machine config operator.

mod drains;
mod fixtures;
mod pools;
mod recording;
mod restarts;
mod rollouts;
mod sample_cluster;
