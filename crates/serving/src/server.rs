//! The server: accepts connections, as many as are allowed, and answers requests of those who may send them.

use std::{convert::Infallible, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kube_io::ApiServer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, info, warn};

use crate::{
    authorize::{Asked, Authorizer, Verdict},
    certificates::{CertificateError, Certificates},
    client_ca,
    peer::common_name,
    reviews::ApiReviews,
    tls::{Tls, TlsError},
};

/// Connections at a time. A few Prometheus servers have one each.
const CONNECTIONS: usize = 64;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection waits for the next request, and a request for the end of its head. Longer than the usual time between scrapes.
const IDLE: Duration = Duration::from_secs(75);
const REQUEST: Duration = Duration::from_secs(15);
/// After this, a connection has to be made anew: with the certificates of then.
const LONGEST: Duration = Duration::from_secs(10 * 60);
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

type Guard = Arc<Authorizer<ApiReviews>>;

/// The name that the client certificate of a connection vouches for.
#[derive(Debug, Clone)]
struct Peer(Option<String>);

impl Server {
    /// Begins to listen. Paths without a route are answered with 404 to everybody.
    pub async fn bind(address: SocketAddr, routes: Router, protection: Protection) -> Result<Server, ServeError> {
        let (router, secure) = match protection {
            Protection::Loopback if !address.ip().to_canonical().is_loopback() => {
                return Err(ServeError::NotLoopback(address));
            }
            Protection::Loopback => (routes, None),
            Protection::Secure(secure) => {
                let Secure { certificates, names, client_names, api_server } = *secure;
                let mut certificates = Certificates::new(certificates, names);
                let Some(first) = certificates.next()? else {
                    return Err(ServeError::Tls("there is no certificate".into()));
                };
                let guard: Guard = Arc::new(Authorizer::new(ApiReviews::new(&api_server), client_names));
                let router = routes.route_layer(from_fn_with_state(guard, authorize));
                (router, Some((Arc::new(Tls::new(first)?), certificates, api_server)))
            }
        };
        let listener = TcpListener::bind(address).await.map_err(|error| ServeError::Listen(address, error))?;
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
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            // Nobody closes the semaphore.
            let place = room.clone().acquire_owned().await.ok();
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "accepting a connection");
                    sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let (router, tls) = (router.clone(), tls.clone());
            tasks.spawn(async move {
                connection(stream, tls, router).await;
                drop(place);
            });
            while tasks.try_join_next().is_some() {}
        }
    }
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

async fn connection(stream: TcpStream, tls: Option<Arc<Tls>>, router: Router) {
    let Some(tls) = tls else { return serve(stream, Peer(None), router).await };
    match timeout(HANDSHAKE, TlsAcceptor::from(tls.config()).accept(stream)).await {
        Ok(Ok(stream)) => {
            let (_, session) = stream.get_ref();
            let certificate = session.peer_certificates().and_then(|chain| chain.first());
            let peer = Peer(certificate.and_then(common_name));
            serve(stream, peer, router).await;
        }
        Ok(Err(error)) => debug!(%error, "no TLS connection"),
        Err(_) => debug!("no TLS connection in time"),
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer, router: Router) {
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        let router = router.clone();
        request.extensions_mut().insert(peer.clone());
        async move {
            let answer = timeout(REQUEST, router.oneshot(request.map(Body::new))).await;
            Ok::<_, Infallible>(match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(never)) => match never {},
                Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "it took too long\n").into_response(),
            })
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = sleep(LONGEST) => {
            connection.as_mut().graceful_shutdown();
            timeout(REQUEST, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended");
    }
}

/// Lets a request through if its sender may send it.
async fn authorize(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().and_then(|peer| peer.0.clone());
    let verb = request.method().as_str().to_ascii_lowercase();
    let path = request.uri().path().to_owned();
    let token = request.headers().get(header::AUTHORIZATION).and_then(bearer).map(str::to_owned);
    let asked = Asked { peer: peer.as_deref(), token: token.as_deref(), path: &path, verb: &verb };
    match guard.decide(asked).await {
        Verdict::Allowed => next.run(request).await,
        Verdict::Unauthenticated => {
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], "Unauthorized\n").into_response()
        }
        Verdict::Denied(user) => {
            debug!(user, verb, path, "refused");
            (StatusCode::FORBIDDEN, format!("Authorization denied for user {user}\n")).into_response()
        }
        Verdict::Failed(error) => {
            warn!(error, verb, path, "cannot find out who asks, or whether they may");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authorization cannot be reviewed\n").into_response()
        }
    }
}

/// The token of an Authorization header.
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn a_token_is_what_follows_bearer() {
        for (value, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("Basic abc", None),
            ("abc", None),
            ("Bearer", None),
            ("Bearer ", Some("")),
        ] {
            assert_eq!(bearer(&HeaderValue::from_static(value)), expected, "{value}");
        }
    }

    #[tokio::test]
    async fn plain_http_is_for_loopback_only() {
        let routes = || Router::new().route("/metrics", get(|| async { "x 1\n" }));
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let refused = Server::bind(address.parse().unwrap(), routes(), Protection::Loopback).await;
            assert!(matches!(refused, Err(ServeError::NotLoopback(_))), "{address}");
        }
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), routes(), Protection::Loopback).await.unwrap();
        let address = server.address().unwrap();
        let running = tokio::spawn(server.run());
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("x 1\n"), "{answer}");
        running.abort();
    }
}
