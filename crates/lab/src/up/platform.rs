//! What has to be in the cluster before the parts can work: definitions, namespaces, nodes, and the descheduler's orders.

use balance::{Algorithm, Mode, promql};
use devcluster::Cluster;
use k8s_openapi::{
    api::core::v1::{Namespace, Node},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{Error, Options, error::Doing};
use crate::{descheduler::names, kwok};

/// Who the lab is when it sets up things.
const MANAGER: &str = "rebalance-lab";

const KUBE_DESCHEDULER: &str = include_str!("../../../../config/crd/third-party/kubedescheduler-5.1.yaml");

pub(super) async fn definitions(cluster: &Cluster) -> Result<(), Error> {
    let descheduler: CustomResourceDefinition = serde_saphyr::from_str(KUBE_DESCHEDULER)
        .map_err(|error| Error::Asset(format!("reading the definition of KubeDescheduler: {error}")))?;
    Ok(cluster.access().install_crds(&[api::crd::virtual_machine(), descheduler]).await?)
}

/// The nodes count from 1.
pub(super) fn node_name(number: u32) -> String {
    format!("kwok-node-{number}")
}

pub(super) async fn nodes(client: &Client, options: &Options) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 1..=options.nodes {
        let name = node_name(number);
        let node = kwok::node(&name, options.cores, options.memory_bytes);
        nodes.create(&Default::default(), &node).await.doing(|| format!("creating Node {name}"))?;
    }
    Ok(())
}

/// The namespace of the descheduler's operator, which must be labelled so that it is monitored.
pub(super) async fn namespace(client: &Client) -> Result<(), Error> {
    let (label, value) = names::MONITORED.split_once('=').unwrap_or((names::MONITORED, "true"));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": {label: value}}});
    let api: Api<Namespace> = Api::all(client.clone());
    let applied = api.patch(names::NAMESPACE, &PatchParams::apply(MANAGER), &Patch::Apply(namespace)).await;
    applied.map(drop).doing(|| format!("creating Namespace {}", names::NAMESPACE))
}

/// What the descheduler shall do, as the administrator of a cluster would say it.
pub(super) fn orders(algorithm: &Algorithm, mode: Mode) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": names::OBJECT, "namespace": names::NAMESPACE},
        "spec": {
            "managementState": "Managed",
            "mode": "Automatic",
            "deschedulingIntervalSeconds": 60,
            "profiles": ["KubeVirtRelieveAndMigrate"],
            "evictionLimits": {"total": 5, "node": 2},
            "profileCustomizations": {
                "devDeviationThresholds": mode.name(),
                "devActualUtilizationProfile": format!("query:{}", promql::node_series(algorithm)),
            },
        },
    })
}

pub(super) async fn order(client: &Client, algorithm: &Algorithm, mode: Mode) -> Result<(), Error> {
    let kind = GroupVersionKind::gvk("operator.openshift.io", "v1", "KubeDescheduler");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), names::NAMESPACE, &ApiResource::from_gvk(&kind));
    let params = PatchParams::apply(MANAGER).force();
    let applied = api.patch(names::OBJECT, &params, &Patch::Apply(orders(algorithm, mode))).await;
    applied.map(drop).doing(|| format!("creating KubeDescheduler {}", names::OBJECT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descheduler::{Policy, Spec, Surroundings};

    #[test]
    fn every_algorithm_and_mode_is_an_order_that_the_stand_in_understands() {
        for algorithm in Algorithm::all() {
            for mode in Mode::ALL {
                let spec = Spec::read(&orders(&algorithm, mode)["spec"]).unwrap();
                let surroundings =
                    Surroundings { prometheus_url: "http://127.0.0.1:9090".into(), protected: vec![], time_scale: 1.0 };
                let policy = Policy::of(&spec, &surroundings).unwrap();
                assert!(policy.text.contains(&promql::node_series(&algorithm)), "{}", policy.text);
                assert!(policy.in_background);
            }
        }
    }
}
