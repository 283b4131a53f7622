//! The operator: it sends the requests that the core asks for, watches, holds the lease, and keeps the metrics. Decisions are made in
//! `advisor`.

mod advertise;
mod approval_policy;
mod config_plan;
mod configs;
mod events;
mod execute;
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
mod send_write;
mod watch_settings;
mod watches;
mod work_queue;

pub use fetch::fetch_facts;
pub use lease::{LeaseSettings, election};
pub use make_plan::{PlanError, make_plan, make_plan_by};
pub use metrics::Metrics;
pub use request::object_path;
pub use run::{OperatorSettings, Readiness, RunError, connect, run, run_on};
pub use send_write::{WriteError, write};
