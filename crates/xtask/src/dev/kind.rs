//! A cluster of kind, with the program and the kubeconfig of the user.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

use super::CONTEXT_NAMESPACE;
use crate::kubectl::Kubectl;

pub(super) const CLUSTER: &str = "virt-advisor-dev";
pub(super) const CONTEXT: &str = "kind-virt-advisor-dev";

pub(super) fn is_installed() -> bool {
    let version = Command::new("kind").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

pub(super) fn create() -> anyhow::Result<()> {
    if exists()? {
        println!("it is there already");
    } else {
        run(&["create", "cluster", "--name", CLUSTER])?;
    }
    Kubectl::pinned()?.run(&["config", "set-context", CONTEXT, &format!("--namespace={CONTEXT_NAMESPACE}")])
}

/// Makes the image in an archive known to the nodes.
pub(super) fn load(archive: &Path) -> anyhow::Result<()> {
    run(&["load", "image-archive", &archive.display().to_string(), "--name", CLUSTER])
}

pub(super) fn delete() -> anyhow::Result<()> {
    match is_installed() && exists()? {
        true => run(&["delete", "cluster", "--name", CLUSTER]),
        false => Ok(()),
    }
}

fn exists() -> anyhow::Result<bool> {
    let output = Command::new("kind").args(["get", "clusters"]).stderr(Stdio::inherit()).output().context("kind")?;
    ensure!(
        output.status.success(),
        "kind get clusters failed ({}); `make dev-setup OWN=1` does without kind",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).lines().any(|name| name == CLUSTER))
}

fn run(args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("kind").args(args).status().context("kind")?;
    ensure!(status.success(), "kind {} failed ({status})", args.join(" "));
    Ok(())
}
