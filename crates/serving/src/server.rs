//! The server: answers requests of those who may send them, with the newest certificate.

use std::{convert::Infallible, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use kube_io::ApiServer;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};
use tracing::{debug, info, warn};

use crate::{
    accept::{Limits, Peer, accept},
    authorize::{Asked, Authorization, Authorizer, Reviews},
    certificates::{CertificateError, Certificates},
    client_ca,
    listen::listen,
    reviews::ApiReviews,
    tls::{Tls, TlsError},
};

/// How often the files of the certificate are looked at.
const POLL: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("listening on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("{0} is not a loopback address: without TLS, nobody else may be served")]
    NotLoopback(SocketAddr),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("setting up TLS: {0}")]
    Tls(String),
}

impl From<TlsError> for ServeError {
    fn from(error: TlsError) -> Self {
        ServeError::Tls(error.to_string())
    }
}

/// Whether an address can be reached only from this machine.
pub fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Whom the server answers.
#[derive(Debug)]
pub enum Protection {
    /// Everybody on this machine, without TLS. Only for loopback addresses.
    Loopback,
    Secure(Box<Secure>),
}

/// TLS for clients that Kubernetes knows.
#[derive(Debug)]
pub struct Secure {
    /// The folder with `tls.crt` and `tls.key`. Until they are there, the server signs a certificate of its own.
    pub certificates: Option<PathBuf>,
    /// The names in a certificate of our own.
    pub names: Vec<String>,
    /// The common names of client certificates that may read `/metrics` without a token.
    pub client_names: Vec<String>,
    pub api_server: ApiServer,
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    router: Router,
    secure: Option<(Arc<Tls>, Certificates, ApiServer)>,
}

impl Server {
    /// Begins to listen. Paths without a route are answered with 404 to everybody, who is disconnected then.
    pub async fn bind(address: SocketAddr, routes: Router, protection: Protection) -> Result<Server, ServeError> {
        let (router, secure) = match protection {
            Protection::Loopback if !is_loopback(address) => {
                return Err(ServeError::NotLoopback(address));
            }
            Protection::Loopback => (with_fallback(routes), None),
            Protection::Secure(secure) => {
                let Secure { certificates, names, client_names, api_server } = *secure;
                let mut certificates = Certificates::new(certificates, names);
                let (first, unusable) = certificates.first()?;
                if let Some(error) = unusable {
                    warn!(%error, "the certificate cannot be used; one of our own is served until it can");
                }
                let guard = Arc::new(Authorizer::new(ApiReviews::new(&api_server), client_names));
                let router = routes.route_layer(from_fn_with_state(guard, authorize::<ApiReviews>));
                let router = with_fallback(router);
                (router, Some((Arc::new(Tls::new(first)?), certificates, api_server)))
            }
        };
        let listener = listen(address).await.map_err(|error| ServeError::Listen(address, error))?;
        Ok(Server { listener, router, secure })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until it is dropped.
    pub async fn run(self) -> Infallible {
        let Server { listener, router, secure } = self;
        let mut tasks = JoinSet::new();
        let tls = secure.map(|(tls, certificates, api_server)| {
            tasks.spawn(renew(tls.clone(), certificates));
            tasks.spawn(client_ca::keep(api_server, tls.clone()));
            tls
        });
        accept(listener, || tls.as_ref().map(|tls| tls.config()), router, Limits::STRANGERS).await
    }
}

/// Nobody is asked who they are on a path that there is not, so they must not keep a place.
fn with_fallback(routes: Router) -> Router {
    routes.fallback(|| async { (StatusCode::NOT_FOUND, [(header::CONNECTION, "close")], "Not found\n") })
}

/// Serves another certificate whenever there is one.
async fn renew(tls: Arc<Tls>, mut certificates: Certificates) {
    let mut told = None;
    loop {
        sleep(POLL).await;
        let next = certificates.next().map_err(ServeError::from);
        let renewed = next.and_then(|next| match next {
            Some(certificate) => {
                tls.set_certificate(certificate)?;
                info!(from_files = certificates.are_files(), "another certificate is served from now on");
                Ok(())
            }
            None => Ok(()),
        });
        match renewed.map_err(|error| error.to_string()) {
            Ok(()) => told = None,
            Err(error) if told.as_ref() != Some(&error) => {
                warn!(error, "the certificate cannot be used; the one before is still served");
                told = Some(error);
            }
            Err(_) => {}
        }
    }
}

/// Lets a request through if its sender may send it.
async fn authorize<R: Reviews>(State(guard): State<Arc<Authorizer<R>>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().and_then(|peer| peer.0.clone());
    let verb = request.method().as_str().to_ascii_lowercase();
    let path = request.uri().path().to_owned();
    let token = request.headers().get(header::AUTHORIZATION).and_then(bearer).map(str::to_owned);
    let asked = Asked { peer: peer.as_deref(), token: token.as_deref(), path: &path, verb: &verb };
    // Whoever is refused leaves the place to others.
    let close = [(header::CONNECTION, "close")];
    match guard.decide(asked).await {
        Authorization::Allowed => next.run(request).await,
        Authorization::Unauthenticated => {
            let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, close, scheme, "Unauthorized\n").into_response()
        }
        Authorization::Denied(user) => {
            debug!(user, verb, path, "refused");
            (StatusCode::FORBIDDEN, close, format!("Authorization denied for user {user}\n")).into_response()
        }
        Authorization::Failed(error) => {
            if guard.is_new(&error) {
                warn!(error, verb, path, "cannot find out who asks, or whether they may");
            }
            (StatusCode::INTERNAL_SERVER_ERROR, close, "Authorization cannot be reviewed\n").into_response()
        }
    }
}

/// The token of an Authorization header.
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests;
