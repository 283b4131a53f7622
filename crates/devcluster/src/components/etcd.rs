//! etcd: one member, for the API server only.

use super::{ClusterFiles, Launch};
use crate::{error::Result, ports::Port};

pub(crate) fn launch(files: &ClusterFiles, client: Port, peer: &Port) -> Result<Launch> {
    let (client_url, peer_url) = (format!("http://{}", client.address()), format!("http://{}", peer.address()));
    let args = vec![
        "--name=devcluster".into(),
        format!("--data-dir={}", files.path("etcd")),
        format!("--listen-client-urls={client_url}"),
        format!("--advertise-client-urls={client_url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=devcluster={peer_url}"),
        // The data need not survive the machine, and waiting for the disk is most of what a write costs.
        "--unsafe-no-fsync=true".into(),
        // A snapshot is a pause; no test writes enough to need one.
        "--snapshot-count=1000000".into(),
        "--log-level=warn".into(),
    ];
    Ok(Launch { args, url: client_url, ready: "/readyz", port: client })
}
