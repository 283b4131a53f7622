//! The guides, walked through on a real API server with the real operator: every command as printed, every object that they print
//! compared with the one in the cluster. What differs on purpose is listed with its reason, in [`differences`] for the workflow guide
//! and in the tables of [`load_aware`] and [`density`] for the guides of the two profiles.

mod appendix;
mod checklist;
mod compare;
mod density;
mod differences;
pub(crate) mod document;
mod errors;
mod journeys;
mod kind;
mod load_aware;
mod monitoring;
pub(crate) mod nodes;
mod openshift;
pub(crate) mod recorder;
pub(crate) mod terminal;
pub(crate) mod test_cluster;
mod workflow;
