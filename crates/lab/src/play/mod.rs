//! A scenario on a running lab, beyond its load: at what rate its VMs write to their memory, and what becomes of nodes.

mod dirty_rates;
mod nodes;

pub use dirty_rates::set_dirty_rates;
pub use nodes::{Deed, Nodes};

use crate::up::Error;

/// Says what was being done.
fn doing(what: String) -> impl FnOnce(kube::Error) -> Error {
    move |cause| Error::Request { doing: what, cause: Box::new(cause) }
}
