//! HTTPS on a free port of loopback for an API server on the same machine, with a certificate of its own.

use std::{convert::Infallible, io, net::Ipv4Addr, sync::Arc};

use axum::Router;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::net::TcpListener;

use crate::{
    accept::{Limits, accept},
    certificates::CertificateError,
    server::ServeError,
    tls::tls_config,
};

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct LoopbackServer {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    port: u16,
    certificate: String,
}

impl LoopbackServer {
    pub async fn bind() -> Result<LoopbackServer, ServeError> {
        let host = Ipv4Addr::LOCALHOST;
        let made = generate_simple_self_signed(vec![host.to_string()]).map_err(CertificateError::from)?;
        let CertifiedKey { cert, signing_key } = made;
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let tls = tls_config(vec![cert.der().clone()], key)?;
        let failed = |error: io::Error| ServeError::Listen((host, 0).into(), error);
        let listener = TcpListener::bind((host, 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(LoopbackServer { listener, tls, port, certificate: cert.pem() })
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}:{}{path}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// What a client has to trust, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Answers requests until it is dropped.
    pub async fn run(self, routes: Router) -> Infallible {
        accept(self.listener, || Some(self.tls.clone()), routes, Limits::API_SERVER).await
    }
}
