//! Access to an API server as the administrator, as any user with any groups, or as a service account.
//! Works on any cluster: users are impersonated, as `kubectl --as` does, and service accounts present a token that the
//! API server has issued.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU64, Ordering},
};

use http::{HeaderValue, header::USER_AGENT};
use k8s_openapi::api::{authentication::v1::TokenRequest, core::v1::ServiceAccount};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};

use crate::{
    CertificateAndKey,
    error::{Context, Result},
    kubeconfig,
    tools::{self, Program},
};

/// The user agent of requests for which the caller sets none.
const USER_AGENT_VALUE: &str = concat!("virt-advisor/", env!("CARGO_PKG_VERSION"), " (devcluster)");

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    Admin,
    User { name: String, groups: Vec<String> },
    ServiceAccount { namespace: String, name: String },
}

impl Identity {
    pub fn user(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        Identity::User { name: name.to_owned(), groups }
    }

    pub fn service_account(namespace: &str, name: &str) -> Self {
        Identity::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// The user name of RBAC and of the audit log.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Admin => f.write_str("admin"),
            Identity::User { name, .. } => f.write_str(name),
            Identity::ServiceAccount { namespace, name } => write!(f, "system:serviceaccount:{namespace}:{name}"),
        }
    }
}

#[derive(Debug)]
pub struct Access {
    admin: Kubeconfig,
    folder: PathBuf,
    proxy: Proxy,
}

/// Whether requests go through the proxy that the environment names. To loopback they never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxy {
    Never,
    AsConfigured,
}

impl Access {
    /// `folder` takes the kubeconfig files that are asked for.
    pub(crate) fn new(admin: Kubeconfig, folder: &Path, proxy: Proxy) -> Self {
        Access { admin, folder: folder.to_owned(), proxy }
    }

    /// A client for the administrator. Make one per test: a client does not outlive its runtime.
    pub async fn client(&self) -> Result<Client> {
        self.client_for(&Identity::Admin).await
    }

    pub async fn client_for(&self, who: &Identity) -> Result<Client> {
        let config = self.config(who).await?;
        Client::try_from(config).context(|| format!("making a client for {who}"))
    }

    /// A client configuration without retries: callers see every answer of the server, 429 included.
    pub async fn config(&self, who: &Identity) -> Result<Config> {
        let kubeconfig = self.kubeconfig_value(who).await?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        config.headers.push((USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE)));
        if self.proxy == Proxy::Never {
            config.proxy_url = None;
        }
        Ok(config)
    }

    /// A kubeconfig file for `who`, readable by its owner only. It is removed with the cluster.
    pub async fn kubeconfig(&self, who: &Identity) -> Result<PathBuf> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = match who {
            Identity::Admin => self.folder.join("admin.kubeconfig"),
            _ => self.folder.join(format!("{}.kubeconfig", COUNT.fetch_add(1, Ordering::Relaxed))),
        };
        kubeconfig::write(&self.kubeconfig_value(who).await?, &path)?;
        Ok(path)
    }

    pub(crate) fn certificate_kubeconfig(&self, user: &str, pair: &CertificateAndKey) -> Result<PathBuf> {
        let path = self.folder.join(format!("{}.kubeconfig", user.replace(':', "-")));
        kubeconfig::write(&kubeconfig::with_auth(&self.admin, |_| kubeconfig::certificate(pair)), &path)?;
        Ok(path)
    }

    async fn kubeconfig_value(&self, who: &Identity) -> Result<Kubeconfig> {
        Ok(match who {
            Identity::Admin => self.admin.clone(),
            Identity::User { name, groups } => kubeconfig::with_auth(&self.admin, |auth| AuthInfo {
                impersonate: Some(name.clone()),
                impersonate_groups: Some(groups.clone()),
                ..auth
            }),
            Identity::ServiceAccount { namespace, name } => {
                let token = self.token(namespace, name).await?;
                kubeconfig::with_auth(&self.admin, |_| AuthInfo { token: Some(token.into()), ..AuthInfo::default() })
            }
        })
    }

    async fn token(&self, namespace: &str, name: &str) -> Result<String> {
        let client = Box::pin(self.client()).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &TokenRequest::default())
            .await
            .context(|| format!("asking for a token of ServiceAccount {namespace}/{name}, which must exist"))?;
        Ok(answer.status.map(|status| status.token).unwrap_or_default())
    }

    /// Runs kubectl as `who`, with its own cache and without colors.
    pub async fn kubectl(&self, who: &Identity, args: &[&str]) -> Result<Output> {
        let mut command = self.kubectl_command(who).await?;
        command.args(args);
        let run = tokio::task::spawn_blocking(move || command.output());
        run.await.map_err(std::io::Error::other).flatten().context(|| format!("running kubectl {}", args.join(" ")))
    }

    /// The kubectl of this cluster's version, set up for `who`.
    pub async fn kubectl_command(&self, who: &Identity) -> Result<Command> {
        let kubeconfig = self.kubeconfig(who).await?;
        let program = tokio::task::spawn_blocking(|| tools::ensure(Program::Kubectl)).await;
        let program = program.map_err(std::io::Error::other).context(|| "looking for kubectl".into())??;
        let mut command = Command::new(program);
        command.env("KUBECONFIG", kubeconfig).env("HOME", &self.folder).env("NO_COLOR", "1");
        Ok(command)
    }
}
