//! New clusters for these tests.

use devcluster::{Builder, Cluster};
use kube::Client;

pub(crate) async fn blank(builder: Builder) -> (Cluster, Client) {
    let cluster = builder.start().await.unwrap_or_else(|error| panic!("{error}"));
    let client = cluster.access().client().await.unwrap();
    (cluster, client)
}
