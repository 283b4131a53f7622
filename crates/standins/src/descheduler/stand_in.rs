//! The handle of a running stand-in.

use std::{future::Future, io, net::SocketAddr, path::PathBuf};

use kube::Client;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use tracing::info;

use super::{
    DeschedulerSettings, Error, Policy,
    controller::Controller,
    metrics_proxy,
    process::{self, Endpoint},
    prometheus_proxy, prometheus_timeout,
};

/// The state of the stand-in and of the process of the descheduler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StandInState {
    /// Whether its watches are synced, so that it acts.
    pub is_acting: bool,
    pub pid: Option<u32>,
    /// Whether the descheduler is healthy.
    pub is_ready: bool,
    /// How often a descheduler was started.
    pub starts: u32,
    /// The policy of the last start.
    pub policy: Option<Policy>,
    /// Why the process does not keep running.
    pub problem: Option<String>,
    /// Why the current KubeDescheduler gives no policy.
    pub policy_error: Option<String>,
}

/// A running stand-in. When it is dropped, the descheduler is killed with it.
#[derive(Debug)]
pub struct StandIn {
    state: watch::Receiver<StandInState>,
    stop: watch::Sender<bool>,
    psi: watch::Sender<bool>,
    task: JoinHandle<()>,
    metrics: Option<SocketAddr>,
    log: PathBuf,
    policy: PathBuf,
    _servers: JoinSet<()>,
}

impl StandIn {
    /// Starts the stand-in. Needs a runtime.
    pub async fn start(client: Client, mut settings: DeschedulerSettings) -> Result<StandIn, Error> {
        let endpoint = Endpoint::create(&settings.folder)?;
        let (state_sender, state) = watch::channel(StandInState::default());
        let (stop, stop_receiver) = watch::channel(false);
        let (psi, psi_receiver) = watch::channel(settings.has_psi);
        let mut servers = JoinSet::new();
        let mut metrics = None;
        if let Some(address) = settings.metrics {
            let failed = |cause| Error::Listen { address: address.to_string(), cause };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            info!(target: "lab", "descheduler stand-in: http://{bound}/metrics");
            metrics = Some(bound);
            servers.spawn(metrics_proxy::serve(listener, endpoint.client.clone(), state.clone()));
        }
        if let Some(url) = &settings.prometheus_url {
            let timeout = prometheus_timeout(settings.time_scale);
            settings.prometheus_url = Some(prometheus_proxy::start(url, timeout, &mut servers).await?);
        }
        let log = process::log_path(&settings.folder);
        let policy = process::policy_path(&settings.folder);
        let task =
            tokio::spawn(Controller::new(client, settings, endpoint, state_sender, stop_receiver, psi_receiver).run());
        Ok(StandIn { state, stop, psi, task, metrics, log, policy, _servers: servers })
    }

    /// The current state and its changes.
    pub fn state(&self) -> watch::Receiver<StandInState> {
        self.state.clone()
    }

    /// Sets whether the nodes measure pressure.
    pub fn psi(&self) -> watch::Sender<bool> {
        self.psi.clone()
    }

    /// Where the descheduler's metrics are served on plain HTTP.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The descheduler's log, over all its starts.
    pub fn log(&self) -> PathBuf {
        self.log.clone()
    }

    /// The file with the policy of the last start. It does not exist before the first.
    pub fn policy(&self) -> PathBuf {
        self.policy.clone()
    }

    /// Stops the descheduler, and then the stand-in.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.task).await;
    }
}

/// Runs the stand-in until `until` completes.
pub async fn run(client: Client, settings: DeschedulerSettings, until: impl Future<Output = ()>) -> io::Result<()> {
    let mut stand_in = StandIn::start(client, settings).await.map_err(io::Error::other)?;
    tokio::select! {
        () = until => {
            stand_in.shutdown().await;
            Ok(())
        }
        _ = &mut stand_in.task => Err(io::Error::other("the stand-in for the descheduler operator ended")),
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}
