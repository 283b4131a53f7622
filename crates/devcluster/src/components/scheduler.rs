//! kube-scheduler with its default profile.

use super::{ClusterFiles, Launch};
use crate::{error::Result, ports::Port};

pub(crate) fn launch(files: &ClusterFiles, port: Port) -> Result<Launch> {
    let kubeconfig = files.kubeconfig("system:kube-scheduler", "system:authenticated")?;
    let args = files.control_flags(&port, &kubeconfig);
    Ok(Launch { args, url: format!("https://{}", port.address()), ready: "/readyz", port })
}
