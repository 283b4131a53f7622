//! Serves HTTPS: to clients that Kubernetes knows, and to API servers that call a webhook.
//! [`Server`] learns who asks from a client certificate or a token, and asks the API server whether they may. Of what is served it
//! knows only the path of the metrics, which a certificate may read. [`admission`] answers the reviews that an API server sends.

mod accept;
pub mod admission;
mod authorize;
mod cache;
mod certificates;
mod client_ca;
mod health;
mod listen;
mod loopback;
mod peer;
mod reviews;
mod server;
mod tls;

pub use accept::{Limits, accept};
pub use authorize::{METRICS_PATH, PROMETHEUS};
pub use certificates::CertificateError;
pub use health::health_page;
pub use listen::listen;
pub use loopback::LoopbackServer;
pub use server::{Protection, Secure, ServeError, Server, is_loopback};
pub use tls::{TlsError, tls_config};
