//! Shows the product on a real API server: what the two APIs accept and refuse, and the plan of a profile.

use std::{
    io::Write,
    process::{Command, Output},
};

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

    step("What load-aware rebalancing would change on a cluster with OpenShift's kinds (stand-ins, here)");
    kubectl(&cluster, &["apply", "--server-side", "-k", "config/crd/third-party"]).await?;
    kubectl(&cluster, &["wait", "--for=condition=Established", "crd", "--all"]).await?;
    kubectl(&cluster, &["apply", "--server-side", "-k", "config/samples/third-party"]).await?;
    let status = "config/samples/third-party/status.yaml";
    kubectl(&cluster, &["apply", "--server-side", "--subresource=status", "-f", status]).await?;
    preview(&cluster, "load-aware-rebalancing").await?;

    step("Ready");
    stay_up(&cluster, "virtplatformconfigs,vm").await
}

/// Runs the binary that was built beside this one.
async fn preview(cluster: &Cluster, profile: &str) -> anyhow::Result<()> {
    println!("\n$ virt-advisor preview {profile}");
    let program = std::env::current_exe()?.with_file_name("virt-advisor");
    ensure!(program.is_file(), "{} is not built: run `make demo`, or `make build` first", program.display());
    let mut command = Command::new(program);
    command.args(["preview", profile]).env("KUBECONFIG", cluster.access().kubeconfig(&Identity::Admin).await?);
    let status = tokio::task::spawn_blocking(move || command.status()).await??;
    ensure!(status.success(), "virt-advisor preview failed");
    Ok(())
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
