//! The kinds that the model serves, from the same definitions that the real API server is given.

use std::{path::Path, sync::OnceLock};

use serde_json::{Value, json};

use super::shape::Shape;

#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// The definition that must be stored for the kind to be served.
    pub(crate) definition: Option<Value>,
    /// Whether the kind has a status subresource.
    pub(crate) has_status: bool,
    pub(crate) counts_generations: bool,
    pub(crate) shape: Shape,
}

impl Resource {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn built_in(group: &str, kind: &str, plural: &str, namespaced: bool, shape: Shape) -> Resource {
        Resource {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
            definition: None,
            has_status: false,
            counts_generations: false,
            shape,
        }
    }

    fn custom(definition: Value) -> Resource {
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let version = &definition["spec"]["versions"][0];
        Resource {
            group: text("/spec/group"),
            version: version["name"].as_str().unwrap().to_owned(),
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
            namespaced: text("/spec/scope") == "Namespaced",
            has_status: version["subresources"]["status"].is_object(),
            counts_generations: true,
            shape: Shape::of_kind(&version["schema"]["openAPIV3Schema"]),
            definition: Some(definition),
        }
    }
}

/// All kinds. Keys in the store have this order.
pub(crate) fn resources() -> &'static [Resource] {
    static ALL: OnceLock<Vec<Resource>> = OnceLock::new();
    ALL.get_or_init(|| {
        // No test reads the managed fields of these.
        let whole = |group, kind, plural, namespaced| Resource::built_in(group, kind, plural, namespaced, Shape::Whole);
        let mut all = vec![
            whole("", "Namespace", "namespaces", false),
            Resource::built_in("", "ConfigMap", "configmaps", true, Shape::object(["data"])),
            whole("events.k8s.io", "Event", "events", true),
            whole("coordination.k8s.io", "Lease", "leases", true),
            whole("apps", "Deployment", "deployments", true),
            whole("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false),
        ];
        let third_parties = [
            "kubedescheduler-5.1.yaml",
            "machineconfig.yaml",
            "machineconfigpool.yaml",
            "machineconfiguration.yaml",
            "hyperconverged-v1beta1.yaml",
        ];
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/crd/third-party");
        let third_parties = third_parties.iter().flat_map(|file| documents(&folder.join(file)));
        all.extend(third_parties.map(Resource::custom));
        let ours = api::crd::crds().into_iter().map(|definition| json!(definition));
        let is_known = |plural: &Value| [CONFIGS, RECORDS].iter().any(|known| plural == known);
        all.extend(ours.filter(|definition| is_known(&definition["spec"]["names"]["plural"])).map(Resource::custom));
        all
    })
}

pub(crate) const CONFIGS: &str = "virtplatformconfigs";
pub(crate) const RECORDS: &str = "virtplatformplanrecords";

pub(crate) fn named(plural: &str) -> &'static Resource {
    resources().iter().find(|resource| resource.plural == plural).unwrap()
}

fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
