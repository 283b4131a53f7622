//! Which cluster a program talks to.

use anyhow::Context;
use kube::{Config, config::KubeConfigOptions};

/// The cluster of a context, or else the one that the environment names: a kubeconfig, or the pod's own cluster.
pub async fn config(context: Option<&str>) -> anyhow::Result<Config> {
    match context {
        Some(context) => {
            let selection = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
            Config::from_kubeconfig(&selection).await.context("reading the kubeconfig")
        }
        // The error of `infer` lists all attempts; one line with what to do replaces it.
        None => {
            Config::infer().await.ok().context("there is no cluster to look at: set KUBECONFIG to a kubeconfig file")
        }
    }
}
