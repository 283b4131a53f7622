//! Clusters that tests take, use alone and give back: starting an API server costs seconds, tidying one up does not.
//!
//! A test that changes definitions, or writes behind the API server's back, takes a cluster of its own instead.

use std::{
    ops::Deref,
    sync::{Mutex, PoisonError},
};

use devcluster::Cluster;
use serde_json::Value;

use crate::{platform::Platform, running::eventually};

/// Clusters that nobody uses at the moment. They end with the process.
static IDLE: Mutex<Vec<Cluster>> = Mutex::new(Vec::new());

/// A cluster that goes back where it came from, or ends with the value.
pub(crate) struct Loan {
    cluster: Option<Cluster>,
    is_shared: bool,
}

impl Loan {
    pub(crate) fn own(cluster: Cluster) -> Loan {
        Loan { cluster: Some(cluster), is_shared: false }
    }
}

impl Deref for Loan {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster.as_ref().unwrap()
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let cluster = self.cluster.take().filter(|_| self.is_shared);
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(cluster);
    }
}

/// What tests leave behind, in the order in which it has to go: webhooks first, for they may protect the rest.
const LEFTOVERS: [&str; 7] = [
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs",
    "/apis/operator.openshift.io/v1/namespaces/openshift-kube-descheduler-operator/kubedeschedulers",
    "/apis/hco.kubevirt.io/v1beta1/namespaces/openshift-cnv/hyperconvergeds",
    "/apis/machineconfiguration.openshift.io/v1/machineconfigs",
    "/apis/machineconfiguration.openshift.io/v1/machineconfigpools",
    "/apis/events.k8s.io/v1/namespaces/default/events",
];

impl Platform {
    /// Everything installed, our own definition too, and no descheduler configured yet; on a cluster that other tests
    /// use before and after.
    pub(crate) async fn shared() -> Platform {
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

    /// Removes what tests leave behind. Our own definition has to be installed.
    pub(crate) async fn tidy_up(&self) {
        for collection in LEFTOVERS {
            eventually(collection, async || {
                let request = http::Request::delete(collection).body(Vec::new()).unwrap();
                self.client.request::<Value>(request).await.ok()
            })
            .await;
        }
    }
}
