//! The objects that the parts need in the cluster: definitions, namespaces, nodes, and the KubeDescheduler.

use advisor::kube_descheduler::Release;
use balance::{Algorithm, Mode, promql};
use devcluster::Cluster;
use k8s_openapi::{
    api::core::v1::{Namespace, Node},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use standins::descheduler::{kube_descheduler_api, names};

use super::Options;
use crate::{
    Error,
    error::Context,
    kwok::{self, node_name},
};

const FIELD_MANAGER: &str = "rebalance-lab";

/// The definition of KubeDescheduler.
fn kube_descheduler_definition(release: Release) -> &'static str {
    match release {
        Release::V4_17 => include_str!("../../../../config/crd/third-party/kubedescheduler-4.17.yaml"),
        Release::V4_18 => include_str!("../../../../config/crd/third-party/kubedescheduler-4.18.yaml"),
        Release::V4_19 => include_str!("../../../../config/crd/third-party/kubedescheduler-4.19.yaml"),
        Release::V4_20 => include_str!("../../../../config/crd/third-party/kubedescheduler-4.20.yaml"),
        Release::V4_21 => include_str!("../../../../config/crd/third-party/kubedescheduler-4.21.yaml"),
        Release::V5_1 => include_str!("../../../../config/crd/third-party/kubedescheduler-5.1.yaml"),
    }
}

pub(super) async fn definitions(cluster: &Cluster, release: Release) -> Result<(), Error> {
    let descheduler: CustomResourceDefinition = serde_saphyr::from_str(kube_descheduler_definition(release))
        .map_err(|error| Error::Asset(format!("reading the definition of KubeDescheduler: {error}")))?;
    Ok(cluster.access().install_crds(&[api::crd::virtual_machine(), descheduler]).await?)
}

pub(super) async fn nodes(client: &Client, options: &Options) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 1..=options.nodes {
        let name = node_name(number);
        let node = kwok::node(&name, options.cores, options.memory_bytes);
        nodes.create(&Default::default(), &node).await.context(|| format!("creating Node {name}"))?;
    }
    Ok(())
}

/// The namespace of the descheduler's operator, with the label for monitoring that the operator requires.
pub(super) async fn namespace(client: &Client) -> Result<(), Error> {
    let (label, value) = names::MONITORED.split_once('=').unwrap_or((names::MONITORED, "true"));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": {label: value}}});
    let api: Api<Namespace> = Api::all(client.clone());
    let applied = api.patch(names::NAMESPACE, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(namespace)).await;
    applied.map(drop).context(|| format!("creating Namespace {}", names::NAMESPACE))
}

/// The KubeDescheduler, as an administrator would write it. In 4.17 it has no field for a metric.
pub(super) fn kube_descheduler_object(algorithm: &Algorithm, mode: Mode, release: Release) -> Value {
    let mut limits = json!({"total": 5});
    if release >= Release::V4_19 {
        limits["node"] = 2.into();
    }
    let mut customizations = json!({});
    if release >= Release::V4_18 {
        customizations["devDeviationThresholds"] = mode.name().into();
        customizations["devActualUtilizationProfile"] = format!("query:{}", promql::node_series(algorithm)).into();
    }
    if release == Release::V4_18 {
        customizations["devEnableSoftTainter"] = true.into();
    }
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": names::OBJECT, "namespace": names::NAMESPACE},
        "spec": {
            "managementState": "Managed",
            "mode": "Automatic",
            "deschedulingIntervalSeconds": 60,
            "profiles": [release.profile()],
            "evictionLimits": limits,
            "profileCustomizations": customizations,
        },
    })
}

pub(super) async fn apply_kube_descheduler(
    client: &Client,
    algorithm: &Algorithm,
    mode: Mode,
    release: Release,
) -> Result<(), Error> {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let object = Patch::Apply(kube_descheduler_object(algorithm, mode, release));
    let applied = kube_descheduler_api(client).patch(names::OBJECT, &params, &object).await;
    applied.map(drop).context(|| format!("creating KubeDescheduler {}", names::OBJECT))
}

#[cfg(test)]
mod tests {
    use advisor::schema;
    use standins::descheduler::{Policy, PolicyContext, Spec};

    use super::*;

    fn policy(spec: &Value, release: Release) -> Policy {
        let url = "http://127.0.0.1:9090".to_owned();
        let context = PolicyContext { release, prometheus_url: url, protected: vec![], time_scale: 1.0 };
        Policy::of(&Spec::read(spec).unwrap(), &context).unwrap()
    }

    #[test]
    fn the_stand_in_understands_every_algorithm_and_mode() {
        for release in &Release::ALL[1..] {
            for algorithm in Algorithm::all() {
                for mode in Mode::ALL {
                    let policy = policy(&kube_descheduler_object(&algorithm, mode, *release)["spec"], *release);
                    assert!(policy.text.contains(&promql::node_series(&algorithm)), "{release}: {}", policy.text);
                    assert!(policy.in_background);
                }
            }
        }
    }

    #[test]
    fn the_object_has_only_fields_and_profiles_that_the_definition_of_the_release_has() {
        for release in Release::ALL {
            let definition: Value = serde_saphyr::from_str(kube_descheduler_definition(release)).unwrap();
            let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            assert_eq!(Release::of(Some(spec)), release, "the definition is that of the release");
            let object = kube_descheduler_object(&Algorithm::default(), Mode::Low, release)["spec"].clone();
            for part in ["evictionLimits", "profileCustomizations"] {
                for name in object[part].as_object().unwrap().keys() {
                    assert!(schema::field(spec, &format!("{part}.{name}")).is_some(), "{release} has no {part}.{name}");
                }
            }
            assert!(schema::list_allows(spec, "profiles", object["profiles"][0].as_str().unwrap()), "{release}");
            policy(&object, release);
        }
    }
}
