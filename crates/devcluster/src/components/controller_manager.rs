//! kube-controller-manager, running just the controllers that were named.

use super::{ClusterFiles, Launch};
use crate::{error::Result, ports::Port};

pub(crate) fn launch(files: &ClusterFiles, controllers: &[String], port: Port) -> Result<Launch> {
    // Its own role covers only what it does as a whole; its controllers' rights belong to service accounts that do not
    // exist here. Hence the group, and a name that tells its writes from the administrator's.
    let kubeconfig = files.kubeconfig("system:kube-controller-manager", "system:masters")?;
    let mut args = files.control_flags(&port, &kubeconfig);
    args.extend([
        // A list without `*` starts these and no others.
        format!("--controllers={}", controllers.join(",")),
        "--use-service-account-credentials=false".into(),
        format!("--service-account-private-key-file={}", files.path("tokens.key")),
        format!("--root-ca-file={}", files.path("ca.crt")),
        // It makes this folder, whose usual place belongs to the machine.
        format!("--flex-volume-plugin-dir={}", files.path("volume-plugins")),
    ]);
    Ok(Launch { args, url: format!("https://{}", port.address()), ready: "/healthz", port })
}
