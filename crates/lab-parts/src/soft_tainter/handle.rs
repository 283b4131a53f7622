//! The handle of a running soft-tainter, and its health page.

use std::{collections::BTreeMap, future::Future, io, net::SocketAddr};

use advisor::kube_descheduler::Release;
use axum::{Router, response::Response, routing::get};
use balance::Bucket;
use kube::Client;
use kube_io::{Login, RequestError, prometheus::PrometheusClient};
use serde_json::json;
use serving::health_page;
use standins::descheduler::PolicySource;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tracing::info;

use super::controller::{Controller, DEADLINE};

/// The name of the soft-tainter in requests to Prometheus.
const COMPONENT: &str = "soft-tainter";

#[derive(Debug, Clone, PartialEq)]
pub struct SoftTainterSettings {
    /// The release whose soft-tainter this one behaves like.
    pub release: Release,
    pub prometheus_url: String,
    pub time_scale: f64,
    pub policy_source: PolicySource,
}

/// The result of the last cycle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// Whether its watches are synced, so that it acts.
    pub is_acting: bool,
    /// The number of cycles, including those that only removed taints.
    pub cycles: u64,
    /// The bucket of each node; empty while nothing is classified.
    pub buckets: BTreeMap<String, Bucket>,
    /// Why the last cycle did nothing, or not everything.
    pub problem: Option<String>,
}

/// A running soft-tainter. It stops when dropped; the taints stay.
#[derive(Debug)]
pub struct SoftTainter {
    findings: watch::Receiver<Findings>,
    task: JoinHandle<()>,
}

impl SoftTainter {
    /// Starts it. Needs a runtime.
    pub fn start(client: Client, settings: SoftTainterSettings) -> Result<SoftTainter, RequestError> {
        let prometheus = PrometheusClient::new(&settings.prometheus_url, COMPONENT, Login::default(), DEADLINE)?;
        let (sender, findings) = watch::channel(Findings::default());
        let task = tokio::spawn(Controller::new(client, prometheus, settings, sender).run());
        Ok(SoftTainter { findings, task })
    }

    pub fn findings(&self) -> watch::Receiver<Findings> {
        self.findings.clone()
    }
}

/// Runs a soft-tainter until `until` completes. `GET /health` at `health` answers 503 until the watches are synced, then 200.
pub async fn run(
    client: Client,
    settings: SoftTainterSettings,
    health: SocketAddr,
    until: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = TcpListener::bind(health).await?;
    info!(target: "lab", "soft-tainter: http://{}/health", listener.local_addr()?);
    let mut tainter = SoftTainter::start(client, settings).map_err(io::Error::other)?;
    let findings = tainter.findings();
    let page = move || std::future::ready(page(&findings.borrow()));
    tokio::select! {
        () = until => Ok(()),
        served = axum::serve(listener, Router::new().route("/health", get(page))) => served,
        _ = &mut tainter.task => Err(io::Error::other("the soft-tainter ended")),
    }
}

fn page(findings: &Findings) -> Response {
    let buckets: BTreeMap<&String, String> =
        findings.buckets.iter().map(|(node, bucket)| (node, bucket.to_string())).collect();
    let details = json!({"cycles": findings.cycles, "nodes": buckets, "problem": findings.problem});
    health_page(findings.is_acting, details)
}

impl Drop for SoftTainter {
    fn drop(&mut self) {
        self.task.abort();
    }
}
