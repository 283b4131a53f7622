//! `virt-advisor impact` on a real API server, with guests of every class, as an administrator and with fewer rights.

use std::process::Output;

use devcluster::{Access, Cluster, Identity, RunningProgram};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::sync::OnceCell;

use crate::{
    cli_page,
    guide::document::Document,
    published,
    support::{apply, install_definitions, kubectl, phase, program, run_as, text},
};

pub(crate) const PROFILE: &str = "load-aware-rebalancing";

/// Three workers with guests of every class, and a plan that reboots them.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    _operator: RunningProgram,
}

async fn site() -> &'static Site {
    static SITE: OnceCell<Site> = OnceCell::const_new();
    SITE.get_or_init(start).await
}

pub(crate) async fn start() -> Site {
    let cluster = Cluster::builder().start().await.unwrap();
    let access = cluster.access();
    install_definitions(access).await;
    for args in [
        &["apply", "--server-side", "--subresource=status", "-f", "config/samples/third-party/status.yaml"][..],
        &["apply", "--server-side", "-k", "config/samples/virtual-machines"],
        &["apply", "--server-side", "--subresource=status", "-f", "config/samples/virtual-machines/status.yaml"],
        // No controller is here to create it.
        &["-n", "guests", "create", "serviceaccount", "default"],
        &["create", "clusterrole", "plans", "--verb=get,list", "--resource=virtplatformconfigs.advisor.kubevirt.io"],
        &[
            "create",
            "clusterrole",
            "nodes",
            "--verb=list",
            "--resource=nodes,machineconfigpools.machineconfiguration.openshift.io",
        ],
        &["create", "clusterrole", "guests", "--verb=list", "--resource=virtualmachineinstances.kubevirt.io"],
        &["create", "clusterrolebinding", "plans", "--clusterrole=plans", "--user=petra", "--user=vera", "--user=olga"],
        &["create", "clusterrolebinding", "nodes", "--clusterrole=nodes", "--user=vera", "--user=olga"],
        &[
            "-n",
            "guests",
            "create",
            "role",
            "owner",
            "--verb=list",
            "--resource=virtualmachineinstances.kubevirt.io,virtualmachines.kubevirt.io",
            "--resource=virtualmachineinstancemigrations.kubevirt.io,pods,poddisruptionbudgets.policy",
        ],
        &["-n", "guests", "create", "rolebinding", "owner", "--role=owner", "--user=olga"],
        &["create", "clusterrolebinding", "guests", "--clusterrole=guests", "--user=vera"],
    ] {
        kubectl(access, args).await;
    }
    for (number, zone) in ["b", "a", "a"].into_iter().enumerate() {
        create_node(access, &format!("worker-{number}"), zone).await;
    }
    let guests: Value = serde_json::from_str(&kubectl(access, &["get", "vmi", "-A", "-o", "json"]).await).unwrap();
    for guest in guests["items"].as_array().unwrap() {
        apply(access, &launcher(guest)).await;
    }
    apply(access, &config()).await;
    let args = ["operator"];
    let operator = access.run(&Identity::Admin, "operator", &program(), &args).await.unwrap();
    phase(access, PROFILE, "ReviewRequired").await;
    phase(access, "virt-higher-density", "Ignored").await;
    Site { cluster, _operator: operator }
}

fn config() -> Value {
    json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": PROFILE}, "spec": {"profile": PROFILE, "action": "DryRun"},
    })
}

async fn create_node(access: &Access, name: &str, zone: &str) {
    let labels = json!({"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": zone});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": "aws:///eu-central-1a/i-0"},
    });
    apply(access, &node).await;
    let status = json!({"status": {
        "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "250"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}],
    }});
    kubectl(access, &["patch", "node", name, "--subresource=status", "--type=merge", "-p", &status.to_string()]).await;
    // The API server taints new nodes, and takes the taint off when a controller says so. There is none here.
    kubectl(access, &["patch", "node", name, "--type=merge", "-p", r#"{"spec":{"taints":null}}"#]).await;
}

/// The pod in which KubeVirt runs a guest.
fn launcher(guest: &Value) -> Value {
    let name = guest["metadata"]["name"].as_str().unwrap();
    let memory = &guest["spec"]["domain"]["memory"]["guest"];
    let labels = json!({"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": guest["metadata"]["uid"]});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("virt-launcher-{name}"), "namespace": "guests", "labels": labels,
            "annotations": {"kubevirt.io/domain": name},
        },
        "spec": {
            "nodeName": guest["status"]["nodeName"],
            "containers": [{"name": "compute", "image": "x", "resources": {"requests": {"cpu": "1", "memory": memory}}}],
        },
    })
}

async fn impact(who: &Identity, args: &[&str]) -> Output {
    let args: Vec<&str> = [&["impact"], args].concat();
    run_as(site().await.cluster.access(), who, &program(), &args, &[]).await
}

