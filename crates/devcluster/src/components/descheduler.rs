//! The real descheduler, run beside the cluster with a policy of the caller's.

use std::time::Duration;

use super::{ClusterFiles, Launch};
use crate::{error::Result, ports::Port};

#[derive(Debug, Clone)]
pub struct Descheduler {
    /// A `DeschedulerPolicy` document.
    pub policy: String,
    pub interval: Duration,
    pub feature_gates: Vec<String>,
}

impl Default for Descheduler {
    /// Evicts nothing, once a minute.
    fn default() -> Self {
        Descheduler {
            policy: "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n".into(),
            interval: Duration::from_secs(60),
            feature_gates: Vec::new(),
        }
    }
}

impl Descheduler {
    pub(crate) fn launch(&self, files: &ClusterFiles, port: Port) -> Result<Launch> {
        let kubeconfig = files.kubeconfig("descheduler", "system:masters")?;
        // The name that our build looks for in its working folder; see the stamps in `tools/program.rs`.
        files.write("prometheus-ca.crt", &files.pki.ca_pem())?;
        let mut args = files.serving_flags(&port);
        args.extend([
            format!("--kubeconfig={kubeconfig}"),
            format!("--policy-config-file={}", files.write("descheduler-policy.yaml", &self.policy)?),
            format!("--descheduling-interval={}ms", self.interval.as_millis()),
            "--leader-elect=false".into(),
            "--v=3".into(),
        ]);
        if !self.feature_gates.is_empty() {
            args.push(format!("--feature-gates={}", self.feature_gates.join(",")));
        }
        Ok(Launch { args, url: format!("https://{}", port.address()), ready: "/healthz", port })
    }
}
