//! The bundle holds what the description says, in the kinds that OLM takes. `make test-packages` has it validated.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::packages::bundle::{PACKAGE, manifests};

/// What OLM takes beside definitions and the ClusterServiceVersion; it fails for others, and its validator does not say so.
const TAKEN: [&str; 18] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "PodDisruptionBudget",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

fn version_of(manifests: &[Value]) -> &Value {
    manifests.iter().find(|object| object["kind"] == "ClusterServiceVersion").unwrap()
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

#[test]
fn only_kinds_that_olm_takes_are_in_it_and_no_namespace_is_named() {
    let manifests = manifests(&source()).unwrap();
    for object in &manifests {
        let is_central = ["ClusterServiceVersion", "CustomResourceDefinition"].contains(&kind(object));
        assert!(is_central || TAKEN.contains(&kind(object)), "OLM does not take {}", kind(object));
        assert_eq!(object["metadata"].get("namespace"), None, "{} {}", kind(object), name(object));
    }
    let kinds: BTreeSet<&str> = manifests.iter().map(kind).collect();
    for wanted in ["ConsoleCLIDownload", "ConsoleQuickStart", "ConsoleYAMLSample", "PrometheusRule", "ServiceMonitor"] {
        assert!(kinds.contains(wanted), "{wanted} is missing");
    }
    assert!(!kinds.contains("ServiceAccount"), "OLM makes it");
}

/// Whatever is not in the bundle is made by OLM from the ClusterServiceVersion.
#[test]
fn the_description_is_in_it_as_a_whole() {
    let manifests = manifests(&source()).unwrap();
    let version = version_of(&manifests);
    let install = &version["spec"]["install"]["spec"];
    let mut granted = Vec::new();
    for mut object in described() {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
        match kind(&object) {
            "Deployment" => {
                let deployment = &install["deployments"][0];
                assert_eq!((&deployment["name"], &deployment["spec"]), (&object["metadata"]["name"], &object["spec"]));
            }
            "ServiceAccount" => {
                for granted in ["permissions", "clusterPermissions"] {
                    assert_eq!(install[granted][0]["serviceAccountName"], object["metadata"]["name"]);
                }
            }
            // OLM refuses a NetworkPolicy in versions that this bundle is for.
            "RoleBinding" | "ClusterRoleBinding" | "NetworkPolicy" => {}
            "Role" | "ClusterRole" if !manifests.contains(&object) => granted.push(object["rules"].clone()),
            _ => assert!(manifests.contains(&object), "{} {} is missing", kind(&object), name(&object)),
        }
    }
    let rules = |of: &Value| of[0]["rules"].as_array().unwrap().clone();
    let given = [rules(&install["permissions"]), rules(&install["clusterPermissions"])].concat();
    let wanted: Vec<Value> = granted.iter().flat_map(|rules| rules.as_array().unwrap().clone()).collect();
    for rule in &wanted {
        assert!(given.contains(rule), "{rule} is not granted");
    }
    let client_ca = json!({
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["extension-apiserver-authentication"], "verbs": ["get"],
    });
    let extra: Vec<&Value> = given.iter().filter(|rule| !wanted.contains(rule)).collect();
    assert_eq!(extra, [&client_ca], "in the place of the Role in kube-system");
}

#[test]
fn what_people_bind_is_in_it_and_what_the_operator_has_is_not() {
    let manifests = manifests(&source()).unwrap();
    let roles: BTreeSet<&str> = manifests.iter().filter(|object| kind(object) == "ClusterRole").map(name).collect();
    let short: Vec<&str> = roles.iter().map(|name| name.trim_start_matches("virt-advisor-operator-")).collect();
    let people = ["admin", "approver", "editor", "viewer"].map(|who| format!("virtplatformconfig-{who}-role"));
    let mut expected = vec!["log-level-editor", "metrics-reader"];
    expected.extend(people.iter().map(String::as_str));
    assert_eq!(short, expected);
    let bindings: Vec<&Value> = manifests.iter().filter(|object| kind(object).ends_with("RoleBinding")).collect();
    assert!(bindings.iter().all(|binding| binding["subjects"][0]["name"] == "prometheus-k8s"), "{bindings:?}");
}

#[test]
fn the_version_names_kinds_examples_and_images() {
    let manifests = manifests(&source()).unwrap();
    let version = version_of(&manifests);
    assert_eq!(name(version), format!("{PACKAGE}.{VERSION}"));
    let owned = version["spec"]["customresourcedefinitions"]["owned"].as_array().unwrap();
    let owned: BTreeSet<&str> = owned.iter().map(|kind| kind["name"].as_str().unwrap()).collect();
    let defined: BTreeSet<&str> =
        manifests.iter().filter(|object| kind(object) == "CustomResourceDefinition").map(name).collect();
    assert_eq!(owned, defined);
    let annotations = &version["metadata"]["annotations"];
    let examples: Vec<Value> = serde_json::from_str(annotations["alm-examples"].as_str().unwrap()).unwrap();
    assert!(examples.len() == 3 && examples.iter().all(|example| example["spec"]["action"] == "DryRun"));
    let images = version["spec"]["relatedImages"].as_array().unwrap();
    let images: Vec<&Value> = images.iter().map(|image| &image["image"]).collect();
    assert_eq!(images, [&annotations["containerImage"], &annotations["operators.openshift.io/must-gather-image"]]);
}

/// The validator does not read these.
#[test]
fn the_labels_of_the_image_are_the_annotations() {
    let annotations: Value = serde_saphyr::from_str(&committed("dist/bundle/metadata/annotations.yaml")).unwrap();
    let dockerfile = committed("dist/bundle.Dockerfile");
    let labels: BTreeSet<String> =
        dockerfile.lines().filter_map(|line| line.strip_prefix("LABEL ")).map(str::to_owned).collect();
    let annotations = annotations["annotations"].as_object().unwrap();
    let expected = annotations.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap()));
    assert_eq!(labels, expected.collect());
    let bundle = "operators.operatorframework.io.bundle";
    for key in ["mediatype.v1", "manifests.v1", "metadata.v1", "package.v1", "channels.v1", "channel.default.v1"] {
        assert!(annotations.contains_key(&format!("{bundle}.{key}")), "{key}");
    }
}
