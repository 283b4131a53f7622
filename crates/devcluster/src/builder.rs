//! Which components a cluster has, and how it is set up before they are started.

use std::{collections::BTreeMap, fs::Permissions, io, net::Ipv4Addr, os::unix::fs::PermissionsExt, path::PathBuf};

use tempfile::TempDir;

use crate::{
    Access, AuditLog, Cluster,
    access::Proxy,
    cluster::ComponentState,
    components::{
        ClusterFiles, Component, Descheduler, Kwok, Launch, Prometheus, api_server, controller_manager, etcd, scheduler,
    },
    error::{Context, Result},
    kill_on_exit, kubeconfig,
    pki::Pki,
    ports::Port,
    tools,
};

/// The components of a cluster besides etcd and kube-apiserver.
#[derive(Debug, Default)]
pub struct Builder {
    scheduler: bool,
    controllers: Vec<String>,
    kwok: Option<Kwok>,
    prometheus: Option<Prometheus>,
    descheduler: Option<Descheduler>,
    node_address: Option<Ipv4Addr>,
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

    /// For a kubelet on this machine and the pods that it runs, which reach the API server at this address of the machine.
    pub fn node_address(mut self, address: Ipv4Addr) -> Self {
        self.node_address = Some(address);
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
        let files = ClusterFiles {
            folder: folder.path().to_owned(),
            pki: Pki::create(folder.path(), self.node_address)?,
            api_server: format!("https://{}", api_port.address()),
            node_address: self.node_address,
        };
        let admin = files.pki.client("admin", "system:masters")?;
        let admin = kubeconfig::with_certificate(&files.api_server, &files.pki.ca_pem(), &admin);
        let access = Access::new(admin, folder.path(), Proxy::Never);

        let mut launches = vec![
            (Component::Etcd, etcd::launch(&files, etcd_port, &peer_port)?),
            (Component::ApiServer, api_server::launch(&files, &etcd_url, api_port)?),
        ];
        if self.scheduler {
            launches.push((Component::Scheduler, scheduler::launch(&files, Port::reserve()?)?));
        }
        if !self.controllers.is_empty() {
            let launch = controller_manager::launch(&files, &self.controllers, Port::reserve()?)?;
            launches.push((Component::ControllerManager, launch));
        }
        if let Some(kwok) = &self.kwok {
            launches.push((Component::Kwok, kwok.launch(&files, Port::reserve()?)?));
        }
        if let Some(prometheus) = &self.prometheus {
            let port = prometheus.port.map_or_else(Port::reserve, Port::preferably)?;
            launches.push((Component::Prometheus, prometheus.launch(&files, port)?));
        }
        if let Some(descheduler) = &self.descheduler {
            launches.push((Component::Descheduler, descheduler.launch(&files, Port::reserve()?)?));
        }
        let state = |(component, launch): (Component, Launch)| {
            let invocation = files.invocation(component, &programs[&component], launch.args.clone());
            (component, ComponentState::new(invocation, launch))
        };
        let components = launches.into_iter().map(state).collect();
        let audit = AuditLog::new(folder.path().join(api_server::AUDIT_LOG));
        Ok(Cluster::new(components, access, audit, (etcd_url, peer_port), files.pki, folder))
    }
}

/// A folder that only its owner may read, because it will hold keys. It is removed when this process ends.
pub(crate) fn private_folder() -> Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("devcluster-").permissions(Permissions::from_mode(0o700)).tempdir();
    let folder = folder.context(|| "creating a temporary folder".into())?;
    kill_on_exit::remove_on_exit(folder.path()).context(|| "starting the watchdog".into())?;
    Ok(folder)
}
