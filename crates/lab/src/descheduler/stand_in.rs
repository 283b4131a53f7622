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
    Error, Policy, Settings, guard,
    operator::Operator,
    process::{self, Home},
    proxy,
};
use crate::prometheus;

/// What the stand-in says about itself and about the descheduler's process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Whether it has seen the cluster, so that it acts.
    pub is_acting: bool,
    pub pid: Option<u32>,
    /// Whether it has answered that it is well.
    pub is_ready: bool,
    /// How often one was started.
    pub starts: u32,
    /// What the last one was started with.
    pub policy: Option<Policy>,
    /// Why none stays up.
    pub problem: Option<String>,
    /// Why the KubeDescheduler as it is now is not followed.
    pub refused: Option<String>,
}

/// A running stand-in. When it is dropped, the descheduler is killed with it.
#[derive(Debug)]
pub struct StandIn {
    state: watch::Receiver<State>,
    stop: watch::Sender<bool>,
    psi: watch::Sender<bool>,
    task: JoinHandle<()>,
    metrics: Option<SocketAddr>,
    log: PathBuf,
    policy: PathBuf,
    _servers: JoinSet<()>,
}

impl StandIn {
    /// Starts playing the descheduler operator. Needs a runtime.
    pub async fn start(client: Client, mut settings: Settings) -> Result<StandIn, Error> {
        let home = Home::furnish(&settings.folder)?;
        let (state_tell, state) = watch::channel(State::default());
        let (stop, stop_seen) = watch::channel(false);
        let (psi, psi_seen) = watch::channel(settings.has_psi);
        let mut servers = JoinSet::new();
        let mut metrics = None;
        if let Some(address) = settings.metrics {
            let failed = |cause| Error::Listen { address: address.to_string(), cause };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            info!(target: "lab", "descheduler stand-in: http://{bound}/metrics");
            metrics = Some(bound);
            servers.spawn(proxy::serve(listener, home.web.clone(), state.clone()));
        }
        if let Some(url) = &settings.prometheus_url {
            let patience = prometheus::answer(settings.time_scale);
            settings.prometheus_url = Some(guard::start(url, patience, &mut servers).await?);
        }
        let log = process::log(&settings.folder);
        let policy = process::policy(&settings.folder);
        let task = tokio::spawn(Operator::new(client, settings, home, state_tell, stop_seen, psi_seen).run());
        Ok(StandIn { state, stop, psi, task, metrics, log, policy, _servers: servers })
    }

    /// The descheduler as it is now, and what becomes of it.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// To say whether the nodes measure pressure, where that changes.
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

    /// The policy of the descheduler that was started last; there is no such file before.
    pub fn policy(&self) -> PathBuf {
        self.policy.clone()
    }

    /// Ends the descheduler in its own time, and then itself.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.task).await;
    }
}

/// Plays the descheduler operator until told to stop.
pub async fn run(client: Client, settings: Settings, until: impl Future<Output = ()>) -> io::Result<()> {
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
