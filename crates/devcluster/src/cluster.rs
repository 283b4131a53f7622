//! A running control plane: started, stopped, paused, asked.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::future::try_join_all;
use kube::{Client, Config};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Access, AuditLog, Builder, CertificateAndKey,
    components::{Component, Launch},
    error::{Context, Error, Result},
    kill_on_exit,
    pki::Pki,
    ports::Port,
    process::{Invocation, Process, Startup, is_stopped, resident_memory},
};

const START_LIMIT: Duration = Duration::from_secs(180);
const STOP_GRACE: Duration = Duration::from_secs(10);

/// A control plane of our own. Dropping it ends its processes and removes its folder.
#[derive(Debug)]
pub struct Cluster {
    components: BTreeMap<Component, ComponentState>,
    access: Access,
    audit: AuditLog,
    etcd_url: String,
    pki: Pki,
    _peer_port: Port,
    folder: Mutex<Option<TempDir>>,
}

/// A component: how it is started, where it answers, and its process while it runs.
#[derive(Debug)]
pub(crate) struct ComponentState {
    invocation: Invocation,
    url: String,
    ready: &'static str,
    port: Port,
    process: Mutex<Option<Arc<Process>>>,
    startup: OnceLock<Startup>,
}

impl ComponentState {
    pub(crate) fn new(invocation: Invocation, launch: Launch) -> Self {
        let Launch { url, ready, port, .. } = launch;
        ComponentState { invocation, url, ready, port, process: Mutex::default(), startup: OnceLock::new() }
    }

    fn process(&self) -> Option<Arc<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, process: Option<Arc<Process>>) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = process;
    }
}

impl Cluster {
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(
        components: BTreeMap<Component, ComponentState>,
        access: Access,
        audit: AuditLog,
        (etcd_url, peer_port): (String, Port),
        pki: Pki,
        folder: TempDir,
    ) -> Self {
        Cluster { components, access, audit, etcd_url, pki, _peer_port: peer_port, folder: Mutex::new(Some(folder)) }
    }

    /// Clients and kubeconfig files for anybody.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// A client certificate of the cluster's CA, as programs have that do not present a token.
    pub fn client_certificate(&self, user: &str, group: &str) -> Result<CertificateAndKey> {
        self.pki.client(user, group)
    }

    /// A kubeconfig file with such a certificate. It is removed with the cluster.
    pub fn certificate_kubeconfig(&self, user: &str, group: &str) -> Result<PathBuf> {
        self.access.certificate_kubeconfig(user, &self.pki.client(user, group)?)
    }

    /// The file with the certificate of the cluster's CA.
    pub fn ca_file(&self) -> PathBuf {
        self.pki.ca_file()
    }

    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    pub fn pid(&self, component: Component) -> Result<u32> {
        Ok(self.running(component)?.pid())
    }

    pub fn log(&self, component: Component) -> Result<&Path> {
        Ok(&self.component(component)?.invocation.log)
    }

    /// Where the component listens, for example `127.0.0.1:43210`.
    pub fn address(&self, component: Component) -> Result<String> {
        Ok(self.component(component)?.port.address())
    }

    /// How long the component's first start took.
    pub fn startup(&self, component: Component) -> Result<Startup> {
        self.component(component)?.startup.get().copied().ok_or(Error::NotStarted(component.name()))
    }

    /// Stops a component with SIGTERM, which takes it a few seconds.
    pub async fn stop(&self, component: Component) -> Result<()> {
        let process = self.running(component)?;
        process.stop(STOP_GRACE).await?;
        self.component(component)?.set(None);
        Ok(())
    }

    /// Ends a component with SIGKILL.
    pub fn kill(&self, component: Component) -> Result<()> {
        self.running(component)?.kill();
        self.component(component)?.set(None);
        Ok(())
    }

    /// Starts a component that was stopped or killed, on the same port and data, and returns when it is ready.
    pub async fn start(&self, component: Component) -> Result<()> {
        let state = self.component(component)?;
        if state.process().is_none() {
            if component == Component::ApiServer {
                self.audit.begin();
            }
            state.set(Some(Arc::new(Process::spawn(&state.invocation)?)));
        }
        self.wait_ready(component).await
    }

    pub async fn restart(&self, component: Component) -> Result<()> {
        self.stop(component).await?;
        self.start(component).await
    }

