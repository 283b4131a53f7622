//! A proxy between the descheduler and Prometheus with a timeout.
//! The descheduler waits for an answer without limit, and then acts on it as if it were new. After a halt of Prometheus it
//! would act on the load before the halt.

use std::{net::Ipv4Addr, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use kube_io::HttpClient;
use tokio::{net::TcpListener, task::JoinSet};
use tracing::error;

use super::{COMPONENT, Error};

/// How long the descheduler waits for an answer of Prometheus.
pub const PROMETHEUS_TIMEOUT: Duration = Duration::from_secs(9);
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(250);

/// [`PROMETHEUS_TIMEOUT`] in a lab whose time is faster.
pub fn prometheus_timeout(time_scale: f64) -> Duration {
    PROMETHEUS_TIMEOUT.div_f64(time_scale.max(f64::MIN_POSITIVE)).max(SHORTEST_TIMEOUT)
}

/// Listens on loopback and forwards queries to `url`. Returns the URL of the proxy.
pub(super) async fn start(url: &str, timeout: Duration, servers: &mut JoinSet<()>) -> Result<String, Error> {
    let failed = |cause| Error::Listen { address: Ipv4Addr::LOCALHOST.to_string(), cause };
    let prometheus = HttpClient::new(url, COMPONENT, None, timeout)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // The descheduler tries POST first, and GET when POST is not allowed.
    let router = Router::new().route("/api/v1/query", get(forward)).with_state(prometheus);
    servers.spawn(async move {
        if let Err(problem) = axum::serve(listener, router).await {
            error!(target: "lab", "the server between the descheduler and Prometheus ended: {problem}");
        }
    });
    Ok(format!("http://{address}"))
}

async fn forward(State(prometheus): State<HttpClient>, uri: Uri) -> Response {
    match prometheus.get(uri.path_and_query().map_or("/", |path| path.as_str())).await {
        Ok(answer) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(problem) => (StatusCode::BAD_GATEWAY, format!("{problem}\n")).into_response(),
    }
}
