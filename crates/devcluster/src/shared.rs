//! One cluster per test binary, started by the first test that asks and ended with the process.

use std::env;

use kube::config::Kubeconfig;
use tokio::sync::OnceCell;

use crate::{Access, Cluster, access::Proxy, builder::private_folder, error::Result};

/// etcd and kube-apiserver of our own, shared by the tests of this process.
pub async fn own() -> Result<&'static Cluster> {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER.get_or_try_init(|| Cluster::builder().start()).await
}

/// Where tests that need no more than an API server run: on the shared cluster, or, with `USE_EXISTING_CLUSTER=true`,
/// on the one that the user's kubeconfig names.
pub async fn target() -> Result<&'static Access> {
    static EXISTING: OnceCell<Access> = OnceCell::const_new();
    if env::var("USE_EXISTING_CLUSTER").is_ok_and(|value| value.eq_ignore_ascii_case("true")) {
        EXISTING.get_or_try_init(existing).await
    } else {
        Ok(own().await?.access())
    }
}

async fn existing() -> Result<Access> {
    let folder = private_folder()?.keep();
    Ok(Access::new(Kubeconfig::read()?, &folder, Proxy::AsConfigured))
}
