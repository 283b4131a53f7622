//! The eviction webhook: turns evictions and deletions of virt-launcher pods into migrations. [`decide()`] is a pure function of the
//! admission request, the pod, its VM and the user; the rest reads these, records the eviction request on the VM, and responds with
//! the messages that KubeVirt and the descheduler agree on.

mod certificates;
mod configuration;
mod decide;
mod error;
mod eviction_request;
mod handler;
mod migration_aware;
mod registration;
mod review;
mod server;
mod settings;
#[cfg(test)]
mod tests;

pub use configuration::{NAME, configuration};
pub use decide::{AllowReason, Denial, Input, Outcome, Step, decide};
pub use error::Error;
pub use eviction_request::{EVICTION_REQUESTED, EVICTION_SOURCE, EvictionRequest};
pub use review::{AdmissionRequest, Operation};
pub use server::{Webhook, run};
pub use settings::{Certificates, Endpoint, GARBAGE_COLLECTORS, MigrationAwareSettings, Switch, WebhookSettings};
