//! The pages, `/validate` and `/health`, and the handle of a running webhook.

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

use super::{Error, Request, Settings, configuration::PATH, judge::Judge, keeper::Keeper};

/// The path of the reference, which had one for deletions and one for evictions.
const OTHER_PATH: &str = "/mutate";
/// Objects have at most half of this.
const LARGEST: usize = 4 << 20;
/// Longer than the API server waits.
const HANDSHAKE: Duration = Duration::from_secs(30);
const BREATHER: Duration = Duration::from_millis(100);

/// A running eviction webhook. It stops when dropped; the API server then refuses what it would ask it.
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    tasks: JoinSet<()>,
}

impl Webhook {
    /// Listens, then tells the API server. Needs a runtime. The client should not retry by itself.
    pub async fn start(client: Client, settings: Settings) -> Result<Webhook, Error> {
        let listen = |cause| Error::Listen { address: settings.address, cause };
        let listener = TcpListener::bind(settings.address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let keeper = Keeper::start(client.clone(), &settings, address.port()).await?;
        let judge = Arc::new(Judge::new(client, settings.passes));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, keeper.server(), pages(judge)));
        keeper.announce().await?;
        info!(target: "lab", "eviction webhook: https://{address}/health");
        tasks.spawn(keeper.run());
        Ok(Webhook { address, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for what should not happen.
    pub async fn ended(&mut self) -> Error {
        self.tasks.join_next().await;
        Error::Ended
    }
}

/// Runs a webhook until `shutdown`, or until it cannot go on. What the API server was told stays: VMs are protected while
/// the webhook is away.
pub async fn run(client: Client, settings: Settings, shutdown: impl Future<Output = ()> + Send) -> Result<(), Error> {
    let mut webhook = Webhook::start(client, settings).await?;
    tokio::select! {
        () = shutdown => Ok(()),
        problem = webhook.ended() => Err(problem),
    }
}

fn pages(judge: Arc<Judge>) -> Router {
    Router::new()
        .route(PATH, post(validate))
        .route(OTHER_PATH, post(validate))
        .route("/health", get(async || page(StatusCode::OK, &json!({"status": "healthy"}))))
        .fallback(async |uri: Uri| page(StatusCode::NOT_FOUND, &json!({"error": format!("there is no page {uri}")})))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(judge)
}

fn page(code: StatusCode, body: &Value) -> Response {
    (code, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn validate(State(judge): State<Arc<Judge>>, body: Bytes) -> Response {
    match Request::parse(&body) {
        Ok(request) => page(StatusCode::OK, &request.answer(judge.judge(&request).await.as_deref())),
        Err(problem) => page(StatusCode::BAD_REQUEST, &json!({"error": problem.to_string()})),
    }
}

/// Serves every connection with the certificate of the moment. All of them end with this.
async fn serve(listener: TcpListener, server: watch::Receiver<Arc<ServerConfig>>, pages: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let config = server.borrow().clone();
                    connections.spawn(converse(stream, config, pages.clone()));
                }
                Err(problem) => {
                    warn!(target: "lab", "eviction webhook: accepting a connection: {problem}");
                    sleep(BREATHER).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, config: Arc<ServerConfig>, pages: Router) {
    let served = async {
        let stream = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await.map_err(io::Error::other)??;
        let service = service_fn(move |request| pages.clone().oneshot(request));
        // Without a timer, so that idle connections are closed by the other side: whoever closes first may cut off a request.
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
    };
    if let Err(problem) = served.await {
        debug!(target: "lab", "eviction webhook: a connection ended: {problem}");
    }
}
