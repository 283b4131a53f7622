//! kube-controller-manager, running just the controllers that were named.

use super::{Plan, Site};
use crate::{error::Result, ports::Port};

pub(crate) fn plan(site: &Site, controllers: &[String], port: Port) -> Result<Plan> {
    // Its own role covers only what it does as a whole; its controllers' rights belong to service accounts that do not
    // exist here. Hence the group, and a name that tells its writes from the administrator's.
    let kubeconfig = site.kubeconfig("system:kube-controller-manager", "system:masters")?;
    let mut args = site.control_flags(&port, &kubeconfig);
    args.extend([
        // A list without `*` starts these and no others.
        format!("--controllers={}", controllers.join(",")),
        "--use-service-account-credentials=false".into(),
        format!("--service-account-private-key-file={}", site.path("tokens.key")),
        format!("--root-ca-file={}", site.path("ca.crt")),
    ]);
    Ok(Plan { args, url: format!("https://{}", port.address()), ready: "/healthz", port })
}
