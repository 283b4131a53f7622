//! `virt-higher-density`: more virtual machines per node, by swap, memory overcommitment and page merging.

mod density;
mod options;
mod profile;
mod swap;
#[cfg(test)]
mod tests;

pub use options::Options;
pub use profile::HigherDensity;
