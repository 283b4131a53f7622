//! The pages of the descheduler on plain HTTP, and the health of the stand-in.
//!
//! The descheduler itself serves HTTPS only, with a certificate that nobody else trusts.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use kube_io::HttpClient;
use serde_json::json;
use serving::health_page;
use tokio::{net::TcpListener, sync::watch};
use tracing::error;

use super::StandInState;

#[derive(Debug, Clone)]
struct Shared {
    descheduler: HttpClient,
    state: watch::Receiver<StandInState>,
}

/// Answers until dropped.
pub(super) async fn serve(listener: TcpListener, descheduler: HttpClient, state: watch::Receiver<StandInState>) {
    let router = Router::new()
        .route("/metrics", get(forward))
        .route("/healthz", get(forward))
        .route("/health", get(health))
        .with_state(Shared { descheduler, state });
    if let Err(problem) = axum::serve(listener, router).await {
        error!(target: "lab", "the server of the descheduler's metrics ended: {problem}");
    }
}

async fn forward(State(shared): State<Shared>, uri: Uri) -> Response {
    if shared.state.borrow().pid.is_none() {
        return (StatusCode::SERVICE_UNAVAILABLE, "no descheduler runs\n").into_response();
    }
    match shared.descheduler.get(uri.path()).await {
        Ok(page) => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response(),
        Err(problem) => (StatusCode::BAD_GATEWAY, format!("{problem}\n")).into_response(),
    }
}

/// The health of the stand-in, whether a descheduler runs or not.
async fn health(State(shared): State<Shared>) -> Response {
    let StandInState { is_acting, pid, is_ready, starts, problem, policy_error, .. } = shared.state.borrow().clone();
    let descheduler = json!({"pid": pid, "ready": is_ready, "starts": starts, "problem": problem});
    health_page(is_acting, json!({"refused": policy_error, "descheduler": descheduler}))
}
