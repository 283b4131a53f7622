//! `load-aware-rebalancing`: the descheduler moves virtual machines away from busy nodes, and nodes report pressure.

mod descheduler;
mod operator;
mod options;
mod profile;
mod psi;
#[cfg(test)]
mod tests;

pub use options::Options;
pub use profile::LoadAware;
