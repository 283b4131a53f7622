//! Every package says the same as the description.

mod bundle;

use std::fs;

use advisor::{access::NAMESPACE, monitoring::AlertSettings};
use serde_json::Value;

use super::{
    installation::{Settings, definitions, monitoring, namespace, objects},
    installers::{INSTALLER, WITH_NAMESPACE},
    *,
};
use crate::{kubectl::Kubectl, root};

fn committed(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

fn objects_of(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// By kind, namespace and name, so that the order does not count.
fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    let key = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
    };
    objects.sort_by_key(key);
    objects
}

fn assert_same(rendered: Vec<Value>, expected: Vec<Value>) {
    let (rendered, expected) = (sorted(rendered), sorted(expected));
    for (rendered, expected) in rendered.iter().zip(&expected) {
        assert_eq!(rendered, expected);
    }
    assert_eq!(rendered.len(), expected.len());
}

/// The image of the first Deployment.
fn image_in(objects: &[Value]) -> Option<String> {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment")?;
    Some(deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?.to_owned())
}

fn source() -> Source {
    Source { alerts: AlertSettings::default(), ..Source::new().unwrap() }
}

fn settings() -> Settings {
    Settings::with_image(&source().image.to_string())
}

fn described() -> Vec<Value> {
    objects(&settings()).unwrap()
}

/// Whatever image the installers were written with.
#[test]
fn the_files_are_up_to_date() {
    let image = image_in(&objects_of(&committed(INSTALLER))).unwrap_or_default();
    let mut files = [config(&source()), dist(&source()).unwrap()].concat();
    files.retain(|(path, _)| ![INSTALLER, WITH_NAMESPACE].contains(&path.as_str()));
    for (path, expected) in files.into_iter().chain(installers(&image).unwrap()) {
        assert!(committed(&path) == expected, "{path} is out of date: run `make generate` and commit the result");
    }
}

/// A file that is no longer generated would be handed out for ever.
#[test]
fn chart_and_bundle_hold_nothing_else() {
    let generated = dist(&source()).unwrap();
    for folder in ["dist/chart", "dist/chart/templates", "dist/bundle/manifests", "dist/bundle/metadata"] {
        for entry in fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap) {
            let path = format!("{folder}/{}", entry.file_name().display());
            let is_generated = entry.path().is_dir() || generated.iter().any(|(known, _)| *known == path);
            assert!(is_generated, "{path} is not generated any more: delete it");
        }
    }
}

/// W45 (several versions): which is that of the operator, too.
#[test]
fn the_image_has_the_version_of_this_tree() {
    let image = concat!("kubevirt.io/virt-advisor-operator:v", env!("CARGO_PKG_VERSION"));
    assert_eq!(default_image().unwrap().to_string(), image);
}

/// The operator offers configurations itself: two owners would overwrite each other.
#[test]
fn nothing_that_is_installed_is_a_configuration() {
    let bundle = crate::packages::bundle::manifests(&source()).unwrap();
    for object in described().iter().chain(&bundle) {
        assert_ne!(object["kind"], "VirtPlatformConfig");
    }
    for (path, text) in chart::files(&source()).unwrap() {
        assert!(!text.lines().any(|line| line == "kind: VirtPlatformConfig"), "{path}");
    }
}

/// By the label they are deleted, and nothing else is.
#[test]
fn everything_but_namespace_and_definitions_has_the_label() {
    let (key, value) = workload::LABEL;
    for object in [vec![namespace()], described()].concat() {
        let kept = ["Namespace", "CustomResourceDefinition"].contains(&object["kind"].as_str().unwrap());
        let is_labeled = object["metadata"]["labels"][key] == value;
        assert_eq!(is_labeled, !kept, "{} {}", object["kind"], object["metadata"]["name"]);
    }
}

