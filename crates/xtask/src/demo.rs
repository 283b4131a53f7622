//! Shows the two APIs on a real API server: what they accept, how it looks, and what they refuse.

use std::{io::Write, process::Output};

use anyhow::ensure;
use devcluster::{Cluster, Identity};

use crate::{cluster::stay_up, root};

pub(crate) async fn run() -> anyhow::Result<()> {
    step("Starting etcd and kube-apiserver");
    let cluster = Cluster::builder().start().await?;

    step("Installing the custom resources");
    cluster.access().install_crds(&api::crd::crds()).await?;
    kubectl(&cluster, &["get", "customresourcedefinitions"]).await?;

    step("A configuration of the platform, and a virtual machine of the lab");
    kubectl(&cluster, &["apply", "-f", "config/samples/loadaware_sample.yaml"]).await?;
    kubectl(&cluster, &["apply", "-f", "config/samples/virtualmachine_sample.yaml"]).await?;
    kubectl(&cluster, &["get", "virtplatformconfigs"]).await?;
    kubectl(&cluster, &["get", "vm"]).await?;

    step("Bad input is refused at the door: overcommitting memory by half without swap");
    let refused = show(&cluster, &["apply", "-f", "config/samples/rejected/ratio_without_swap.yaml"]).await?;
    ensure!(!refused.status.success(), "the API server accepted what it should have refused");

    step("Ready");
    stay_up(&cluster, "virtplatformconfigs,vm").await
}

fn step(title: &str) {
    println!("\n== {title}");
}

async fn kubectl(cluster: &Cluster, args: &[&str]) -> anyhow::Result<()> {
    let output = show(cluster, args).await?;
    ensure!(output.status.success(), "kubectl {} failed", args.join(" "));
    Ok(())
}

/// Runs kubectl from the root of the repository, showing the command and what it said.
async fn show(cluster: &Cluster, args: &[&str]) -> anyhow::Result<Output> {
    println!("\n$ kubectl {}", args.join(" "));
    let mut command = cluster.access().kubectl_command(&Identity::Admin).await?;
    command.args(args).current_dir(root());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    std::io::stdout().write_all(&output.stdout)?;
    std::io::stdout().write_all(&output.stderr)?;
    Ok(output)
}
