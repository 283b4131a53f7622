//! Serves HTTPS to clients that Kubernetes knows. Who asks is told by a client certificate or by a token, and whether they may is
//! asked of the API server. The crate knows nothing about what is served.

mod authorize;
mod cache;
mod certificates;
mod client_ca;
mod peer;
mod reviews;
mod server;
mod tls;

pub use authorize::{METRICS_PATH, PROMETHEUS};
pub use certificates::CertificateError;
pub use server::{Protection, Secure, ServeError, Server};
