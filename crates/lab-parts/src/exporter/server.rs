//! The HTTP server with `/metrics`, `/metrics/vms` and `/health`, and the handle of a running exporter.

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
use serving::health_page;
use tokio::{net::TcpListener, task::JoinSet};
use tracing::{error, info};

use super::{
    Index, Renderer,
    feed::{SharedIndex, feed},
    render::vm_page,
};

/// The page of the VMs. It is apart because it can be a hundred times longer.
pub const VM_METRICS: &str = "/metrics/vms";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone)]
pub struct ExporterSettings {
    pub address: SocketAddr,
    /// The nodes to export, as a label selector.
    pub node_selector: String,
    pub pressure: PressureModel,
}

impl Default for ExporterSettings {
    fn default() -> Self {
        ExporterSettings {
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
struct Pages {
    shared: Arc<SharedIndex>,
    renderer: Mutex<Renderer>,
}

impl Exporter {
    /// Starts watching and listening. Needs a Tokio runtime.
    pub async fn start(client: Client, settings: ExporterSettings) -> io::Result<Exporter> {
        let listener = TcpListener::bind(settings.address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(SharedIndex::new(Index::new(settings.pressure)));
        let pages = Arc::new(Pages { shared: shared.clone(), renderer: Mutex::default() });
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route(VM_METRICS, get(vm_metrics))
            .route("/health", get(health))
            .with_state(pages);
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

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Runs an exporter until `shutdown`.
pub async fn run(
    client: Client,
    settings: ExporterSettings,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let mut exporter = Exporter::start(client, settings).await?;
    tokio::select! {
        () = shutdown => Ok(()),
        _ = exporter.tasks.join_next() => Err(io::Error::other("the exporter ended")),
    }
}

/// Responds with 503 until everything is listed: half of a cluster looks like an idle one.
async fn metrics(State(pages): State<Arc<Pages>>) -> Response {
    let snapshot = pages.shared.with(|synced, now| synced.is_synced().then(|| synced.index.snapshot(now)));
    respond(snapshot, move |snapshot| pages.renderer.lock().unwrap_or_else(PoisonError::into_inner).render(&snapshot))
        .await
}

async fn vm_metrics(State(pages): State<Arc<Pages>>) -> Response {
    let vms = pages.shared.with(|synced, now| synced.is_synced().then(|| synced.index.vms(now)));
    respond(vms, |vms| vm_page(&vms)).await
}

async fn respond<T: Send + 'static>(found: Option<T>, render: impl FnOnce(T) -> String + Send + 'static) -> Response {
    let Some(found) = found else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the cluster has not been listed yet\n").into_response();
    };
    match tokio::task::spawn_blocking(move || render(found)).await {
        Ok(text) => ([(CONTENT_TYPE, TEXT)], text).into_response(),
        Err(problem) => (StatusCode::INTERNAL_SERVER_ERROR, format!("rendering failed: {problem}\n")).into_response(),
    }
}

async fn health(State(pages): State<Arc<Pages>>) -> Response {
    let (is_synced, nodes, vms) = pages.shared.with(|synced, now| {
        let nodes = synced.index.snapshot(now).rows.len();
        (synced.is_synced(), nodes, synced.index.counted())
    });
    health_page(is_synced, json!({"nodes": nodes, "vms": vms}))
}
