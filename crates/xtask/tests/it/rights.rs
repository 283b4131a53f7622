//! Who may do what once the operator is deployed: the operator itself, and people.

mod metrics;

use std::{path::Path, process::Output};

use advisor::{Verb, profiles};
use api::virt_platform_config::Options;
use devcluster::{Access, Cluster, Identity};
use kube_io::ApiServer;
use operator::make_plan;
use serde_json::{Value, json};
use testkit::eventually;
use tokio::sync::OnceCell;

use crate::commands::{kubectl, kubectl_as, printed, root, text, xtask};

const NAMESPACE: &str = "openshift-cnv";

/// A cluster with the operator deployed, stand-ins for the third parties' kinds, and the controller that makes `view`, `edit`
/// and `admin` out of their parts.
async fn cluster() -> &'static Access {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    let start = async || {
        let cluster = Cluster::builder().controllers(&["clusterrole-aggregation-controller"]).start().await.unwrap();
        let at = cluster.access().kubeconfig(&Identity::Admin).await.unwrap();
        let run = |args: &[&str]| drop(printed(&kubectl(&at, args)));
        run(&["apply", "--server-side", "-k", "config/crd/third-party"]);
        run(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);
        run(&["apply", "--server-side", "-k", "config/samples/third-party"]);
        run(&["apply", "--server-side", "--subresource=status", "-f", "config/samples/third-party/status.yaml"]);
        printed(&xtask(&at, &["deploy"]));
        for role in ["viewer", "editor", "approver", "admin"] {
            let name = format!("--clusterrole=virt-advisor-operator-virtplatformconfig-{role}-role");
            run(&["create", "clusterrolebinding", role, &name, &format!("--user={role}")]);
        }
        for role in ["view", "edit", "admin"] {
            let (name, user) = (format!("has-{role}"), format!("--user=has-{role}"));
            run(&["create", "clusterrolebinding", &name, &format!("--clusterrole={role}"), &user]);
        }
        run(&[
            "create",
            "rolebinding",
            "one-namespace",
            "-n",
            NAMESPACE,
            "--clusterrole=admin",
            "--user=one-namespace",
        ]);
        cluster
    };
    CLUSTER.get_or_init(start).await.access()
}

fn operator_account() -> Identity {
    Identity::service_account(NAMESPACE, "virt-advisor-operator-controller-manager")
}

/// Whether the API server would let somebody.
async fn can(access: &Access, who: &Identity, args: &[&str]) -> bool {
    let output = kubectl_as(access, who, &[&["auth", "can-i"], args].concat()).await;
    match text(&output.stdout).trim() {
        "yes" => true,
        "no" => false,
        _ => panic!("{args:?}: {}", text(&output.stderr)),
    }
}

// --- the manifests ---

#[tokio::test]
async fn what_users_apply_is_accepted_and_restricted_pods_are_what_it_runs() {
    let access = cluster().await;
    let at = access.kubeconfig(&Identity::Admin).await.unwrap();
    let warn = ["label", "--overwrite", "namespace", NAMESPACE, "pod-security.kubernetes.io/warn=restricted"];
    printed(&kubectl(&at, &warn));
    let folders = ["default", "namespace", "admission", "admission-audit", "approval-policy"];
    let folders = folders.map(|folder| ["-k".to_owned(), format!("config/{folder}")]);
    let files = ["install", "install-with-namespace"].map(|name| ["-f".to_owned(), format!("dist/{name}.yaml")]);
    for what in folders.into_iter().chain(files) {
        let flags = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict"];
        let output = kubectl(&at, &[&flags[..], &what.each_ref().map(String::as_str)].concat());
        printed(&output);
        assert_eq!(text(&output.stderr), "", "{what:?}: no warning");
    }
    let plain = kubectl(&at, &["apply", "-k", "config/default", "--dry-run=server"]);
    assert!(printed(&plain).contains("deployment.apps/virt-advisor-operator-controller-manager"));
}

