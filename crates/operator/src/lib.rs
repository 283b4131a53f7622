//! The shell around the advisor: it fetches the facts that a profile wants, asks the API server what would come of a plan,
//! and carries out what was decided. It decides nothing.

mod advertise;
mod answer;
pub mod connect;
mod draw_up;
mod events;
mod fetch;
mod inbox;
mod knowledge;
mod lease;
mod malformed;
mod patience;
mod persistent;
mod preview;
mod request;
mod root;
mod run;
mod steward;
mod surroundings;
mod watches;
mod write;

pub use advisor::{
    machine::{NotWritten, Written},
    writing::Lock,
};
pub use answer::{Class, RequestError};
pub use draw_up::{DrawUpError, draw_up};
pub use lease::{LeaseSettings, election};
pub use request::Kubernetes;
pub use run::{Readiness, RunError, Settings, run, run_on};
pub use surroundings::Surroundings;
pub use write::WriteError;
