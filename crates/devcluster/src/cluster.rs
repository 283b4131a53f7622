//! A running control plane: built, started, disturbed and stopped.

use std::{
    collections::BTreeMap,
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
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
    Access, AuditLog,
    access::Proxy,
    components::{
        Component, Descheduler, Kwok, Plan, Prometheus, Site, api_server, controller_manager, etcd, scheduler,
    },
    error::{Context, Error, Result},
    kubeconfig, leash,
    pki::Pki,
    ports::Port,
    process::{Invocation, Process, Startup, resident_memory},
    tools,
};

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_GRACE: Duration = Duration::from_secs(10);

/// What the cluster is to consist of besides etcd and kube-apiserver.
#[derive(Debug, Default)]
pub struct Builder {
    scheduler: bool,
    controllers: Vec<String>,
    kwok: Option<Kwok>,
    prometheus: Option<Prometheus>,
    descheduler: Option<Descheduler>,
}

impl Builder {
    pub fn scheduler(mut self) -> Self {
        self.scheduler = true;
        self
    }

    /// kube-controller-manager with the named controllers and no others, for example `namespace-controller`.
    pub fn controllers(mut self, names: &[&str]) -> Self {
        self.controllers.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    pub fn kwok(mut self, kwok: Kwok) -> Self {
        self.kwok = Some(kwok);
        self
    }

    pub fn prometheus(mut self, prometheus: Prometheus) -> Self {
        self.prometheus = Some(prometheus);
        self
    }

    pub fn descheduler(mut self, descheduler: Descheduler) -> Self {
        self.descheduler = Some(descheduler);
        self
    }

    /// Builds the programs that are missing, starts everything, and returns when everything says it is ready.
    pub async fn start(self) -> Result<Cluster> {
        let programs = self.programs().await?;
        let cluster = self.prepare(&programs)?;
        match cluster.start_all().await {
            Ok(()) => Ok(cluster),
            Err(error) => {
                // The error names a log file in there.
                cluster.keep_folder();
                Err(error)
            }
        }
    }

    fn components(&self) -> Vec<Component> {
        let wanted = [
            (Component::Etcd, true),
            (Component::ApiServer, true),
            (Component::Scheduler, self.scheduler),
            (Component::ControllerManager, !self.controllers.is_empty()),
            (Component::Kwok, self.kwok.is_some()),
            (Component::Prometheus, self.prometheus.is_some()),
            (Component::Descheduler, self.descheduler.is_some()),
        ];
        wanted.into_iter().filter_map(|(component, wanted)| wanted.then_some(component)).collect()
    }

    async fn programs(&self) -> Result<BTreeMap<Component, PathBuf>> {
        let components = self.components();
        let programs: Vec<_> = components.iter().map(|component| component.program()).collect();
        let paths = tokio::task::spawn_blocking(move || tools::ensure_all(&programs)).await;
        let paths = paths.map_err(io::Error::other).context(|| "looking for the programs".into())??;
        Ok(components.into_iter().zip(paths).collect())
    }

    fn prepare(&self, programs: &BTreeMap<Component, PathBuf>) -> Result<Cluster> {
        let folder = private_folder()?;

        let (etcd_port, peer_port, api_port) = (Port::reserve()?, Port::reserve()?, Port::reserve()?);
        let etcd_url = format!("http://{}", etcd_port.address());
        let site = Site {
            folder: folder.path().to_owned(),
            pki: Pki::create(folder.path())?,
            api_server: format!("https://{}", api_port.address()),
        };
        let admin = site.pki.client("admin", "system:masters")?;
        let admin = kubeconfig::with_certificate(&site.api_server, &site.pki.ca_pem(), &admin);
        let access = Access::new(admin, folder.path(), Proxy::Never);

        let mut plans = vec![
            (Component::Etcd, etcd::plan(&site, etcd_port, &peer_port)?),
            (Component::ApiServer, api_server::plan(&site, &etcd_url, api_port)?),
        ];
        if self.scheduler {
            plans.push((Component::Scheduler, scheduler::plan(&site, Port::reserve()?)?));
        }
        if !self.controllers.is_empty() {
            let plan = controller_manager::plan(&site, &self.controllers, Port::reserve()?)?;
            plans.push((Component::ControllerManager, plan));
        }
        if let Some(kwok) = &self.kwok {
            plans.push((Component::Kwok, kwok.plan(&site, Port::reserve()?)?));
        }
        if let Some(prometheus) = &self.prometheus {
            let port = prometheus.port.map_or_else(Port::reserve, Port::preferably)?;
            plans.push((Component::Prometheus, prometheus.plan(&site, port)?));
        }
        if let Some(descheduler) = &self.descheduler {
            plans.push((Component::Descheduler, descheduler.plan(&site, Port::reserve()?)?));
        }
        let part = |(component, plan): (Component, Plan)| {
            let invocation = site.invocation(component, &programs[&component], plan.args.clone());
            let Plan { url, ready, port, .. } = plan;
            let part = Part { invocation, url, ready, port, process: Mutex::default(), startup: OnceLock::new() };
            (component, part)
        };
        let parts = plans.into_iter().map(part).collect();
        let audit = AuditLog::new(folder.path().join(api_server::AUDIT_LOG));
        Ok(Cluster { parts, access, audit, etcd_url, _peer_port: peer_port, folder: Mutex::new(Some(folder)) })
    }
}

/// A control plane of our own. Dropping it ends its processes and removes its folder.
#[derive(Debug)]
pub struct Cluster {
    parts: BTreeMap<Component, Part>,
    access: Access,
    audit: AuditLog,
    etcd_url: String,
    _peer_port: Port,
    folder: Mutex<Option<TempDir>>,
}

#[derive(Debug)]
struct Part {
    invocation: Invocation,
    url: String,
    ready: &'static str,
    port: Port,
    process: Mutex<Option<Arc<Process>>>,
    startup: OnceLock<Startup>,
}

impl Part {
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

