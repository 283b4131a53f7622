//! The control plane of a benchmark: with our kinds, and with kinds and objects of third parties.

use anyhow::ensure;
use devcluster::{Cluster, Identity};

use crate::root;

pub(crate) async fn start() -> anyhow::Result<Cluster> {
    let cluster = Cluster::builder().start().await?;
    for args in [
        &["apply", "--server-side", "-k", "config/crd"][..],
        &["apply", "--server-side", "-k", "config/crd/third-party"],
        &["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"],
        &["apply", "--server-side", "-k", "config/samples/third-party"],
        &["apply", "--server-side", "--subresource=status", "-f", "config/samples/third-party/status.yaml"],
    ] {
        kubectl(&cluster, args).await?;
    }
    Ok(cluster)
}

/// Runs kubectl from the root of the repository. An error has what it said.
pub(crate) async fn kubectl(cluster: &Cluster, args: &[&str]) -> anyhow::Result<()> {
    let mut kubectl = cluster.access().kubectl_command(&Identity::Admin).await?;
    let output = kubectl.args(args).current_dir(root()).output()?;
    ensure!(output.status.success(), "kubectl {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(())
}
