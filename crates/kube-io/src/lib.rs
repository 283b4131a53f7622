//! Everything that talks to the API server shares this crate: clients, requests with a deadline, errors by class, backoff,
//! and watches that survive every fault. The crate knows nothing about plans or about the lab.

mod api_server;
mod backoff;
mod clock;
pub mod connect;
mod deadline;
mod error;
mod extra_time;
mod login;
mod observe;
mod relist;
mod watch;

pub use api_server::ApiServer;
pub use backoff::{Backoff, BackoffPolicy, KeyedBackoff};
pub use clock::Clock;
pub use deadline::{answer_within, within_deadline};
pub use error::{Class, RequestError};
pub use login::{Login, LoginError};
pub use observe::{ObservedRequest, Observer};
pub use relist::{Change, ObjectKey};
pub use watch::{ResilientWatch, WatchEvent, forward};
