//! The two pages, `/metrics` and `/health`, and the handle of a running exporter.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use balance::PressureModel;
use kube::Client;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};
use tracing::{error, info};

use super::{
    Index, Renderer,
    feed::{Shared, feed},
};

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone)]
pub struct Settings {
    pub address: SocketAddr,
    /// Which nodes are shown, as a label selector.
    pub node_selector: String,
    pub pressure: PressureModel,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            address: ([0, 0, 0, 0], 8000).into(),
            node_selector: "type=kwok".to_owned(),
            pressure: PressureModel::default(),
        }
    }
}

/// A running exporter. It stops when dropped.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Site {
    shared: Arc<Shared>,
    renderer: Mutex<Renderer>,
}

impl Exporter {
    /// Starts watching and listening. Needs a runtime.
    pub async fn start(client: Client, settings: Settings) -> io::Result<Exporter> {
        let listener = TcpListener::bind(settings.address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(Index::new(settings.pressure)));
        let site = Arc::new(Site { shared: shared.clone(), renderer: Mutex::default() });
        let router = Router::new().route("/metrics", get(metrics)).route("/health", get(health)).with_state(site);
        let mut tasks = JoinSet::new();
        tasks.spawn(feed(client, settings, shared));
        tasks.spawn(async move {
            if let Err(problem) = axum::serve(listener, router).await {
                error!(target: "lab", "exporter: the server at {address} ended: {problem}");
            }
        });
        info!(target: "lab", "exporter: http://{address}/metrics");
        Ok(Exporter { address, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Runs an exporter until told to stop.
pub async fn run(client: Client, settings: Settings, shutdown: impl Future<Output = ()> + Send) -> io::Result<()> {
    let mut exporter = Exporter::start(client, settings).await?;
    tokio::select! {
        () = shutdown => Ok(()),
        _ = exporter.tasks.join_next() => Err(io::Error::other("the exporter ended")),
    }
}

/// Nothing is shown before everything is known: half a cluster looks like an idle one.
async fn metrics(State(site): State<Arc<Site>>) -> Response {
    let snapshot = site.shared.with(|known, now| known.is_complete().then(|| known.index.snapshot(now)));
    let Some(snapshot) = snapshot else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the cluster has not been listed yet\n").into_response();
    };
    let text = tokio::task::spawn_blocking(move || {
        site.renderer.lock().unwrap_or_else(PoisonError::into_inner).render(&snapshot)
    });
    match text.await {
        Ok(text) => ([(CONTENT_TYPE, TEXT)], text).into_response(),
        Err(problem) => (StatusCode::INTERNAL_SERVER_ERROR, format!("rendering failed: {problem}\n")).into_response(),
    }
}

async fn health(State(site): State<Arc<Site>>) -> Response {
    let (is_complete, nodes, vms) = site.shared.with(|known, now| {
        let nodes = known.index.snapshot(now).rows.len();
        (known.is_complete(), nodes, known.index.counted())
    });
    let (code, status) = match is_complete {
        true => (StatusCode::OK, "healthy"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
    };
    let body = json!({"status": status, "nodes": nodes, "vms": vms});
    (code, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
