//! Which cluster to talk to.

use anyhow::Context;
use kube::{Config, config::KubeConfigOptions};

/// The cluster of a context, or else the one that the environment names: a kubeconfig, or the pod's own.
pub(crate) async fn config(context: Option<&str>) -> anyhow::Result<Config> {
    match context {
        Some(context) => {
            let selection = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
            Config::from_kubeconfig(&selection).await.context("reading the kubeconfig")
        }
        // Its own error is a page of attempts; what to do about it is one line.
        None => {
            Config::infer().await.ok().context("there is no cluster to look at: set KUBECONFIG to a kubeconfig file")
        }
    }
}