/// W46 (deleted namespace): nor whatever else lives in it.
#[tokio::test]
async fn nothing_that_is_deployed_would_take_a_namespace_along_when_it_is_deleted() {
    let access = cluster().await;
    let at = access.kubeconfig(&Identity::Admin).await.unwrap();
    for text in [printed(&kubectl(&at, &["kustomize", "config/default"])), read("dist/install.yaml")] {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        assert!(objects.len() > 10 && objects.iter().all(|object| object["kind"] != "Namespace"));
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

// --- people ---

/// W47 (unusable roles and samples): the roles are about a kind that there is.
#[tokio::test]
async fn viewers_see_editors_change_approvers_approve_and_admins_may_clear_all() {
    let access = cluster().await;
    let see = ["get", "list", "watch"];
    let edit = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let approve = ["approve", "get", "list", "patch", "update", "watch"];
    let all = ["approve", "bypass", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let cases = [("viewer", &see[..]), ("editor", &edit), ("approver", &approve), ("admin", &all), ("nobody", &[])];
    for (name, granted) in cases {
        let who = Identity::user(name, &[]);
        for verb in all {
            let may = can(access, &who, &[verb, "virtplatformconfigs"]).await;
            assert_eq!(may, granted.contains(&verb), "{name} {verb}");
        }
        for verb in all {
            let may = can(access, &who, &[verb, "virtplatformplanrecords"]).await;
            assert_eq!(may, name != "nobody" && see.contains(&verb), "{name} {verb} records");
        }
        assert!(!can(access, &who, &["update", "virtplatformconfigs", "--subresource=status"]).await, "{name}");
        assert!(!can(access, &who, &["patch", "machineconfigs.machineconfiguration.openshift.io"]).await, "{name}");
    }
}

#[tokio::test]
async fn the_roles_are_part_of_the_clusters_own() {
    let access = cluster().await;
    let cases = [
        ("has-view", &["list"][..], &["patch"][..]),
        ("has-edit", &["list", "patch"], &["approve", "bypass", "deletecollection"]),
        ("has-admin", &["list", "patch", "approve", "bypass", "deletecollection"], &[]),
        ("one-namespace", &[], &["list", "patch", "approve"]),
    ];
    for (name, may, may_not) in cases {
        let who = Identity::user(name, &[]);
        for verb in may {
            // The API server puts aggregated roles together with a delay.
            let is_allowed = async || can(access, &who, &[verb, "virtplatformconfigs"]).await.then_some(());
            eventually(format!("{name} may {verb}"), is_allowed).await;
        }
        for verb in may_not {
            assert!(!can(access, &who, &[verb, "virtplatformconfigs"]).await, "{name} {verb}");
        }
    }
}

// --- the approval policy ---

/// The user name that the policy on statuses knows is the one of the operator that `make deploy` installs.
#[tokio::test]
async fn the_deployed_operator_is_the_one_that_the_policy_lets_write_statuses() {
    let access = cluster().await;
    let at = access.kubeconfig(&operator_account()).await.unwrap();
    let name = printed(&kubectl(&at, &["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]));
    assert_eq!(name, advisor::admission::installed_operator());
}

#[tokio::test]
async fn an_operator_that_keeps_the_policy_is_told_so_and_may() {
    let access = cluster().await;
    let at = access.kubeconfig(&Identity::Admin).await.unwrap();
    let rendered = |folder: &str| -> Vec<Value> {
        serde_saphyr::from_multiple(&printed(&kubectl(&at, &["kustomize", folder]))).unwrap()
    };
    let overlay = rendered("config/approval-policy");
    let args = |objects: &[Value]| -> Value {
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].clone()
    };
    let mut expected = args(&rendered("config/default"));
    expected.as_array_mut().unwrap().push("--approval-policy=Enforce".into());
    assert_eq!(args(&overlay), expected);

    let bindings: Vec<&Value> = overlay.iter().filter(|object| object["kind"] == "ClusterRoleBinding").collect();
    let subjects: Vec<&Value> = bindings.iter().map(|binding| &binding["subjects"]).collect();
    assert!(subjects.len() == 3 && subjects.iter().all(|subject| *subject == subjects[0]), "{subjects:?}");
    for binding in
        rendered("config/admission-audit").iter().filter(|object| object["kind"].as_str().unwrap().ends_with("Binding"))
    {
        assert_eq!(binding["spec"]["validationActions"], json!(["Audit"]));
    }
    // Where the overlay is not used, the operator has none of these rights.
    let policies = "validatingadmissionpolicies.admissionregistration.k8s.io";
    for verb in ["get", "list", "create", "patch", "update", "delete"] {
        let named = format!("{policies}/{}", advisor::admission::APPROVAL);
        assert!(!can(access, &operator_account(), &[verb, &named]).await, "{verb}");
    }
}

// --- the operator ---

/// Applies or deletes what a plan says, as the operator, with the verbs that the operator uses.
async fn carry_out(access: &Access, profile: &str, options: Option<Value>) -> Vec<(String, Verb)> {
    let options: Option<Options> = options.map(|options| serde_json::from_value(options).unwrap());
    let kubernetes = ApiServer::new(access.config(&operator_account()).await.unwrap(), "test").unwrap();
    let plan = make_plan(&kubernetes, profiles::find(profile).unwrap(), options.as_ref()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for planned in &plan.items {
        assert_eq!(planned.refusal, None, "{}", planned.item.name);
        let target = &planned.item.target_ref;
        if planned.verb == Verb::Deleted {
            let output = kubectl_as(access, &operator_account(), &["delete", &target.kind, &target.name]).await;
            printed(&output);
            continue;
        }
        let file = folder.path().join("object.json");
        std::fs::write(&file, json!(planned.item.desired_state).to_string()).unwrap();
        printed(&apply(access, &file, "--dry-run=none").await);
    }
    plan.items.iter().map(|planned| (planned.item.target_ref.kind.clone(), planned.verb)).collect()
}

async fn apply(access: &Access, file: &Path, dry_run: &str) -> Output {
    let flags = ["apply", "--server-side", "--force-conflicts", "--field-manager=virt-advisor-operator", dry_run, "-f"];
    kubectl_as(access, &operator_account(), &[&flags[..], &[file.to_str().unwrap()]].concat()).await
}

/// W47 (unusable roles and samples): every write of every profile.
#[tokio::test]
async fn the_operator_may_do_what_its_plans_need() {
    let access = cluster().await;
    let of = |kind: &str, verb| (kind.to_owned(), verb);
    let load_aware = carry_out(access, "load-aware-rebalancing", None).await;
    assert_eq!(load_aware, [of("MachineConfig", Verb::Created), of("KubeDescheduler", Verb::Created)]);
    let off = json!({"loadAware": {"enablePSIMetrics": false}});
    let load_aware = carry_out(access, "load-aware-rebalancing", Some(off)).await;
    assert_eq!(load_aware, [of("MachineConfig", Verb::Deleted), of("KubeDescheduler", Verb::Unchanged)]);

    let density = carry_out(access, "virt-higher-density", None).await;
    assert_eq!(density, [of("MachineConfig", Verb::Created), of("HyperConverged", Verb::Configured)]);
    let off = json!({"virtHigherDensity": {"enableSwap": false}});
    let density = carry_out(access, "virt-higher-density", Some(off)).await;
    assert_eq!(density[0], of("MachineConfig", Verb::Deleted));

    assert_eq!(carry_out(access, "example-profile", None).await, [of("ConfigMap", Verb::Created)]);
}

#[tokio::test]
async fn the_operator_watches_what_it_names_and_reads_what_it_must() {
    let access = cluster().await;
    let at = access.kubeconfig(&operator_account()).await.unwrap();
    let config = "machineconfigs.machineconfiguration.openshift.io";
    let named = |kind: &str, name: &str| [kind.to_owned(), format!("--field-selector=metadata.name={name}")];
    for [kind, selector] in [
        named(config, "99-worker-psi-karg"),
        named(config, "90-worker-kubelet-swap"),
        named("machineconfigurations.operator.openshift.io", "cluster"),
    ] {
        printed(&kubectl(&at, &["get", &kind, &selector]));
    }
    for namespace in ["openshift-cnv", "kubevirt-hyperconverged"] {
        let [kind, selector] = named("hyperconvergeds.hco.kubevirt.io", "kubevirt-hyperconverged");
        printed(&kubectl(&at, &["get", &kind, &selector, "-n", namespace]));
    }
    let [kind, selector] = named("kubedeschedulers.operator.openshift.io", "cluster");
    printed(&kubectl(&at, &["get", &kind, &selector, "-n", "openshift-kube-descheduler-operator"]));
    printed(&kubectl(&at, &["get", config, "rendered-worker-d9366560000b5d89c5825f832fda0bd6"]));
    for kind in ["machineconfigpools", "crd", "virtplatformconfigs"] {
        printed(&kubectl(&at, &["get", kind]));
    }
}

/// W38 (cluster in memory), D12 (named watches only): not even list the MachineConfigs that no plan names.
#[tokio::test]
async fn the_operator_may_do_nothing_else() {
    let access = cluster().await;
    let who = operator_account();
    let (descheduler, operators) = ("kubedeschedulers.operator.openshift.io", "openshift-kube-descheduler-operator");
    let refused: &[&[&str]] = &[
        &["*", "*", "--all-namespaces"],
        &["get", "secrets", "-n", NAMESPACE],
        &["list", "pods", "-n", NAMESPACE],
        &["list", "nodes"],
        &["create", "clusterrolebindings.rbac.authorization.k8s.io"],
        // What belongs to others is never replaced, and no more of it is touched than is named.
        &["update", "machineconfigs.machineconfiguration.openshift.io"],
        &["list", "machineconfigs.machineconfiguration.openshift.io"],
        &["create", "machineconfigs.machineconfiguration.openshift.io"],
        &["patch", "machineconfigs.machineconfiguration.openshift.io/00-worker"],
        &["delete", "machineconfigs.machineconfiguration.openshift.io/00-worker"],
        &["patch", "machineconfigpools.machineconfiguration.openshift.io/worker"],
        &["patch", "machineconfigurations.operator.openshift.io/cluster"],
        &["create", "hyperconvergeds.hco.kubevirt.io/kubevirt-hyperconverged", "-n", NAMESPACE],
        &["delete", "hyperconvergeds.hco.kubevirt.io/kubevirt-hyperconverged", "-n", NAMESPACE],
        &["patch", "hyperconvergeds.hco.kubevirt.io/another", "-n", NAMESPACE],
        &["update", &format!("{descheduler}/cluster"), "-n", operators],
        &["delete", &format!("{descheduler}/another"), "-n", operators],
        &["patch", &format!("{descheduler}/another"), "-n", operators],
        &["patch", "configmaps/example-config", "-n", "default"],
        &["patch", "configmaps/kubevirt-config", "-n", NAMESPACE],
        // What belongs to people: only the status is the operator's.
        &["update", "virtplatformconfigs"],
        &["delete", "virtplatformconfigs"],
        // Evidence is added and, when it is old, deleted. It is never changed.
        &["update", "virtplatformplanrecords"],
        &["patch", "virtplatformplanrecords"],
        &["watch", "virtplatformplanrecords"],
        &["patch", "customresourcedefinitions.apiextensions.k8s.io"],
        &["update", "leases.coordination.k8s.io/another", "-n", NAMESPACE],
        &["update", "leases.coordination.k8s.io/virt-advisor-operator", "-n", "default"],
        &["create", "events.events.k8s.io", "-n", NAMESPACE],
        // It serves metrics and asks who reads them; nothing else in kube-system is its business.
        &["get", "/metrics"],
        &["put", "/loglevel"],
        &["get", "configmaps/another", "-n", "kube-system"],
        &["update", "configmaps/extension-apiserver-authentication", "-n", "kube-system"],
        &["get", "secrets", "-n", "kube-system"],
        &["create", "serviceaccounts/token", "-n", NAMESPACE],
    ];
    for args in refused {
        assert!(!can(access, &who, args).await, "it may {args:?}");
    }
    let granted: &[&[&str]] = &[
        &["update", "virtplatformconfigs", "--subresource=status"],
        &["create", "virtplatformconfigs"],
        &["patch", "virtplatformconfigs"],
        &["create", "virtplatformplanrecords"],
        &["delete", "virtplatformplanrecords"],
        &["patch", "virtplatformplanrecords", "--subresource=status"],
        // An object that a plan created is deleted when the plan is taken back.
        &["delete", &format!("{descheduler}/cluster"), "-n", operators],
        &["create", "leases.coordination.k8s.io", "-n", NAMESPACE],
        &["get", "leases.coordination.k8s.io/virt-advisor-operator", "-n", NAMESPACE],
        &["update", "leases.coordination.k8s.io/virt-advisor-operator", "-n", NAMESPACE],
        &["create", "events.events.k8s.io", "-n", "default"],
        &["create", "tokenreviews.authentication.k8s.io"],
        &["create", "subjectaccessreviews.authorization.k8s.io"],
        &["get", "configmaps/extension-apiserver-authentication", "-n", "kube-system"],
    ];
    for args in granted {
        assert!(can(access, &who, args).await, "it may not {args:?}");
    }
}

/// A name binds `create` when it comes by an apply, which is how the operator creates, and rules out a POST.
#[tokio::test]
async fn the_operator_creates_by_apply_and_under_the_names_it_declared_alone() {
    let access = cluster().await;
    let folder = tempfile::tempdir().unwrap();
    let object = |name: &str| {
        let file = folder.path().join(name);
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE},
        });
        std::fs::write(&file, object.to_string()).unwrap();
        file
    };
    // Other tests here create it in earnest.
    let dry_run = "--dry-run=server";
    let refused = apply(access, &object("other-config"), dry_run).await;
    assert!(text(&refused.stderr).contains("cannot patch resource \"configmaps\""), "{refused:?}");
    let file = object("example-config");
    let posted = kubectl_as(access, &operator_account(), &["create", dry_run, "-f", file.to_str().unwrap()]).await;
    assert!(text(&posted.stderr).contains("cannot create resource \"configmaps\""), "{posted:?}");
    printed(&apply(access, &file, dry_run).await);
}
