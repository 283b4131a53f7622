//! The accept loop of everything that is served by HTTPS: connections, as many as are allowed, each for a limited time.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{Router, body::Body, http::StatusCode, response::IntoResponse};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, warn};

use crate::peer::common_name;

const HANDSHAKE: Duration = Duration::from_secs(10);
/// Longer than an API server waits for a webhook.
const REQUEST: Duration = Duration::from_secs(15);
/// Bytes of a request that are kept at a time. A token has a few thousand.
pub(crate) const BUFFER: usize = 32 * 1024;

/// How much of a server its clients may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time. Others wait.
    pub(crate) connections: usize,
    /// How long a new connection waits for its first request: whoever says nothing takes the place of somebody else.
    pub(crate) first_request: Duration,
    /// How long a connection waits for the next request, and a request for the end of its head.
    pub(crate) idle: Option<Duration>,
    /// After this, a connection has to be made anew: with the certificates of then.
    pub(crate) longest: Duration,
}

impl Limits {
    /// For whoever reaches the port. A few Prometheus servers have a connection each, idle for the usual time between scrapes.
    pub const STRANGERS: Limits = Limits {
        connections: 64,
        first_request: Duration::from_secs(10),
        idle: Some(Duration::from_secs(75)),
        longest: Duration::from_secs(10 * 60),
    };
    /// For an API server that calls a webhook. It closes idle connections itself, so that no request is cut off.
    pub const API_SERVER: Limits =
        Limits { connections: 1024, first_request: Duration::MAX, idle: None, longest: Duration::MAX };
}

/// The name that the client certificate of a connection vouches for.
#[derive(Debug, Clone)]
pub(crate) struct Peer(pub(crate) Option<String>);

/// Answers requests until it is dropped. Each connection has the TLS settings of the moment when it begins; plain HTTP without any.
pub async fn accept(
    listener: TcpListener,
    tls: impl Fn() -> Option<Arc<ServerConfig>>,
    router: Router,
    limits: Limits,
) -> Infallible {
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
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
        let (router, tls) = (router.clone(), tls());
        connections.spawn(async move {
            connection(stream, tls, router, limits).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, tls: Option<Arc<ServerConfig>>, router: Router, limits: Limits) {
    let Some(tls) = tls else { return serve(stream, Peer(None), router, limits).await };
    match timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => {
            let (_, session) = stream.get_ref();
            let certificate = session.peer_certificates().and_then(|chain| chain.first());
            let peer = Peer(certificate.and_then(common_name));
            serve(stream, peer, router, limits).await;
        }
        Ok(Err(error)) => debug!(%error, "no TLS connection"),
        Err(_) => debug!("no TLS connection in time"),
    }
}

pub(crate) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer, router: Router, limits: Limits) {
    let arrived = Arc::new(Notify::new());
    let first = arrived.clone();
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        arrived.notify_one();
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
    builder.timer(TokioTimer::new()).header_read_timeout(limits.idle).max_buf_size(BUFFER);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), answer));
    let silence = async {
        if timeout(limits.first_request, first.notified()).await.is_ok() {
            std::future::pending().await
        }
    };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = silence => return debug!("no request in time"),
        () = sleep(limits.longest) => {
            connection.as_mut().graceful_shutdown();
            timeout(REQUEST, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended");
    }
}
