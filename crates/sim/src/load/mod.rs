//! Load over time. The load of a VM is a function of the model, the seed and the step; only tasks for certain
//! nodes, and tasks with a condition, depend on the state of the cluster.

mod shape;
mod tasks;
mod timeline;

pub(crate) use shape::Shape;
pub(crate) use tasks::Tasks;
pub use timeline::LoadTimeline;