    /// Pauses a component: it keeps its connections and answers nobody. A paused etcd makes for a slow API server. When this
    /// returns, none of its threads runs any more.
    pub fn pause(&self, component: Component) -> Result<()> {
        let pid = self.pid(component)?;
        self.running(component)?.signal(Signal::STOP)?;
        while !is_stopped(pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    pub fn resume(&self, component: Component) -> Result<()> {
        self.running(component)?.signal(Signal::CONT)
    }

    /// Makes every resourceVersion so far too old to watch from: the next such watch is answered with 410. The history is removed from
    /// etcd, and the API server, which keeps a part of it in memory, is restarted.
    pub async fn expire_watches(&self) -> Result<()> {
        // A write, so that even the newest resourceVersion handed out so far is older than what is kept.
        let revision = self.store("/devcluster/expire-watches", b"").await?;
        let etcd = probe_client(&self.etcd_url, &self.access).await?;
        post(&etcd, "/v3/kv/compaction", &json!({"revision": revision})).await?;
        self.kill(Component::ApiServer)?;
        self.start(Component::ApiServer).await
    }

    /// Writes to etcd directly, for objects that an older API server accepted and today's would not.
    /// Returns the revision of the write.
    pub async fn store(&self, key: &str, value: &[u8]) -> Result<String> {
        let etcd = probe_client(&self.etcd_url, &self.access).await?;
        let (key, value) = (BASE64_STANDARD.encode(key), BASE64_STANDARD.encode(value));
        let answer = post(&etcd, "/v3/kv/put", &json!({"key": key, "value": value})).await?;
        Ok(answer["header"]["revision"].as_str().unwrap_or_default().to_owned())
    }

    /// Resident memory of a component in bytes, as the kernel counts it.
    pub fn resident_memory(&self, component: Component) -> Result<u64> {
        resident_memory(self.pid(component)?)
    }

    fn component(&self, component: Component) -> Result<&ComponentState> {
        self.components.get(&component).ok_or(Error::NotStarted(component.name()))
    }

    fn running(&self, component: Component) -> Result<Arc<Process>> {
        self.component(component)?.process().ok_or(Error::NotStarted(component.name()))
    }

    /// Starts etcd and the API server at once, because the latter waits for the former, and then the rest.
    pub(crate) async fn start_all(&self) -> Result<()> {
        let (first, rest): (Vec<_>, Vec<_>) =
            self.components.keys().partition(|&&component| matches!(component, Component::Etcd | Component::ApiServer));
        try_join_all(first.into_iter().map(|&component| self.start(component))).await?;
        try_join_all(rest.into_iter().map(|&component| self.start(component))).await?;
        Ok(())
    }

    async fn wait_ready(&self, component: Component) -> Result<()> {
        let state = self.component(component)?;
        let client = probe_client(&state.url, &self.access).await?;
        let startup = self.running(component)?.wait_ready(START_LIMIT, &client, state.ready).await?;
        state.startup.get_or_init(|| startup);
        Ok(())
    }

    pub(crate) fn keep_folder(&self) {
        if let Some(folder) = self.folder.lock().unwrap_or_else(PoisonError::into_inner).take() {
            kill_on_exit::keep(folder.path());
            let _ = folder.keep();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Processes first, or they would write into the folder while it is being removed.
        self.components.values().for_each(|component| component.set(None));
        if let Some(folder) = self.folder.lock().unwrap_or_else(PoisonError::into_inner).take() {
            kill_on_exit::keep(folder.path());
        }
    }
}

/// A client for one component's own server, which the cluster's CA vouches for.
async fn probe_client(url: &str, access: &Access) -> Result<Client> {
    let mut config: Config = access.config(&crate::Identity::Admin).await?;
    config.cluster_url = url.parse().map_err(io::Error::other).context(|| format!("reading the URL {url}"))?;
    Client::try_from(config).context(|| format!("making a client for {url}"))
}

async fn post(client: &Client, path: &str, body: &Value) -> Result<Value> {
    let doing = || format!("asking etcd for {path}");
    let request = http::Request::post(path).body(body.to_string().into_bytes()).map_err(kube::Error::HttpError);
    client.request(request.context(doing)?).await.context(doing)
}
