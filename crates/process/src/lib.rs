//! What our programs do alike as processes: logging, shutdown, telling processes apart, choosing a cluster.

pub mod cluster;
mod identity;
pub mod logging;
mod shutdown;
mod usage;

pub use identity::{ProcessIdentity, is_alive};
pub use shutdown::Shutdown;
pub use usage::Usage;
