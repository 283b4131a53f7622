//! The eviction webhook: turns evictions and deletions of virt-launcher pods into migrations.
//!
//! What is answered is a function of the request, the pod, its VM and who asks: [`decide()`]. The rest reads those from the
//! API server, marks the VM for the VM controller, and answers in the words on which KubeVirt and the descheduler agree.
//! It makes its own certificates and tells the API server about them, or uses those that it finds in files.

mod certificates;
mod configuration;
mod decide;
mod error;
mod judge;
mod keeper;
mod mark;
mod review;
mod server;
mod settings;
#[cfg(test)]
mod tests;

pub use configuration::{NAME, configuration};
pub use decide::{Pass, Refusal, Scene, Verdict, decide};
pub use error::Error;
pub use mark::{EVICTION_REQUESTED, EVICTION_SOURCE, Mark};
pub use review::{Deed, Request, Unreadable};
pub use server::{Webhook, run};
pub use settings::{COLLECTORS, Certificates, Reach, Settings};
