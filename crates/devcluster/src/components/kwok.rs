//! KWOK: simulates the kubelet for nodes that carry its annotation, and for the pods on them.

use super::{ClusterFiles, Launch};
use crate::{error::Result, ports::Port};

/// What KWOK is to do with nodes and pods: `Stage` documents, without which it refuses to start.
#[derive(Debug, Clone)]
pub struct Kwok {
    pub stages: String,
}

impl Default for Kwok {
    /// Nodes become and stay Ready, pods run at once, deleted pods go at once.
    fn default() -> Self {
        Kwok { stages: include_str!("kwok-stages.yaml").to_owned() }
    }
}

impl Kwok {
    pub(crate) fn launch(&self, files: &ClusterFiles, port: Port) -> Result<Launch> {
        let args = vec![
            format!("--kubeconfig={}", files.kubeconfig("kwok", "system:masters")?),
            format!("--config={}", files.write("kwok-stages.yaml", &self.stages)?),
            "--manage-all-nodes=false".into(),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".into(),
            // Leases keep nodes alive at a fraction of the cost of status updates.
            "--node-lease-duration-seconds=40".into(),
            "--node-ip=127.0.0.1".into(),
            "--cidr=10.64.0.0/10".into(),
            format!("--server-address={}", port.address()),
        ];
        Ok(Launch { args, url: format!("http://{}", port.address()), ready: "/healthz", port })
    }
}
