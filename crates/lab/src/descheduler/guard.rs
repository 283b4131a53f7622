//! Between the descheduler and Prometheus: passes queries on, and gives answers in time or not at all.
//!
//! The descheduler waits for an answer for as long as it takes, and then acts on it as if it were fresh. A Prometheus that
//! was halted would have it act on what was true before.

use std::{net::Ipv4Addr, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::{net::TcpListener, task::JoinSet};
use tracing::error;

use super::{Error, http_client::HttpClient};

/// Listens on loopback for queries to `url`, and answers each within `patience`. Returns where it listens.
pub(super) async fn start(url: &str, patience: Duration, servers: &mut JoinSet<()>) -> Result<String, Error> {
    let failed = |cause| Error::Listen { address: Ipv4Addr::LOCALHOST.to_string(), cause };
    let web = HttpClient::new(url, None, patience)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // A query is posted first. Told that it may not be, the descheduler asks for it.
    let router = Router::new().route("/api/v1/query", get(pass)).with_state(web);
    servers.spawn(async move {
        if let Err(problem) = axum::serve(listener, router).await {
            error!(target: "lab", "the server between the descheduler and Prometheus ended: {problem}");
        }
    });
    Ok(format!("http://{address}"))
}

async fn pass(State(web): State<HttpClient>, uri: Uri) -> Response {
    match web.get(uri.path_and_query().map_or("/", |path| path.as_str())).await {
        Ok(answer) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(problem) => (StatusCode::BAD_GATEWAY, format!("{problem}\n")).into_response(),
    }
}
