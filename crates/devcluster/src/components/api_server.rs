//! kube-apiserver: RBAC on, audit log on, certificates of our own.

use std::net::Ipv4Addr;

use super::{ClusterFiles, Launch};
use crate::{error::Result, ports::Port};

/// Every request, once it is answered, without bodies: who did what to which object. Watches when they start, and
/// writes when they arrive as well.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  omitStages: [RequestReceived]
";

pub(crate) const AUDIT_LOG: &str = "audit.log";

pub(crate) fn launch(files: &ClusterFiles, etcd: &str, port: Port) -> Result<Launch> {
    let policy = files.write("audit-policy.yaml", AUDIT_POLICY)?;
    let mut args = match files.node_address {
        None => without_nodes(files, &port),
        Some(address) => with_a_node(files, address, &port)?,
    };
    args.extend([
        format!("--etcd-servers={etcd}"),
        format!("--client-ca-file={}", files.path("ca.crt")),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", files.path("tokens.pub")),
        format!("--service-account-signing-key-file={}", files.path("tokens.key")),
        format!("--audit-policy-file={policy}"),
        format!("--audit-log-path={}", files.path(AUDIT_LOG)),
        // Tests read the log: it is not rotated, and a line is written before the answer is sent.
        "--audit-log-maxsize=4096".into(),
        "--audit-log-mode=blocking".into(),
        // Loopback, one tenant: the limits on requests in flight would only add noise to measurements.
        "--enable-priority-and-fairness=false".into(),
        "--max-requests-inflight=0".into(),
        "--max-mutating-requests-inflight=0".into(),
        // Pods with privileged specs are accepted: nothing runs them, or a node that ends with the test.
        "--allow-privileged=true".into(),
        // A test that stops the server wants it gone, not drained.
        "--shutdown-delay-duration=0".into(),
        "--shutdown-send-retry-after=false".into(),
        "--v=1".into(),
    ]);
    Ok(Launch { args, url: format!("https://{}", port.address()), ready: "/readyz", port })
}

fn without_nodes(files: &ClusterFiles, port: &Port) -> Vec<String> {
    let mut args = files.serving_flags(port);
    args.extend([
        "--advertise-address=127.0.0.1".into(),
        "--authorization-mode=RBAC".into(),
        // Nobody creates the default service accounts unless that controller was asked for, and pods would be refused.
        "--disable-admission-plugins=ServiceAccount".into(),
        // There is no node network, so there are no endpoints of the API server to keep.
        "--endpoint-reconciler-type=none".into(),
    ]);
    args
}

/// As on a cluster whose nodes run pods: these reach the API server by its Service, and it asks the kubelet for logs.
fn with_a_node(files: &ClusterFiles, address: Ipv4Addr, port: &Port) -> Result<Vec<String>> {
    let client = files.pki.client("kube-apiserver-kubelet-client", "system:masters")?;
    files.pki.write("kubelet-client.crt", &client.certificate)?;
    files.pki.write("kubelet-client.key", &client.key)?;
    let mut args = files.serving_flags_at(Ipv4Addr::UNSPECIFIED, port);
    args.extend([
        format!("--advertise-address={address}"),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        format!("--kubelet-client-certificate={}", files.path("kubelet-client.crt")),
        format!("--kubelet-client-key={}", files.path("kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP".into(),
    ]);
    Ok(args)
}
