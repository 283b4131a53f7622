//! Why the webhook does not start, or does not go on.

use std::{io, net::SocketAddr, path::PathBuf};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("listening at {address}: {cause}; is the port taken?")]
    Listen { address: SocketAddr, cause: io::Error },

    #[error("reading {}: {cause}", .path.display())]
    Read { path: PathBuf, cause: io::Error },

    #[error("making a certificate: {0}")]
    Create(#[from] rcgen::Error),

    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(String),

    #[error("writing ValidatingWebhookConfiguration {name}: {cause}")]
    Register { name: &'static str, cause: Box<kube::Error> },

    #[error("the eviction webhook ended without being asked to")]
    Ended,
}
