//! The life of an installation, as the guide tells it: install, deploy, samples, undeploy, uninstall; and each step twice.

use std::path::Path;

use devcluster::{Cluster, Identity};
use serde_json::{Value, json};
use testkit::{
    platform::{LOAD_AWARE, Platform},
    running_operator::RunningOperator,
};

use crate::commands::{kubectl, printed, root, text, xtask};

const DEFINITION: &str = "virtplatformconfigs.advisor.kubevirt.io";

/// What an installation consists of, besides the definitions.
const KINDS: [&str; 10] = [
    "deployments",
    "services",
    "serviceaccounts",
    "poddisruptionbudgets",
    "networkpolicies",
    "priorityclasses",
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
];

fn names(kubeconfig: &Path, kind: &str) -> Vec<String> {
    let listed = printed(&kubectl(kubeconfig, &["get", kind, "-A", "-o", "name"]));
    listed.lines().map(|line| line.rsplit('/').next().unwrap().to_owned()).collect()
}

/// W46 (deleted namespace), W47 (unusable roles and samples), D25 (quick start as printed): undeploying leaves
/// namespace and objects.
#[tokio::test]
async fn every_step_may_be_repeated_and_nothing_of_others_is_lost() {
    let cluster = Cluster::builder().start().await.unwrap();
    let at = cluster.access().kubeconfig(&Identity::Admin).await.unwrap();
    let ours = |kind: &str| -> Vec<String> {
        names(&at, kind).into_iter().filter(|name| name.starts_with("virt-advisor-operator-")).collect()
    };

    // The definition alone.
    assert!(printed(&xtask(&at, &["uninstall"])).contains("virtplatformconfigs.advisor.kubevirt.io is not installed"));
    printed(&xtask(&at, &["install"]));
    printed(&xtask(&at, &["install"]));
    assert_eq!(names(&at, "virtplatformconfigs"), [""; 0], "the kind is served");

    // The operator, in a namespace that is not there yet.
    printed(&xtask(&at, &["deploy"]));
    printed(&xtask(&at, &["deploy", "--image", "registry.example.com/advisor:v9"]));
    let deployment = ["get", "deployments", "-n", "openshift-cnv", "-o"];
    let image = "jsonpath={.items[*].spec.template.spec.containers[*].image}";
    assert_eq!(printed(&kubectl(&at, &[&deployment[..], &[image]].concat())), "registry.example.com/advisor:v9");
    assert_eq!(ours("serviceaccounts"), ["virt-advisor-operator-controller-manager"]);
    assert_eq!((ours("clusterroles").len(), ours("roles").len()), (8, 3));
    assert_eq!(ours("services"), ["virt-advisor-operator-metrics"]);

    // The samples, as the guide applies and deletes them.
    for _ in 0..2 {
        printed(&kubectl(&at, &["apply", "-k", "config/samples/"]));
    }
    assert_eq!(names(&at, "virtplatformconfigs"), ["example-profile", "load-aware-rebalancing", "virt-higher-density"]);

    // Without the operator, what people made is still there, and so is the namespace.
    printed(&xtask(&at, &["undeploy"]));
    printed(&xtask(&at, &["undeploy"]));
    for kind in KINDS {
        assert_eq!(ours(kind), [""; 0], "{kind}");
    }
    assert!(names(&at, "namespaces").contains(&"openshift-cnv".to_owned()));
    assert_eq!(names(&at, "virtplatformconfigs").len(), 3);

    // Their definition takes them along only when told to.
    let refused = xtask(&at, &["uninstall"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    for part in ["load-aware-rebalancing   action DryRun", "example-profile", "nothing was deleted", "FORCE=1"] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
    assert!(names(&at, "crd").contains(&DEFINITION.to_owned()));
    printed(&kubectl(&at, &["delete", "-k", "config/samples/"]));
    offer(&at);
    printed(&xtask(&at, &["uninstall"]));
    printed(&xtask(&at, &["uninstall"]));
    assert_eq!(names(&at, "crd"), [""; 0]);

    printed(&xtask(&at, &["install"]));
    printed(&kubectl(&at, &["apply", "-f", "config/samples/loadaware_sample.yaml"]));
    let forced = xtask(&at, &["uninstall", "--force"]);
    printed(&forced);
    assert!(text(&forced.stderr).contains("load-aware-rebalancing"), "what is lost is told all the same");
    assert_eq!(names(&at, "crd"), [""; 0]);
}

/// W46 (deleted namespace): the commands in the head of the files, as docs/install.md tells them.
#[tokio::test]
async fn one_file_is_enough_and_its_removal_spares_namespace_definitions_and_configurations() {
    let cluster = Cluster::builder().start().await.unwrap();
    let at = cluster.access().kubeconfig(&Identity::Admin).await.unwrap();
    let ours =
        |kind: &str| names(&at, kind).into_iter().filter(|name| name.starts_with("virt-advisor-operator-")).count();
    for file in ["install-with-namespace.yaml", "install.yaml"] {
        let path = format!("dist/{file}");
        let head = std::fs::read_to_string(root().join(&path)).unwrap();
        let command = |verb: &str| -> Vec<String> {
            let line = head.lines().find_map(|line| line.strip_prefix(&format!("#   {verb} "))).unwrap();
            line.trim().replace(file, &path).split(' ').skip(1).map(str::to_owned).collect()
        };
        let run = |verb: &str| {
            let words = command(verb);
            printed(&kubectl(&at, &words.iter().map(String::as_str).collect::<Vec<_>>()))
        };
        run("install");
        run("install");
        assert!(KINDS.iter().all(|kind| ours(kind) > 0), "{file}");
        printed(&kubectl(&at, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]));
        printed(&kubectl(&at, &["apply", "-k", "config/samples/"]));
        run("remove");
        for kind in KINDS {
            assert_eq!(ours(kind), 0, "{kind} of {file}");
        }
        assert_eq!(names(&at, "virtplatformconfigs").len(), 3, "{file}");
        assert!(names(&at, "namespaces").contains(&"openshift-cnv".to_owned()), "{file}");
    }
}

/// An object as the operator creates it, once the samples are deleted, to offer a profile.
fn offer(at: &Path) {
    let patch =
        r#"{"metadata": {"annotations": {"advisor.kubevirt.io/auto-created": "true"}}, "spec": {"action": "Ignore"}}"#;
    printed(&kubectl(at, &["apply", "-f", "config/samples/loadaware_sample.yaml"]));
    printed(&kubectl(at, &["patch", "virtplatformconfig", "load-aware-rebalancing", "--type=merge", "-p", patch]));
}

/// A plan that waits for a review has replaced the applied one in the status, so the records tell what is managed.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_still_managed_is_told_until_it_is_restored() {
    const MANAGED: &str = "load-aware-rebalancing   KubeDescheduler cluster\n";
    let platform = Platform::at_rest().await;
    let at = platform.cluster.access().kubeconfig(&Identity::Admin).await.unwrap();
    printed(&xtask(&at, &["install"]));
    let operator = RunningOperator::start(&platform).await;
    let options =
        |seconds: i32| json!({"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": seconds}});
    platform.complete(LOAD_AWARE, json!({"options": options(120)}), &[]).await;
    let told = |args: &[&str]| text(&xtask(&at, args).stderr);
    assert!(told(&["undeploy"]).contains(MANAGED), "applied");

    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": options(180)})).await;
    let waiting = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(waiting["status"]["items"][0]["appliedFingerprint"], Value::Null);
    let said = told(&["undeploy"]);
    assert!(
        said.contains(MANAGED) && said.contains(r#""restore":{"record":"original"}"#),
        "another plan waits:\n{said}"
    );
    let said = told(&["uninstall"]);
    assert!(said.contains("\n1 VirtPlatformPlanRecord goes with its definition"), "{said}");
    assert!(said.contains(MANAGED) && said.contains("nothing was deleted"), "{said}");

    platform.configure(LOAD_AWARE, json!({"restore": {"record": "original"}})).await;
    let restores = |config: &Value| config["status"]["restore"].is_object();
    platform.until(LOAD_AWARE, "planned", restores).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert!(told(&["undeploy"]).contains(MANAGED), "the restore waits");
    let approval = json!({"planDigest": review["status"]["planDigest"]});
    platform.complete(LOAD_AWARE, json!({"approval": approval}), &[]).await;
    let said = told(&["undeploy"]);
    assert!(!said.contains("still manage"), "everything is restored:\n{said}");
    let said = told(&["uninstall"]);
    assert!(said.contains("\n2 VirtPlatformPlanRecords go with their definition"), "{said}");
    assert!(!said.contains("still manage"), "{said}");
    operator.stop().await;
}
