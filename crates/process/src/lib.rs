//! What our programs do alike as processes: logging, shutdown, telling processes apart, choosing a cluster.

pub mod cluster;
mod identity;
pub mod logging;
mod memory;
mod shutdown;
mod stat;
mod usage;

pub use identity::{ProcessIdentity, is_alive};
pub use memory::Memory;
pub use shutdown::Shutdown;
pub use usage::Usage;
