//! containerd with runc, and the network of pods.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, ensure};
use devcluster::{
    RunningProgram,
    tools::{self, Program},
};
use serde_json::json;
use testkit::within;

use crate::{archive::PAUSE, prerequisites};

pub(crate) const SOCKET: &str = "/run/containerd/containerd.sock";
/// The addresses of pods.
pub(crate) const PODS: &str = "10.244.0.0/24";

/// The folder in which containerd and the kubelet keep their state.
pub(crate) async fn start(folder: &Path) -> anyhow::Result<RunningProgram> {
    let network = folder.join("cni");
    fs::create_dir(&network)?;
    fs::write(network.join("10-bridge.conflist"), conflist().to_string())?;
    let config = folder.join("containerd.toml");
    fs::write(&config, settings(folder, &network)?)?;
    let program = tools::ensure(Program::Containerd)?;
    let args = vec!["--config".to_owned(), config.display().to_string()];
    let containerd = RunningProgram::spawn("containerd", &program, args, folder, &folder.join("containerd.log"))?;
    // A machine that is busy with builds takes its time.
    let answers = async || ctr(&["version"]).is_ok().then_some(());
    within(Duration::from_secs(180), "containerd answers", answers).await;
    Ok(containerd)
}

/// Makes an image known to the kubelet.
pub(crate) fn import(archive: &Path) -> anyhow::Result<()> {
    ctr(&["images", "import", &archive.display().to_string()])
}

fn ctr(args: &[&str]) -> anyhow::Result<()> {
    let program = tools::ensure(Program::Ctr)?;
    // The namespace is that of the kubelet's images.
    let output = Command::new(program).args(["--address", SOCKET, "--namespace", "k8s.io"]).args(args).output();
    let output = output.context("starting ctr")?;
    ensure!(output.status.success(), "ctr {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn settings(folder: &Path, network: &Path) -> anyhow::Result<String> {
    let (runc, plugins) = (prerequisites::find("runc")?, prerequisites::cni_folder()?);
    let path = |path: PathBuf| path.display().to_string();
    let (root, opt) = (path(folder.join("containerd")), path(folder.join("opt")));
    let (runc, plugins, network) = (path(runc), plugins.display(), network.display());
    Ok(format!(
        r#"version = 3
root = "{root}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.nri.v1.nri"]
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
# Whoever has not all rights of root may not ask for less than it has itself.
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{plugins}"]
conf_dir = "{network}"
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"#
    ))
}

fn conflist() -> serde_json::Value {
    json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {
            "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
            "ipam": {
                "type": "host-local", "dataDir": "/run/pod-addresses",
                "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]})
}
