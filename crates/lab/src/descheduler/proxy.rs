//! The descheduler's own pages on plain HTTP, for it serves HTTPS only, under a certificate that nobody knows; and the
//! stand-in's page about itself.

use axum::{
    Router,
    extract::State as Shared,
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};
use tracing::error;

use super::{State, http_client::HttpClient};

#[derive(Debug, Clone)]
struct Behind {
    web: HttpClient,
    state: watch::Receiver<State>,
}

/// Answers until dropped.
pub(super) async fn serve(listener: TcpListener, web: HttpClient, state: watch::Receiver<State>) {
    let router = Router::new()
        .route("/metrics", get(pass))
        .route("/healthz", get(pass))
        .route("/health", get(health))
        .with_state(Behind { web, state });
    if let Err(problem) = axum::serve(listener, router).await {
        error!(target: "lab", "the server of the descheduler's metrics ended: {problem}");
    }
}

async fn pass(Shared(behind): Shared<Behind>, uri: Uri) -> Response {
    if behind.state.borrow().pid.is_none() {
        return (StatusCode::SERVICE_UNAVAILABLE, "no descheduler runs\n").into_response();
    }
    match behind.web.get(uri.path()).await {
        Ok(page) => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response(),
        Err(problem) => (StatusCode::BAD_GATEWAY, format!("{problem}\n")).into_response(),
    }
}

/// How the stand-in is, whether a descheduler runs or not.
async fn health(Shared(behind): Shared<Behind>) -> Response {
    let State { is_acting, pid, is_ready, starts, problem, refused, .. } = behind.state.borrow().clone();
    let (code, status) = match is_acting {
        true => (StatusCode::OK, "healthy"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
    };
    let descheduler = json!({"pid": pid, "ready": is_ready, "starts": starts, "problem": problem});
    let body = json!({"status": status, "refused": refused, "descheduler": descheduler});
    (code, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
