//! kube-scheduler with its default profile.

use super::{Plan, Site};
use crate::{error::Result, ports::Port};

pub(crate) fn plan(site: &Site, port: Port) -> Result<Plan> {
    let kubeconfig = site.kubeconfig("system:kube-scheduler", "system:authenticated")?;
    let mut args = site.serving_flags(&port);
    args.extend([
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--authentication-tolerate-lookup-failure=true".into(),
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics".into(),
        // One instance: an election would only delay the first pod.
        "--leader-elect=false".into(),
        // The default of 50 requests per second is for shared API servers.
        "--kube-api-qps=1000".into(),
        "--kube-api-burst=2000".into(),
    ]);
    Ok(Plan { args, url: format!("https://{}", port.address()), ready: "/readyz", port })
}
