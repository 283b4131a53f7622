//! A cluster with a few objects of all kinds, in which every field is set once. Tests read them and send dry runs; only the plan of
//! `example-profile` may be written.

use std::fmt::Debug;

use devcluster::{Access, Cluster};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use virt_advisor_api::{VirtPlatformConfig, VirtPlatformPlanRecord, VirtualMachine, crd};

use crate::{server::Server, table::from_yaml};

pub(crate) const CONFIGS: [&str; 3] = [
    include_str!("examples/load-aware-rebalancing.yaml"),
    include_str!("examples/virt-higher-density.yaml"),
    include_str!("examples/example-profile.yaml"),
];
pub(crate) const RECORDS: [&str; 2] =
    [include_str!("examples/load-aware-rebalancing-7.yaml"), include_str!("examples/virt-higher-density-1.yaml")];
pub(crate) const MACHINES: [&str; 2] = [include_str!("examples/busy-vm.yaml"), include_str!("examples/new-vm.yaml")];

/// The cluster with all examples.
pub(crate) async fn open() -> &'static Access {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER.get_or_init(set_up).await.access()
}

pub(crate) async fn server() -> Server {
    Server(open().await.client().await.unwrap())
}

async fn set_up() -> Cluster {
    let cluster = Cluster::builder().start().await.unwrap_or_else(|error| panic!("{error}"));
    cluster.access().install_crds(&crd::crds()).await.unwrap();
    let client = cluster.access().client().await.unwrap();
    for yaml in CONFIGS {
        put_on_show(&Api::<VirtPlatformConfig>::all(client.clone()), yaml, Value::Null).await;
    }
    for yaml in RECORDS {
        put_on_show(&Api::<VirtPlatformPlanRecord>::all(client.clone()), yaml, json!({"outcome": "Running"})).await;
    }
    for yaml in MACHINES {
        put_on_show(&Api::<VirtualMachine>::default_namespaced(client.clone()), yaml, Value::Null).await;
    }
    cluster
}

/// Creates the object, which has this status then, and writes its own status, both through the types.
async fn put_on_show<K>(api: &Api<K>, yaml: &str, initial: Value)
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(from_yaml(yaml)).unwrap();
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    let status_of = |object: &K| serde_json::to_value(object).unwrap()["status"].take();
    assert_eq!(status_of(&created), initial, "a status cannot be created with {}", object.name_any());
    let status = json!({ "status": status_of(&object) });
    let params = PatchParams::default().validation_strict();
    api.patch_status(&object.name_any(), &params, &Patch::Merge(status)).await.unwrap();
}
