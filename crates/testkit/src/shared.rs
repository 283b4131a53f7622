//! Clusters that tests use one after another: starting an API server takes seconds, removing objects does not.
//!
//! A test that changes definitions or writes to etcd takes a cluster of its own instead.

use std::{
    ops::Deref,
    sync::{Mutex, PoisonError},
};

use devcluster::Cluster;
use serde_json::Value;

use crate::{eventually, platform::Platform};

/// Clusters that no test uses at the moment. They end with the process.
static IDLE: Mutex<Vec<Cluster>> = Mutex::new(Vec::new());

/// A cluster that the next test uses, or that ends with the value.
#[derive(Debug)]
pub struct ReusableCluster {
    cluster: Option<Cluster>,
    is_shared: bool,
}

impl ReusableCluster {
    /// A cluster that ends with the value.
    pub(crate) fn owned(cluster: Cluster) -> ReusableCluster {
        ReusableCluster { cluster: Some(cluster), is_shared: false }
    }
}

impl Deref for ReusableCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster.as_ref().unwrap()
    }
}

impl Drop for ReusableCluster {
    fn drop(&mut self) {
        // A test that failed may have left its cluster in any state.
        let is_reusable = self.is_shared && !std::thread::panicking();
        let cluster = self.cluster.take().filter(|_| is_reusable);
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(cluster);
    }
}

/// The collections that tests leave objects in, in the order of removal. Webhooks are first: they may forbid the rest.
const LEFTOVERS: [&str; 10] = [
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs",
    "/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords",
    "/apis/operator.openshift.io/v1/namespaces/openshift-kube-descheduler-operator/kubedeschedulers",
    "/apis/hco.kubevirt.io/v1beta1/namespaces/openshift-cnv/hyperconvergeds",
    "/apis/machineconfiguration.openshift.io/v1/machineconfigs",
    "/apis/machineconfiguration.openshift.io/v1/machineconfigpools",
    "/apis/operator.openshift.io/v1/machineconfigurations",
    "/apis/apps/v1/namespaces/openshift-kube-descheduler-operator/deployments",
    "/apis/events.k8s.io/v1/namespaces/default/events",
];

impl Platform {
    /// A cluster with all definitions, our own too, and all objects except a KubeDescheduler.
    /// Other tests have used it before, and others use it later.
    pub async fn shared() -> Platform {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut platform = match idle {
            Some(cluster) => {
                let platform = Platform::on(cluster).await;
                platform.tidy_up().await;
                platform.populate().await;
                platform
            }
            None => {
                let platform = Platform::at_rest().await;
                platform.install().await;
                platform
            }
        };
        platform.cluster.is_shared = true;
        platform
    }

    /// Removes what tests leave behind. Our own definition must be installed.
    pub async fn tidy_up(&self) {
        for collection in LEFTOVERS {
            eventually(collection, async || {
                let request = http::Request::delete(collection).body(Vec::new()).unwrap();
                self.client.request::<Value>(request).await.ok()
            })
            .await;
        }
    }
}
