//! The OLM bundle in `dist/bundle`, in the format registry+v1, for OpenShift.
//! OLM makes the service account, roles and bindings itself from what the ClusterServiceVersion says, and puts everything into the
//! namespace of the installation; so nothing here names that.

mod console;
mod csv;

use advisor::{access::NAMESPACE, object_text};
use anyhow::Context;
use serde_json::{Value, json};

use super::{
    MARK, Source,
    installation::{self, Settings},
};

const FOLDER: &str = "dist/bundle";
const DOCKERFILE: &str = "dist/bundle.Dockerfile";
/// The name of the package in catalogs.
pub(super) const PACKAGE: &str = "virt-advisor-operator";
const CHANNEL: &str = "alpha";

/// What OLM makes itself.
const MADE_BY_OLM: [&str; 2] = ["ServiceAccount", "Deployment"];

/// The generated files: path from the root of the repository, and content.
pub(super) fn files(source: &Source) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = vec![
        (format!("{FOLDER}/metadata/annotations.yaml"), text(&json!({"annotations": annotations()}))),
        (DOCKERFILE.to_owned(), dockerfile()),
    ];
    for object in manifests(source)? {
        files.push((format!("{FOLDER}/manifests/{}", file_name(&object)), text(&object)));
    }
    Ok(files)
}

/// Every object of the bundle.
pub(super) fn manifests(source: &Source) -> anyhow::Result<Vec<Value>> {
    let settings = Settings::with_image(&source.image.to_string());
    let objects = installation::objects(&settings)?;
    let (bound, carried): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_made_by_olm);
    let console = console::objects(source)?;
    // OLM refuses a NetworkPolicy in versions that this bundle is for.
    let carried = carried.into_iter().filter(|object| object["kind"] != "NetworkPolicy");
    let carried = carried.chain(installation::monitoring(&source.alerts, &settings)?).map(unplaced);
    Ok([csv::object(source, &bound)?].into_iter().chain(carried).chain(console).collect())
}

/// The account and the Deployment, and the rights of the account: roles that are bound, with their bindings.
fn is_made_by_olm(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_for_people = kind == "ClusterRole" && !csv::is_of_operator(name);
    MADE_BY_OLM.contains(&kind) || kind.contains("Role") && !is_for_people
}

/// Without the namespace, which OLM chooses.
fn unplaced(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut().filter(|metadata| metadata["name"] != Value::Null) {
        metadata.remove("namespace");
    }
    object
}

fn file_name(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    let name = word(&object["metadata"]["name"]);
    match object["kind"].as_str() {
        Some("ClusterServiceVersion") => format!("{PACKAGE}.clusterserviceversion.yaml"),
        Some("CustomResourceDefinition") => {
            let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
            format!("{group}_{plural}.yaml")
        }
        _ => format!("{name}_{}.yaml", word(&object["kind"])),
    }
}

fn text(object: &Value) -> String {
    format!("{MARK}{}", object_text::yaml(Some(object)))
}

fn annotations() -> Value {
    let bundle = "operators.operatorframework.io.bundle";
    json!({
        format!("{bundle}.mediatype.v1"): "registry+v1",
        format!("{bundle}.manifests.v1"): "manifests/",
        format!("{bundle}.metadata.v1"): "metadata/",
        format!("{bundle}.package.v1"): PACKAGE,
        format!("{bundle}.channels.v1"): CHANNEL,
        format!("{bundle}.channel.default.v1"): CHANNEL,
        "com.redhat.openshift.versions": "v4.17",
    })
}

fn dockerfile() -> String {
    let labels = annotations();
    let labels = labels.as_object().into_iter().flatten();
    let labels: String =
        labels.map(|(key, value)| format!("LABEL {key}={}\n", value.as_str().unwrap_or_default())).collect();
    format!(
        "{MARK}# The image of the bundle: podman build -f dist/bundle.Dockerfile -t registry/virt-advisor-operator-bundle:tag dist\n\
         FROM scratch\n{labels}COPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n"
    )
}

/// The examples of configurations, by the file in `config/samples`.
fn sample(name: &str) -> anyhow::Result<(String, Value)> {
    let path = format!("config/samples/{name}.yaml");
    let text = std::fs::read_to_string(crate::root().join(&path)).with_context(|| format!("reading {path}"))?;
    let object = serde_saphyr::from_str(&text).with_context(|| format!("reading {path}"))?;
    Ok((text, object))
}

const SAMPLES: [(&str, &str); 3] = [
    ("loadaware_sample", "Load-aware rebalancing"),
    ("virthigherdensity_sample", "Higher density"),
    ("advisor_v1alpha1_virtplatformconfig", "The example, to learn with"),
];

/// Where OLM installs it unless somebody chooses another namespace.
const SUGGESTED: &str = NAMESPACE;
