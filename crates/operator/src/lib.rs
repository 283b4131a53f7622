//! The operator: it sends the requests that the core asks for, watches, and holds the lease. Decisions are made in `advisor`.

mod advertise;
mod approval_policy;
mod configs;
mod events;
mod fact_cache;
mod fetch;
mod known_state;
mod lease;
mod make_plan;
mod malformed;
pub mod metrics;
mod plan_ahead;
mod plan_timer;
mod preview;
mod reconciler;
mod records;
mod refusal;
mod reporter;
mod request;
mod run;
mod watches;
mod watching;
mod work_queue;
mod write;

pub use advisor::{
    machine::{NotWritten, Written},
    writing::Lock,
};
pub use fetch::fetch_facts;
pub use kube_io::{ApiServer, Class, Clock, RequestError};
pub use lease::{LeaseSettings, election};
pub use make_plan::{PlanError, make_plan, make_plan_by};
pub use metrics::Metrics;
pub use request::object_path;
pub use run::{OperatorSettings, Readiness, RunError, connect, run, run_on};
pub use write::{WriteError, write};
