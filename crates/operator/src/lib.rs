//! The shell around the advisor: it fetches the facts that a profile wants and asks the API server what would come of a
//! plan. It decides nothing.

mod answer;
mod draw_up;
mod fetch;
mod preview;
mod request;
mod write;

pub use answer::{Class, RequestError};
pub use draw_up::{DrawUpError, draw_up};
pub use request::Kubernetes;
pub use write::{Lock, WriteError, Written};
