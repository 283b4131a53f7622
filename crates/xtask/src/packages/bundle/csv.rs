//! The ClusterServiceVersion: what OLM shows, grants and runs.

use advisor::{access::CLIENT_CA_READER, admission::NAME_PREFIX};
use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{PACKAGE, SAMPLES, SUGGESTED, sample};
use crate::packages::{
    Source,
    installation::{definitions, the_only},
    project::VERSION,
};

const DESCRIPTION: &str = include_str!("description.md");
const ICON: &str = include_str!("icon.svg");

/// The oldest Kubernetes with admission policies by CEL.
const OLDEST_KUBERNETES: &str = "1.30.0";

/// ClusterRoles of the operator itself. The others are for people to bind.
pub(super) fn is_of_operator(cluster_role: &str) -> bool {
    ["manager-role", "metrics-auth-role"].iter().any(|name| cluster_role == format!("{NAME_PREFIX}{name}"))
}

/// `bound` is what OLM makes itself: account, roles, bindings, Deployment.
pub(super) fn object(source: &Source, bound: &[Value]) -> anyhow::Result<Value> {
    let account = &the_only(bound, "ServiceAccount")?["metadata"]["name"];
    let deployment = the_only(bound, "Deployment")?;
    let (permissions, cluster_permissions) = rules(bound);
    let granted = |rules: Vec<Value>| json!([{"serviceAccountName": account, "rules": rules}]);
    let project = &source.project;
    let mut spec = json!({
        "displayName": "virt-advisor",
        "description": DESCRIPTION,
        "version": VERSION.trim_start_matches('v'),
        "maturity": "alpha",
        "minKubeVersion": OLDEST_KUBERNETES,
        "provider": {"name": project.provider.name, "url": project.provider.url},
        "keywords": ["kubevirt", "virtualization", "descheduler", "configuration"],
        "icon": [{"base64data": BASE64_STANDARD.encode(ICON), "mediatype": "image/svg+xml"}],
        "customresourcedefinitions": {"owned": owned()?},
        "install": {
            "strategy": "deployment",
            "spec": {
                "deployments": [{
                    "name": deployment["metadata"]["name"],
                    "label": deployment["metadata"]["labels"],
                    "spec": deployment["spec"],
                }],
                "permissions": granted(permissions),
                "clusterPermissions": granted(cluster_permissions),
            },
        },
        "relatedImages": [
            {"name": "operator", "image": source.image.to_string()},
            {"name": "must-gather", "image": source.must_gather.to_string()},
        ],
    });
    // The namespace of OpenShift Virtualization has an OperatorGroup of its own namespace; OLM v1 knows only the whole cluster.
    let mode = |(name, supported): (&str, bool)| json!({"type": name, "supported": supported});
    let modes =
        [("OwnNamespace", true), ("SingleNamespace", false), ("MultiNamespace", false), ("AllNamespaces", true)];
    spec["installModes"] = modes.map(mode).into();
    spec["maintainers"] = project.maintainers.iter().map(|it| json!({"name": it.name, "email": it.email})).collect();
    let docs = format!("{}/blob/{VERSION}/docs", project.repository);
    let links = [("Source code", project.repository.clone()), ("Documentation", format!("{docs}/README.md"))];
    spec["links"] = links.map(|(name, url)| json!({"name": name, "url": url})).into();
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{PACKAGE}.{VERSION}"),
            "annotations": annotations(source)?,
            "labels": labels(source),
        },
        "spec": spec,
    }))
}

/// Where it runs.
fn labels(source: &Source) -> Value {
    let mut labels = json!({"operatorframework.io/os.linux": "supported"});
    for arch in &source.architectures {
        labels[format!("operatorframework.io/arch.{}", arch.name())] = "supported".into();
    }
    labels
}

fn annotations(source: &Source) -> anyhow::Result<Value> {
    let examples: Vec<Value> =
        SAMPLES.iter().map(|(name, _)| sample(name).map(|(_, object)| object)).collect::<anyhow::Result<_>>()?;
    let mut annotations = json!({
        "alm-examples": serde_json::to_string_pretty(&examples)?,
        "capabilities": "Basic Install",
        "categories": "OpenShift Optional",
        "containerImage": source.image.to_string(),
        "description": "Shows, applies and watches configuration around OpenShift Virtualization, with your approval.",
        "repository": source.project.repository,
        "support": source.project.provider.name,
        "operatorframework.io/cluster-monitoring": "true",
        "operatorframework.io/suggested-namespace": SUGGESTED,
        "operators.openshift.io/must-gather-image": source.must_gather.to_string(),
        "operators.operatorframework.io/internal-objects": r#"["virtplatformplanrecords.advisor.kubevirt.io"]"#,
    });
    let features = ["cnf", "cni", "csi", "fips-compliant", "proxy-aware", "tls-profiles"];
    let token = ["token-auth-aws", "token-auth-azure", "token-auth-gcp"];
    for feature in features.iter().chain(&token) {
        annotations[format!("features.operators.openshift.io/{feature}")] = "false".into();
    }
    // A mirror needs images by digest.
    let are_pinned = [&source.image, &source.must_gather].iter().all(|image| image.digest.is_some());
    annotations["features.operators.openshift.io/disconnected"] = are_pinned.to_string().into();
    Ok(annotations)
}

fn owned() -> anyhow::Result<Value> {
    let about = |kind: &str| match kind {
        "VirtPlatformConfig" => {
            ("Platform configuration", "What a profile would change, your approval, and how far it is.")
        }
        _ => ("Record of an applied plan", "Which plan was applied, who agreed, and what was there before."),
    };
    let owned = |definition: &Value| -> anyhow::Result<Value> {
        let kind = definition["spec"]["names"]["kind"].as_str().context("a definition without a kind")?;
        let (display_name, description) = about(kind);
        Ok(json!({
            "name": definition["metadata"]["name"],
            "kind": kind,
            "version": definition["spec"]["versions"][0]["name"],
            "displayName": display_name,
            "description": description,
        }))
    };
    definitions()?.iter().map(owned).collect()
}

/// The rules of the operator: in its own namespace, and in the whole cluster. OLM makes no roles in other namespaces, so what the
/// operator may do in `default` and kube-system is granted everywhere, by name where there is a name.
fn rules(bound: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let rules = |is_wanted: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        let roles = bound.iter().filter(|object| object["rules"].is_array() && is_wanted(object));
        roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect()
    };
    let own = rules(&|role| role["metadata"]["namespace"] == SUGGESTED);
    let elsewhere = rules(&|role| role["metadata"]["namespace"] != SUGGESTED);
    let (_, reader) = CLIENT_CA_READER;
    let client_ca = json!({
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [reader.trim_end_matches("-reader")],
        "verbs": ["get"],
    });
    (own, [elsewhere, vec![client_ca]].concat())
}
