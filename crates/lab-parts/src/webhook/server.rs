//! The HTTPS server with `/validate` and `/health`, and the handle of a running webhook.

use std::{future::Future, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::{StatusCode, Uri},
    routing::get,
};
use kube::Client;
use serde_json::json;
use serving::{
    Limits, accept,
    admission::{reviewed_by, too_many_requests},
    health_page,
};
use tokio::{net::TcpListener, task::JoinSet};
use tracing::info;

use super::{
    AdmissionRequest, Error, WebhookSettings, configuration::PATH, handler::Handler, registration::RegistrationTask,
};

/// The reference had one path for deletions and one for evictions.
const OTHER_PATH: &str = "/mutate";

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
        let handler = Arc::new(Handler::new(client, settings.exempt_users, settings.migration_aware));
        let mut tasks = JoinSet::new();
        let tls = registration.server();
        tasks.spawn(async move {
            accept(listener, || Some(tls.borrow().clone()), router(handler), Limits::API_SERVER).await;
        });
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
    let review = reviewed_by(move |request: AdmissionRequest| {
        let handler = handler.clone();
        async move { handler.handle(&request).await.map(too_many_requests) }
    });
    Router::new()
        .route(PATH, review.clone())
        .route(OTHER_PATH, review)
        .route("/health", get(async || health_page(true, json!({}))))
        .fallback(async |uri: Uri| (StatusCode::NOT_FOUND, format!("there is no page {uri}\n")))
}
