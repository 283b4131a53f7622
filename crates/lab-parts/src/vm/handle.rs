//! The handle of a running VM controller, and its health page.

use std::{future::Future, io, net::SocketAddr};

use axum::{Router, response::Response, routing::get};
use kube::Client;
use serde_json::json;
use serving::health_page;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tracing::info;

use super::{VmControllerSettings, controller::Controller};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// Whether the controller has listed the whole cluster. It acts only then.
    pub is_ready: bool,
    pub vms: usize,
    /// Migrations that run.
    pub migrations: usize,
}

/// A running VM controller. It stops at once when dropped; another one continues from there.
#[derive(Debug)]
pub struct VmController {
    task: JoinHandle<()>,
    state: watch::Receiver<State>,
}

impl VmController {
    /// Needs a Tokio runtime. The client should not retry by itself (`Config::default_retry = false`).
    pub fn start(client: Client, settings: VmControllerSettings) -> VmController {
        let (sender, state) = watch::channel(State::default());
        VmController { task: tokio::spawn(Controller::new(client, settings, sender).run()), state }
    }

    /// The state, now and whenever it changes. The channel closes when the controller has ended.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }
}

impl Drop for VmController {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a VM controller until `shutdown`. `GET /health` at `health` responds with 503 until the controller is ready, then
/// with 200.
pub async fn run(
    client: Client,
    settings: VmControllerSettings,
    health: SocketAddr,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let listener = TcpListener::bind(health).await?;
    info!(target: "lab", "VM controller: http://{}/health", listener.local_addr()?);
    let controller = VmController::start(client, settings);
    let mut state = controller.state();
    let shown = controller.state();
    let page = move || std::future::ready(page(*shown.borrow()));
    tokio::select! {
        () = shutdown => Ok(()),
        served = axum::serve(listener, Router::new().route("/health", get(page))) => served,
        _ = async { while state.changed().await.is_ok() {} } => Err(io::Error::other("the VM controller ended")),
    }
}

fn page(State { is_ready, vms, migrations }: State) -> Response {
    health_page(is_ready, json!({"vms": vms, "migrations": migrations}))
}