    /// Clients and kubeconfig files for anybody.
    pub fn access(&self) -> &Access {
        &self.access
    }

    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    pub fn pid(&self, component: Component) -> Result<u32> {
        Ok(self.running(component)?.pid())
    }

    pub fn log(&self, component: Component) -> Result<&Path> {
        Ok(&self.part(component)?.invocation.log)
    }

    /// Where the component listens, for example `127.0.0.1:43210`.
    pub fn address(&self, component: Component) -> Result<String> {
        Ok(self.part(component)?.port.address())
    }

    /// How long the component's first start took.
    pub fn startup(&self, component: Component) -> Result<Startup> {
        self.part(component)?.startup.get().copied().ok_or(Error::NotStarted(component.name()))
    }

    /// Ends a component in its own good time (a few seconds), as an administrator would.
    pub async fn stop(&self, component: Component) -> Result<()> {
        let process = self.running(component)?;
        process.stop(STOP_GRACE).await?;
        self.part(component)?.set(None);
        Ok(())
    }

    /// Ends a component with SIGKILL.
    pub fn kill(&self, component: Component) -> Result<()> {
        self.running(component)?.kill();
        self.part(component)?.set(None);
        Ok(())
    }

    /// Starts a component that was stopped or killed, on the same port and data, and returns when it is ready.
    pub async fn start(&self, component: Component) -> Result<()> {
        let part = self.part(component)?;
        if part.process().is_none() {
            if component == Component::ApiServer {
                self.audit.begin();
            }
            part.set(Some(Arc::new(Process::spawn(&part.invocation)?)));
        }
        self.wait_ready(component).await
    }

    pub async fn restart(&self, component: Component) -> Result<()> {
        self.stop(component).await?;
        self.start(component).await
    }

    /// Stops a component's clock: it keeps its connections and answers nobody. Paused etcd is a slow API server.
    pub fn pause(&self, component: Component) -> Result<()> {
        self.running(component)?.signal(Signal::STOP)
    }

    pub fn resume(&self, component: Component) -> Result<()> {
        self.running(component)?.signal(Signal::CONT)
    }

    /// Makes every resourceVersion seen so far too old to watch from: the next such watch is answered with 410.
    ///
    /// The history is compacted away in etcd, and the API server, which keeps a window of it in memory, is restarted.
    pub async fn expire_watches(&self) -> Result<()> {
        // A write, so that even the newest resourceVersion handed out so far is older than what is kept.
        let revision = self.store("/devcluster/expire-watches", b"").await?;
        let etcd = probe_client(&self.etcd_url, &self.access).await?;
        post(&etcd, "/v3/kv/compaction", &json!({"revision": revision})).await?;
        self.kill(Component::ApiServer)?;
        self.start(Component::ApiServer).await
    }

    /// Writes to etcd behind the API server's back, for objects that an older API server accepted and today's would not.
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

    fn part(&self, component: Component) -> Result<&Part> {
        self.parts.get(&component).ok_or(Error::NotStarted(component.name()))
    }

    fn running(&self, component: Component) -> Result<Arc<Process>> {
        self.part(component)?.process().ok_or(Error::NotStarted(component.name()))
    }

    /// etcd and the API server side by side, for the latter waits for the former; then the rest, which wait for it.
    async fn start_all(&self) -> Result<()> {
        let (first, rest): (Vec<_>, Vec<_>) =
            self.parts.keys().partition(|&&part| matches!(part, Component::Etcd | Component::ApiServer));
        try_join_all(first.into_iter().map(|&component| self.start(component))).await?;
        try_join_all(rest.into_iter().map(|&component| self.start(component))).await?;
        Ok(())
    }

    async fn wait_ready(&self, component: Component) -> Result<()> {
        let part = self.part(component)?;
        let client = probe_client(&part.url, &self.access).await?;
        let startup = self.running(component)?.wait_ready(START_LIMIT, &client, part.ready).await?;
        part.startup.get_or_init(|| startup);
        Ok(())
    }

    fn keep_folder(&self) {
        if let Some(folder) = self.folder.lock().unwrap_or_else(PoisonError::into_inner).take() {
            leash::keep(folder.path());
            let _ = folder.keep();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Processes first, or they would write into the folder while it is being removed.
        self.parts.values().for_each(|part| part.set(None));
        if let Some(folder) = self.folder.lock().unwrap_or_else(PoisonError::into_inner).take() {
            leash::keep(folder.path());
        }
    }
}

/// A folder that only its owner may look into, for it will hold keys. It goes when we go.
pub(crate) fn private_folder() -> Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("devcluster-").permissions(Permissions::from_mode(0o700)).tempdir();
    let folder = folder.context(|| "creating a temporary folder".into())?;
    leash::remove_at_death(folder.path()).context(|| "starting the keeper".into())?;
    Ok(folder)
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