#[test]
fn in_another_namespace_nothing_names_the_usual_one() {
    let settings = Settings { namespace: "elsewhere".into(), ..settings() };
    let objects = objects(&settings).unwrap();
    let monitoring = monitoring(&AlertSettings::default(), &settings).unwrap();
    for object in objects[definitions().unwrap().len()..].iter().chain(&monitoring) {
        assert!(!object.to_string().contains(NAMESPACE), "{object:#}");
    }
    assert_eq!(objects.last().unwrap()["metadata"]["namespace"], "elsewhere");
}

/// No drain waits for the operator for ever, and no guest makes room for it.
#[test]
fn the_operator_is_in_nobodys_way() {
    let objects = described();
    let one = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
    let budget = &one("PodDisruptionBudget")["spec"];
    assert!(budget["maxUnavailable"] == 1 && budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow");
    let class = one("PriorityClass");
    assert!(class["preemptionPolicy"] == "Never" && class.get("globalDefault").is_none());
    let pod = &one("Deployment")["spec"]["template"];
    assert_eq!(pod["spec"]["priorityClassName"], class["metadata"]["name"]);
    for selector in [&budget["selector"], &one("NetworkPolicy")["spec"]["podSelector"]] {
        for (label, value) in selector["matchLabels"].as_object().unwrap() {
            assert_eq!(pod["metadata"]["labels"][label], *value);
        }
    }
}

/// What the operator listens on is let in.
#[test]
fn the_network_policy_lets_in_what_is_served() {
    let objects = described();
    let one = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
    let served = &one("Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"];
    let served: Vec<_> = served.as_array().unwrap().iter().map(|port| &port["containerPort"]).collect();
    let let_in = &one("NetworkPolicy")["spec"]["ingress"][0]["ports"];
    let let_in: Vec<_> = let_in.as_array().unwrap().iter().map(|port| &port["port"]).collect();
    assert_eq!(let_in, served);
}

/// What runs a third-party program, which `make check` leaves out.
mod third_party {
    use super::*;

    #[test]
    fn config_default_renders_to_the_description() {
        assert_same(Kubectl::pinned().unwrap().kustomize("config/default").unwrap(), described());
    }

    #[test]
    fn cert_manager_gets_the_certificate_instead_of_openshift() {
        let rendered = Kubectl::pinned().unwrap().kustomize("config/cert-manager").unwrap();
        let mut expected = [described(), certificates::objects().to_vec()].concat();
        let service = expected.iter_mut().find(|object| object["kind"] == "Service").unwrap();
        let annotations = service["metadata"].as_object_mut().unwrap().remove("annotations");
        assert!(annotations.unwrap()[workload::SERVING_CERTIFICATE] == workload::CERTIFICATE);
        let kept =
            |object: &Value| object["kind"] != "Service" || object["metadata"]["annotations"] == serde_json::json!({});
        assert!(rendered.iter().all(|object| kept(object) || object["metadata"].get("annotations").is_none()));
        let bare = |mut object: Value| {
            if object["kind"] == "Service" {
                object["metadata"].as_object_mut().unwrap().remove("annotations");
            }
            object
        };
        assert_same(rendered.into_iter().map(bare).collect(), expected);
    }

    /// W46 (deleted namespace): the namespace is in one of them only.
    #[test]
    fn the_installers_hold_the_description_and_one_of_them_the_namespace() {
        let [(_, without), (_, with)] = installers(&source().image.to_string()).unwrap().try_into().unwrap();
        assert_eq!(objects_of(&without), described());
        assert_eq!(objects_of(&with), [vec![namespace()], described()].concat());
        assert_eq!(Kubectl::pinned().unwrap().kustomize("config/namespace").unwrap(), [namespace()]);
    }

    #[test]
    fn what_administrators_add_is_what_config_has() {
        let files = additions::files(&source()).unwrap();
        for ((path, text), folder) in files.iter().zip(["admission", "admission-audit", "monitoring"]) {
            let rendered = Kubectl::pinned().unwrap().kustomize(&format!("config/{folder}")).unwrap();
            assert!(!rendered.is_empty(), "{path}");
            assert_same(rendered, objects_of(text));
        }
        assert_eq!(files.len(), 3);
    }
}
