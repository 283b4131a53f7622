//! The kubelet, and kube-proxy, which makes addresses of Services work.

use std::{fs, path::Path};

use devcluster::{
    Cluster, RunningProgram,
    tools::{self, Program},
};
use serde_json::{Value, json};

use crate::{NAME, containerd, dns::DNS, machine::ADDRESS};

pub(crate) fn start(cluster: &Cluster, folder: &Path) -> anyhow::Result<RunningProgram> {
    let resolv_conf = folder.join("resolv.conf");
    fs::write(&resolv_conf, "")?;
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": cluster.ca_file()},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": format!("unix://{}", containerd::SOCKET),
        "cgroupDriver": "cgroupfs",
        // The watchdog has made it, and removes it.
        "cgroupRoot": format!("/{NAME}"),
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": ["none"],
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": resolv_conf,
        // What containers may be refused, where root has not all rights.
        "oomScoreAdj": 0,
        "maxOpenFiles": 20000,
        // However full the disk of the machine is.
        "evictionHard": {
            "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
            "imagefs.available": "0%", "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "volumePluginDir": folder.join("volume-plugins"),
    });
    let kubeconfig = cluster.certificate_kubeconfig(&format!("system:node:{NAME}"), "system:nodes")?;
    let args = vec![
        format!("--config={}", written(folder, "kubelet.json", &config)?),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--root-dir={}", folder.join("kubelet").display()),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={ADDRESS}"),
    ];
    spawn("kubelet", Program::Kubelet, args, folder)
}

pub(crate) fn start_proxy(cluster: &Cluster, folder: &Path) -> anyhow::Result<RunningProgram> {
    let kubeconfig = cluster.certificate_kubeconfig("system:kube-proxy", "system:node-proxier")?;
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig},
        "clusterCIDR": containerd::PODS,
        "mode": "iptables",
        "oomScoreAdj": 0,
        "bindAddress": ADDRESS,
        // These belong to the whole machine.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
    });
    let args = vec![
        format!("--config={}", written(folder, "kube-proxy.json", &config)?),
        format!("--hostname-override={NAME}"),
    ];
    spawn("kube-proxy", Program::KubeProxy, args, folder)
}

fn written(folder: &Path, name: &str, config: &Value) -> anyhow::Result<String> {
    let path = folder.join(name);
    fs::write(&path, config.to_string())?;
    Ok(path.display().to_string())
}

fn spawn(name: &'static str, program: Program, args: Vec<String>, folder: &Path) -> anyhow::Result<RunningProgram> {
    let log = folder.join(format!("{name}.log"));
    Ok(RunningProgram::spawn(name, &tools::ensure(program)?, args, folder, &log)?)
}