async fn report(who: &Identity, args: &[&str]) -> Value {
    let output = impact(who, &[&[PROFILE, "-o", "json"], args].concat()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    published::document(&output)
}

/// `node/guest effect` of all guests.
fn effects(report: &Value) -> Vec<String> {
    let nodes = report["plans"][0]["impact"]["pools"].as_array().unwrap().iter();
    let guests =
        nodes.flat_map(|pool| pool["nodes"].as_array().unwrap()).flat_map(|node| node["guests"].as_array().unwrap());
    let text = |guest: &Value, field: &str| guest[field].as_str().unwrap().to_owned();
    guests.map(|guest| format!("{}/{} {}", text(guest, "node"), text(guest, "name"), text(guest, "effect"))).collect()
}

fn risks(report: &Value) -> Vec<&str> {
    let risks = report["plans"][0]["impact"]["risks"].as_array().unwrap();
    risks.iter().map(|risk| risk["name"].as_str().unwrap()).collect()
}

fn admin() -> Identity {
    Identity::Admin
}

#[tokio::test]
async fn an_administrator_learns_what_happens_to_every_guest() {
    let report = report(&admin(), &[]).await;
    assert_eq!(report["kind"], "ImpactReport");
    // Zone a before zone b, and on each node the worst first.
    assert_eq!(
        effects(&report),
        [
            "worker-1/console-made staysDown",
            "worker-1/web-2 movesLive",
            "worker-2/hosted-node blocksDrain",
            "worker-2/bare staysDown",
            "worker-0/db-1 blocksDrain",
            "worker-0/batch restarts",
            "worker-0/web-1 movesLive",
        ]
    );
    for name in ["VMBlocksDrain", "VMStaysDown", "VMRestarts"] {
        assert!(risks(&report).contains(&name), "{name}: {:?}", risks(&report));
    }
    assert_eq!(report["plans"][0]["impact"]["unread"], json!([]));
    assert_eq!(report["plans"][0]["impact"]["capacity"]["result"], "enough");
    assert_eq!(report["plans"][0]["mayPause"], true);
    // One list per kind: none has more than a page here. The kind of operations in flight is not served.
    assert_eq!(report["read"]["requests"], 11);
}

#[tokio::test]
async fn the_page_shows_a_real_impact() {
    let output = impact(&admin(), &[PROFILE]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(!shown.contains('\u{1b}'), "no colors where nobody looks: {shown:?}");
    // How many Events there are depends on how long the cluster runs.
    let line = |line: &str| match line {
        line if line.starts_with("Read ") => "Read 38 objects with 11 requests.\n".to_owned(),
        line => format!("{line}\n"),
    };
    let shown: String = shown.lines().map(line).collect();
    Document::of(format!("$ virt-advisor impact {PROFILE}\n{shown}")).check("docs/impact.md");
    cli_page::check("impact", &[("kubectl virt-advisor impact load-aware-rebalancing", &shown)]);
}

#[tokio::test]
async fn whoever_may_not_read_guests_is_told_so_and_nothing_is_guessed() {
    let petra = report(&Identity::user("petra", &[]), &[]).await;
    let impact = &petra["plans"][0]["impact"];
    let unread: Vec<_> =
        impact["unread"].as_array().unwrap().iter().map(|unread| unread["what"].as_str().unwrap()).collect();
    assert_eq!(
        unread,
        [
            "MachineConfigPools",
            "Nodes",
            "Infrastructure",
            "VirtualMachineInstances",
            "VirtualMachines",
            "KubeVirt",
            "VirtualMachineInstanceMigrations",
            "Pods",
            "PodDisruptionBudgets",
            "Events",
            "InFlightOperations",
        ]
    );
    assert_eq!(impact["pools"][0]["expectedNodes"], 3, "what the plan itself says: {impact:#}");
    assert_eq!((&impact["totals"]["nodes"], &impact["duration"]["maxSeconds"]), (&json!(0), &Value::Null));
    assert!(risks(&petra).contains(&"NotEverythingRead"));
    assert_eq!(petra["plans"][0]["mayPause"], false);
    let shown = text(&self::impact(&Identity::user("petra", &[]), &[PROFILE]).await.stdout);
    assert!(shown.starts_with("load-aware-rebalancing: nodes reboot, and which is not known"), "{shown}");
    assert!(shown.contains("VirtualMachineInstances: forbidden (403)."), "{shown}");
}

#[tokio::test]
async fn what_depends_on_what_may_not_be_read_is_unknown_and_the_rest_is_told() {
    let vera = report(&Identity::user("vera", &[]), &[]).await;
    assert_eq!(
        effects(&vera),
        [
            "worker-1/console-made unknown",
            "worker-1/web-2 movesLive",
            "worker-2/hosted-node blocksDrain",
            "worker-2/bare staysDown",
            "worker-0/db-1 blocksDrain",
            "worker-0/batch unknown",
            "worker-0/web-1 movesLive",
        ]
    );
    let impact = &vera["plans"][0]["impact"];
    assert_eq!(impact["capacity"]["result"], "unknown");
    assert!(risks(&vera).contains(&"SpareCapacityUnknown"), "{:?}", risks(&vera));
}

#[tokio::test]
async fn the_owner_of_a_namespace_looks_at_its_guests_only() {
    let olga = Identity::user("olga", &[]);
    let shown = text(&impact(&olga, &[PROFILE]).await.stdout);
    assert!(shown.contains("VirtualMachineInstances: forbidden (403)."), "{shown}");
    assert!(shown.contains("With -n NAMESPACE only the virtual machines of one namespace are read"), "{shown}");
    let own = report(&olga, &["-n", "guests"]).await;
    assert_eq!(effects(&own), effects(&report(&admin(), &[]).await));
    let impact = &own["plans"][0]["impact"];
    assert!(impact["notes"][0].as_str().unwrap().starts_with("Only namespace guests is looked at"), "{impact:#}");
    assert_eq!(impact["capacity"]["result"], "unknown", "pods of others are not known");
    let other = report(&admin(), &["-n", "default"]).await;
    assert_eq!(effects(&other), [""; 0], "guests of another namespace are left out");
}

#[tokio::test]
async fn without_the_right_to_read_plans_the_error_says_which() {
    let output = impact(&Identity::user("nobody", &[]), &[PROFILE]).await;
    assert_eq!(output.status.code(), Some(5));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: reading /apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/"), "{said}");
    assert!(said.contains("forbidden"), "{said}");
}

#[tokio::test]
async fn a_profile_without_a_plan_and_one_that_is_not_there_are_told_apart() {
    for (profile, code, expected) in [
        ("virt-higher-density", 9, "error: virt-higher-density has no plan: set spec.action to DryRun"),
        ("nonsense", 9, "error: there is no VirtPlatformConfig nonsense"),
    ] {
        let output = impact(&admin(), &[profile]).await;
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(code) && said.starts_with(expected), "{profile}: {said}");
    }
}

/// There is no KubeVirt here whose webhook would answer, so every eviction would be carried out.
#[tokio::test]
async fn a_probe_asks_by_dry_runs_and_evicts_nobody() {
    let cluster = &site().await.cluster;
    let client = cluster.access().client().await.unwrap();
    let start = cluster.audit().position(&client).await.unwrap();
    let report = report(&admin(), &["--probe"]).await;
    let answers = report["plans"][0]["probe"].as_array().unwrap();
    assert_eq!(answers.len(), 7);
    assert!(answers.iter().all(|answer| answer["result"] == "shutDown"), "{answers:#?}");
    let agrees = |name: &str| answers.iter().find(|answer| answer["name"] == name).unwrap()["agrees"].clone();
    assert_eq!([agrees("batch"), agrees("bare"), agrees("web-1"), agrees("db-1")], [true, true, false, false]);
    let all = cluster.audit().since(start, &client).await.unwrap();
    let own: Vec<_> = all.iter().filter(|request| request.user_agent == api::user_agent("impact")).collect();
    let evictions: Vec<_> =
        own.iter().filter(|request| request.verb == "create" && request.resource == "pods").collect();
    assert_eq!(evictions.len(), 7, "{own:#?}");
    assert!(evictions.iter().all(|request| request.dry_run), "{evictions:#?}");
    let vera = self::report(&Identity::user("vera", &[]), &["--probe"]).await;
    let answers = vera["plans"][0]["probe"].as_array().unwrap();
    assert!(answers.iter().all(|answer| answer["result"] == "notAsked"), "{answers:#?}");
}

/// KubeVirt's VirtualMachine claims the same short name, and its group would come first.
#[tokio::test]
async fn vm_still_means_the_labs_kind_where_both_are_installed() {
    let cluster = Cluster::builder().start().await.unwrap();
    let access = cluster.access();
    kubectl(access, &["apply", "--server-side", "-k", "config/crd/third-party"]).await;
    kubectl(access, &["apply", "--server-side", "-f", "config/crd/simulation.node-classifier.io_virtualmachines.yaml"])
        .await;
    kubectl(access, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await;
    kubectl(access, &["apply", "--server-side", "-f", "config/samples/virtualmachine_sample.yaml"]).await;
    for short in ["vm", "vms"] {
        // What kubectl knows of the API server may be older than the definitions.
        let shown = async || {
            let shown = kubectl(access, &["get", short, "-A", "-o", "name"]).await;
            (!shown.is_empty()).then_some(shown)
        };
        let shown = eventually(format!("{short} shows something"), shown).await;
        assert!(shown.lines().all(|name| name.starts_with("virtualmachine.simulation.node-classifier.io/")), "{shown}");
    }
}
