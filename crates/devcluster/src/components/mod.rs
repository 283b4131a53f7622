//! The components of a cluster, one per file: the command line with the reason for every unusual flag, and how to ask
//! whether the component is ready.

pub(crate) mod api_server;
pub(crate) mod controller_manager;
mod descheduler;
pub(crate) mod etcd;
mod kwok;
mod prometheus;
pub(crate) mod scheduler;

use std::{
    fmt,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

pub use descheduler::Descheduler;
pub use kwok::Kwok;
pub use prometheus::Prometheus;

use crate::{
    error::{Context, Result},
    kubeconfig,
    pki::Pki,
    ports::Port,
    process::Invocation,
    tools::Program,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    Etcd,
    ApiServer,
    Scheduler,
    ControllerManager,
    Kwok,
    Prometheus,
    Descheduler,
}

impl Component {
    pub fn program(self) -> Program {
        match self {
            Component::Etcd => Program::Etcd,
            Component::ApiServer => Program::KubeApiserver,
            Component::Scheduler => Program::KubeScheduler,
            Component::ControllerManager => Program::KubeControllerManager,
            Component::Kwok => Program::Kwok,
            Component::Prometheus => Program::Prometheus,
            Component::Descheduler => Program::Descheduler,
        }
    }

    pub fn name(self) -> &'static str {
        self.program().name()
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What all components share: the folder of the cluster, its certificates and the URL of the API server.
#[derive(Debug)]
pub(crate) struct ClusterFiles {
    pub(crate) folder: PathBuf,
    pub(crate) pki: Pki,
    pub(crate) api_server: String,
    /// Where a kubelet and its pods reach the API server, if there are any.
    pub(crate) node_address: Option<Ipv4Addr>,
}

/// How to run a component and how to ask it whether it is ready.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) args: Vec<String>,
    pub(crate) url: String,
    pub(crate) ready: &'static str,
    pub(crate) port: Port,
}

impl ClusterFiles {
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).context(|| format!("writing {}", path.display()))?;
        Ok(path.display().to_string())
    }

    /// A kubeconfig for a component with its own user, so that the audit log tells who wrote.
    pub(crate) fn kubeconfig(&self, user: &str, group: &str) -> Result<String> {
        let pair = self.pki.client(user, group)?;
        let path = self.folder.join(format!("{}.kubeconfig", user.trim_start_matches("system:")));
        kubeconfig::write(&kubeconfig::with_certificate(&self.api_server, &self.pki.ca_pem(), &pair), &path)?;
        Ok(path.display().to_string())
    }

    /// The flags by which Kubernetes' own programs serve HTTPS: on our port, with our certificate.
    fn serving_flags(&self, port: &Port) -> Vec<String> {
        self.serving_flags_at(Ipv4Addr::LOCALHOST, port)
    }

    fn serving_flags_at(&self, address: Ipv4Addr, port: &Port) -> Vec<String> {
        vec![
            format!("--bind-address={address}"),
            format!("--secure-port={}", port.number()),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
        ]
    }

    /// The flags that kube-scheduler and kube-controller-manager have in common: one instance each, for our API server.
    fn control_flags(&self, port: &Port, kubeconfig: &str) -> Vec<String> {
        let mut flags = self.serving_flags(port);
        flags.extend([
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--authentication-tolerate-lookup-failure=true".into(),
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics".into(),
            // One instance: an election would only delay the first pod.
            "--leader-elect=false".into(),
            // The default of some dozens of requests per second is for shared API servers.
            "--kube-api-qps=1000".into(),
            "--kube-api-burst=2000".into(),
        ]);
        flags
    }

    pub(crate) fn invocation(&self, component: Component, program: &Path, args: Vec<String>) -> Invocation {
        let name = component.name();
        Invocation {
            name,
            program: program.to_owned(),
            args,
            folder: self.folder.clone(),
            log: self.folder.join(format!("{name}.log")),
            env: Vec::new(),
        }
    }
}
