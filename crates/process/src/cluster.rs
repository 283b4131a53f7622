//! Which cluster a program talks to, and as whom.

use std::path::PathBuf;

use anyhow::Context;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// What a person has chosen on the command line, as with kubectl.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// Another user to act as, and the groups of that user.
    pub user: Option<String>,
    pub groups: Vec<String>,
}

impl Selection {
    /// The cluster of the file and context, or else the one that the environment names: a kubeconfig, or the pod's own cluster.
    pub async fn config(&self) -> anyhow::Result<Config> {
        let mut config = self.chosen().await?;
        if self.user.is_some() {
            config.auth_info.impersonate.clone_from(&self.user);
            config.auth_info.impersonate_groups = (!self.groups.is_empty()).then(|| self.groups.clone());
        }
        Ok(config)
    }

    async fn chosen(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        match (&self.kubeconfig, &self.context) {
            (Some(path), _) => {
                let reading = || format!("reading the kubeconfig {}", path.display());
                let kubeconfig = Kubeconfig::read_from(path).with_context(reading)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.with_context(reading)
            }
            (None, Some(_)) => Config::from_kubeconfig(&options).await.context("reading the kubeconfig"),
            // The error of `infer` lists all attempts; one line with what to do replaces it.
            (None, None) => Config::infer()
                .await
                .ok()
                .context("there is no cluster to look at: set KUBECONFIG to a kubeconfig file"),
        }
    }
}
