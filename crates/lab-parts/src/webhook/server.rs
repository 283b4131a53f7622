//! The HTTPS server with `/validate` and `/health`, and the handle of a running webhook.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::Client;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, info, warn};

use super::{
    AdmissionRequest, Error, WebhookSettings, configuration::PATH, handler::Handler, registration::RegistrationTask,
};

/// The reference had one path for deletions and one for evictions.
const OTHER_PATH: &str = "/mutate";
/// Twice the size of the largest object.
const LARGEST_BODY: usize = 4 << 20;
/// Longer than the API server waits.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running eviction webhook. It stops when dropped; the API server then denies the requests that it would send here.
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    tasks: JoinSet<()>,
}

impl Webhook {
    /// Listens, then registers. Needs a Tokio runtime. The client should not retry by itself.
    pub async fn start(client: Client, settings: WebhookSettings) -> Result<Webhook, Error> {
        let listen = |cause| Error::Listen { address: settings.address, cause };
        let listener = TcpListener::bind(settings.address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let registration = RegistrationTask::start(client.clone(), &settings, address.port()).await?;
        let handler = Arc::new(Handler::new(client, settings.exempt_users));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, registration.server(), router(handler)));
        registration.register().await?;
        info!(target: "lab", "eviction webhook: https://{address}/health");
        tasks.spawn(registration.run());
        Ok(Webhook { address, tasks })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns only if a task of the webhook ends.
    pub async fn ended(&mut self) -> Error {
        self.tasks.join_next().await;
        Error::Ended
    }
}

/// Runs a webhook until `shutdown`, or until it fails. The registration stays: VMs are protected while the webhook is down.
pub async fn run(
    client: Client,
    settings: WebhookSettings,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let mut webhook = Webhook::start(client, settings).await?;
    tokio::select! {
        () = shutdown => Ok(()),
        problem = webhook.ended() => Err(problem),
    }
}

fn router(handler: Arc<Handler>) -> Router {
    Router::new()
        .route(PATH, post(validate))
        .route(OTHER_PATH, post(validate))
        .route("/health", get(async || page(StatusCode::OK, &json!({"status": "healthy"}))))
        .fallback(async |uri: Uri| page(StatusCode::NOT_FOUND, &json!({"error": format!("there is no page {uri}")})))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(handler)
}

fn page(code: StatusCode, body: &Value) -> Response {
    (code, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn validate(State(handler): State<Arc<Handler>>, body: Bytes) -> Response {
    match AdmissionRequest::parse(&body) {
        Ok(request) => page(StatusCode::OK, &request.response(handler.handle(&request).await.as_deref())),
        Err(problem) => page(StatusCode::BAD_REQUEST, &json!({"error": problem.to_string()})),
    }
}

/// Serves every connection with the certificate that is current when it begins. Dropping this closes all connections.
async fn serve(listener: TcpListener, server: watch::Receiver<Arc<ServerConfig>>, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let config = server.borrow().clone();
                    connections.spawn(serve_connection(stream, config, router.clone()));
                }
                Err(problem) => {
                    warn!(target: "lab", "eviction webhook: accepting a connection: {problem}");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, config: Arc<ServerConfig>, router: Router) {
    let served = async {
        let stream =
            timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await.map_err(io::Error::other)??;
        let service = service_fn(move |request| router.clone().oneshot(request));
        // No timer: the API server closes idle connections, so that no request is cut off.
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
    };
    if let Err(problem) = served.await {
        debug!(target: "lab", "eviction webhook: a connection ended: {problem}");
    }
}
