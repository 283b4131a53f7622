//! Helm and the validator of OLM judge what is handed out: `make test-packages`. They render to what `dist/install.yaml` installs.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use devcluster::{
    Cluster, Identity,
    tools::{self, Program},
};
use serde_json::{Value, json};

use crate::commands::{kubectl, printed, root, text};

const NAMESPACE: &str = "openshift-cnv";
const RELEASE: [&str; 2] = ["virt-advisor-operator", "dist/chart"];

/// Helm knows no cluster here, so it is told the version of one.
fn rendered(helm: Program, namespace: &str, values: &[&str]) -> Output {
    let sets = values.iter().flat_map(|value| ["--set", *value]);
    let mut command = Command::new(tools::ensure(helm).unwrap());
    command.arg("template").args(RELEASE).args(["--namespace", namespace, "--kube-version", "1.36.3"]).args(sets);
    command.current_dir(root()).output().unwrap()
}

fn objects(text: &str) -> Vec<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    sorted(objects.into_iter().filter(|object| !object.is_null()).collect())
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| {
        format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
    });
    objects
}

/// What the installer holds, with the mark by which Helm keeps definitions.
fn installed() -> Vec<Value> {
    let mut objects = objects(&fs::read_to_string(root().join("dist/install.yaml")).unwrap());
    for definition in objects.iter_mut().filter(|object| object["kind"] == "CustomResourceDefinition") {
        definition["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    }
    objects
}

fn of_folder(folder: &str) -> Vec<Value> {
    objects(&printed(&kubectl(Path::new("/nonexistent"), &["kustomize", folder])))
}

fn assert_same(found: &[Value], expected: &[Value]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

const HELMS: [Program; 2] = [Program::Helm, Program::Helm3];

#[test]
#[ignore = "Helm has to be built, which takes minutes: make test-packages"]
fn the_chart_has_no_mistakes_and_renders_to_what_the_installer_holds() {
    for helm in HELMS {
        let mut command = Command::new(tools::ensure(helm).unwrap());
        let linted = command
            .args(["lint", "--strict", "--kube-version", "1.36.3", RELEASE[1]])
            .current_dir(root())
            .output()
            .unwrap();
        let said = printed(&linted) + &text(&linted.stderr);
        assert!(!said.contains("[ERROR]") && !said.contains("[WARNING]"), "{said}");
        assert_same(&objects(&printed(&rendered(helm, NAMESPACE, &[]))), &installed());
    }
}

#[test]
#[ignore = "Helm has to be built, which takes minutes: make test-packages"]
fn every_switch_adds_or_removes_its_objects() {
    for helm in HELMS {
        let with = |values: &[&str]| objects(&printed(&rendered(helm, NAMESPACE, values)));
        let enforced = with(&["admissionPolicy.enabled=true", "monitoring.enabled=true"]);
        let expected = [installed(), of_folder("config/admission"), of_folder("config/monitoring")].concat();
        assert_same(&enforced, &sorted(expected));
        let audited = with(&["admissionPolicy.enabled=true", "admissionPolicy.action=Audit"]);
        assert_same(&audited, &sorted([installed(), of_folder("config/admission-audit")].concat()));

        let off = ["crds.install", "podDisruptionBudget.enabled", "networkPolicy.enabled", "priorityClass.create"];
        let off = with(&off.map(|value| format!("{value}=false")).each_ref().map(String::as_str));
        let gone = ["CustomResourceDefinition", "PodDisruptionBudget", "NetworkPolicy", "PriorityClass"];
        assert!(off.iter().all(|object| !gone.contains(&object["kind"].as_str().unwrap())));
        let deployment = off.iter().find(|object| object["kind"] == "Deployment").unwrap();
        assert_eq!(deployment["spec"]["template"]["spec"].get("priorityClassName"), None);
    }
}

#[test]
#[ignore = "Helm has to be built, which takes minutes: make test-packages"]
fn values_reach_the_deployment_and_wrong_ones_are_refused() {
    let digest = format!("image.digest=sha256:{}", "0a".repeat(32));
    for helm in HELMS {
        let values = ["replicas=1", &digest, "extraArgs={--log-level=debug}", "tolerations[0].operator=Exists"];
        let objects = objects(&printed(&rendered(helm, NAMESPACE, &values)));
        let spec = &objects.iter().find(|object| object["kind"] == "Deployment").unwrap()["spec"];
        let pod = &spec["template"]["spec"];
        assert_eq!((&spec["replicas"], &pod["tolerations"]), (&json!(1), &json!([{"operator": "Exists"}])));
        let container = &pod["containers"][0];
        let image = container["image"].as_str().unwrap();
        assert!(
            image.ends_with(&"0a".repeat(32)) && image.starts_with("kubevirt.io/virt-advisor-operator@"),
            "{image}"
        );
        assert_eq!(container["args"].as_array().unwrap().last().unwrap(), "--log-level=debug");
        for wrong in ["replicas=many", "admissionPolicy.action=Off", "imagee.tag=x", "image.digest=sha256:0a"] {
            let refused = rendered(helm, NAMESPACE, &[wrong]);
            assert!(!refused.status.success() && text(&refused.stderr).contains("schema"), "{wrong}: {refused:?}");
        }
    }
}

#[test]
#[ignore = "Helm has to be built, which takes minutes: make test-packages"]
fn a_release_elsewhere_names_its_own_namespace_and_cert_manager_its_issuer() {
    for helm in HELMS {
        let values = [
            "certManager.enabled=true",
            "admissionPolicy.enabled=true",
            "monitoring.enabled=true",
            "crds.install=false",
        ];
        let refused = rendered(helm, "virt-advisor", &values);
        assert!(text(&refused.stderr).contains("set certManager.enabled to false"), "{refused:?}");
        let said =
            printed(&rendered(helm, "virt-advisor", &[&values[..], &["monitoring.authentication=Token"]].concat()));
        assert!(!said.contains(NAMESPACE), "{said}");
        let objects = objects(&said);
        let one = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
        assert_eq!(
            one("Certificate")["spec"]["issuerRef"],
            json!({"kind": "Issuer", "name": one("Issuer")["metadata"]["name"]})
        );
        assert_eq!(one("Service")["metadata"].get("annotations"), None, "OpenShift would fill the same Secret");
        let endpoint = &one("ServiceMonitor")["spec"]["endpoints"][0];
        assert_eq!(endpoint["tlsConfig"]["serverName"], "virt-advisor-operator-metrics.virt-advisor.svc");
        let issuer = [&values[..], &["monitoring.authentication=Token", "certManager.issuerRef.name=mine"]].concat();
        let objects = self::objects(&printed(&rendered(helm, "virt-advisor", &issuer)));
        assert!(objects.iter().all(|object| object["kind"] != "Issuer"));
        let certificate = objects.iter().find(|object| object["kind"] == "Certificate").unwrap();
        assert_eq!(certificate["spec"]["issuerRef"], json!({"name": "mine"}));
    }
}

/// A release on a real API server: twice, upgraded, removed. What people made stays.
#[tokio::test]
#[ignore = "Helm has to be built, which takes minutes: make test-packages"]
async fn a_release_is_installed_upgraded_and_removed_without_configurations() {
    for helm in HELMS {
        let cluster = Cluster::builder().start().await.unwrap();
        let at = cluster.access().kubeconfig(&Identity::Admin).await.unwrap();
        let helm = |args: &[&str]| {
            let mut command = Command::new(tools::ensure(helm).unwrap());
            command.args(args).args(["--namespace", NAMESPACE]).env("KUBECONFIG", &at).current_dir(root());
            printed(&command.output().unwrap())
        };
        helm(&["install", RELEASE[0], RELEASE[1], "--create-namespace"]);
        printed(&kubectl(&at, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]));
        printed(&kubectl(&at, &["apply", "-f", "config/samples/loadaware_sample.yaml"]));
        helm(&["upgrade", RELEASE[0], RELEASE[1], "--set", "replicas=1,admissionPolicy.enabled=true"]);
        let replicas = ["get", "deployments", "-n", NAMESPACE, "-o", "jsonpath={.items[*].spec.replicas}"];
        assert_eq!(printed(&kubectl(&at, &replicas)), "1");
        helm(&["uninstall", RELEASE[0]]);
        let label = "app.kubernetes.io/name=virt-advisor-operator";
        let kinds = "deployments,services,serviceaccounts,poddisruptionbudgets,networkpolicies,roles,rolebindings,clusterroles,\
                     clusterrolebindings,priorityclasses,validatingadmissionpolicies";
        assert_eq!(printed(&kubectl(&at, &["get", kinds, "-A", "-l", label, "-o", "name"])), "");
        let left = printed(&kubectl(&at, &["get", "crd,virtplatformconfigs", "-o", "name"]));
        assert_eq!(left.lines().count(), 3, "{left}");
    }
}

/// The validator succeeds whatever it finds, and only logs errors.
fn validate(folder: &Path) -> String {
    let mut command = Command::new(tools::ensure(Program::OperatorVerify).unwrap());
    let output =
        command.args(["manifests", "--operatorhub_validate", "--object_validate"]).arg(folder).output().unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
#[ignore = "the validator has to be built, which takes minutes: make test-packages"]
fn the_validator_of_olm_finds_no_error_in_the_bundle() {
    let manifests = root().join("dist/bundle/manifests");
    let said = validate(&manifests);
    assert!(!said.contains("level=error"), "{said}");

    let broken = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(manifests).unwrap().map(Result::unwrap) {
        let content = fs::read_to_string(entry.path()).unwrap().replace("version: v1alpha1", "version: v9");
        fs::write(broken.path().join(entry.file_name()), content).unwrap();
    }
    assert!(validate(broken.path()).contains("level=error"), "the validator looks");
}
