//! kube-scheduler with its default profile.

use super::{Plan, Site};
use crate::{error::Result, ports::Port};

pub(crate) fn plan(site: &Site, port: Port) -> Result<Plan> {
    let kubeconfig = site.kubeconfig("system:kube-scheduler", "system:authenticated")?;
    let args = site.control_flags(&port, &kubeconfig);
    Ok(Plan { args, url: format!("https://{}", port.address()), ready: "/readyz", port })
}
