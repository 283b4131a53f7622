//! What `config/lab` says about our parts, done with the binary itself: the arguments mean something, and each part does its
//! work with the rights of its service account and no others.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use api::{VirtualMachine, virtual_machine::Phase};
use base64::{Engine, prelude::BASE64_STANDARD};
use devcluster::{
    Cluster, Companion, Identity, Mark, Port,
    tools::{self, Program},
};
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
};
use lab::{kwok, manifests, prometheus};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::eventually;

const GRACE: Duration = Duration::from_secs(10);
const POLICY: &str = "/policy-dir/policy.yaml";
const PROMETHEUS: &str = "http://prometheus.monitoring.svc:9090";
const FILES: [&str; 6] = [
    "descheduler.yaml",
    "descheduler-operator.yaml",
    "eviction-webhook.yaml",
    "kwok-nodes.yaml",
    "metrics-exporter.yaml",
    "vm-controller.yaml",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn objects(file: &str) -> Vec<Value> {
    let path = root().join("config/lab").join(file);
    serde_saphyr::from_multiple(&fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn one(file: &str, kind: &str, name: &str) -> Value {
    let found = objects(file).into_iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{file} has no {kind} {name}"))
}

/// The arguments of a container, with some of them changed: what only a pod has is put in from here.
fn args(deployment: &Value, container: &str, changes: &[(&str, &str)]) -> Vec<String> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let container = containers.iter().find(|it| it["name"] == container).unwrap();
    let args = container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned());
    let change = |arg: String| changes.iter().fold(arg, |arg, (from, to)| arg.replace(from, to));
    args.map(change).filter(|arg| !arg.is_empty()).collect()
}

/// Holds L11.
#[test]
fn the_arguments_of_every_container_mean_something_to_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, "kind: DeschedulerPolicy\n").unwrap();
    let mut seen = BTreeSet::new();
    for deployment in FILES.iter().flat_map(|file| objects(file)).filter(|object| object["kind"] == "Deployment") {
        for container in deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap() {
            if container["image"] != manifests::IMAGE {
                continue;
            }
            let name = container["name"].as_str().unwrap();
            let args = args(&deployment, name, &[(POLICY, policy.to_str().unwrap())]);
            let output = Command::new(env!("CARGO_BIN_EXE_rebalance-lab"))
                .args(&args)
                .env("KUBECONFIG", "/nowhere/kubeconfig")
                .env_remove("KUBERNETES_SERVICE_HOST")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            // All that is wrong is that there is no cluster.
            assert!(told.contains("there is no cluster to look at"), "{name} {args:?}: {told}");
            seen.insert(args[0].clone());
        }
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        ["descheduler-operator", "exporter", "soft-tainter", "vm-controller", "webhook"]
    );
}

/// A cluster into which manifests were installed, and the processes that play their pods.
struct Site {
    cluster: Cluster,
    client: Client,
    folder: TempDir,
    start: Mark,
    processes: Vec<Companion>,
}

impl Site {
    async fn new(cluster: Cluster) -> Site {
        let client = cluster.access().client().await.unwrap();
        let start = cluster.audit().mark(&client).await.unwrap();
        Site { cluster, client, folder: tempfile::tempdir().unwrap(), start, processes: Vec::new() }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    async fn kubectl(&self, args: &[&str]) -> String {
        let output = self.cluster.access().kubectl(&Identity::Admin, args).await.unwrap();
        assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    async fn apply(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let file = self.write("apply.json", &list);
        self.kubectl(&["apply", "--server-side", "-f", &file]).await;
    }

    /// Runs a program as the service account of a Deployment.
    async fn run(&mut self, deployment: &Value, name: &'static str, program: &Path, args: &[String]) -> PathBuf {
        let who = account(deployment);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let process = self.cluster.access().run(&who, name, program, &args).await.unwrap();
        let log = process.log().to_owned();
        self.processes.push(process);
        log
    }

    /// Runs one of our parts with the arguments of its container.
    async fn part(&mut self, file: &str, name: &'static str, changes: &[(&str, &str)], more: &[&str]) -> PathBuf {
        let deployment = one(file, "Deployment", name);
        let mut args = args(&deployment, name, changes);
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        self.run(&deployment, name, Path::new(env!("CARGO_BIN_EXE_rebalance-lab")), &args).await
    }

    async fn stop(&mut self) {
        for process in self.processes.drain(..).rev() {
            process.stop(GRACE).await.unwrap();
        }
    }

    /// Checks that nobody was refused anything. Returns the rights that nobody has used, as far as they are listed in
    /// `file` for `account`.
    async fn unused(&self, file: &str, account: &Identity) -> Vec<String> {
        let all = self.cluster.audit().since(self.start, &self.client).await.unwrap();
        let user = account.to_string();
        let by: Vec<_> = all.into_iter().filter(|request| request.user == user).collect();
        assert!(!by.is_empty(), "{user} has done nothing");
        let refused: BTreeSet<_> = by.iter().filter(|it| it.lacks_right).map(ToString::to_string).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        let Identity::ServiceAccount { namespace, name } = account else { panic!("{account}") };
        let is_bound = |binding: &Value, role: &Value| {
            let subject = &binding["subjects"][0];
            subject["name"] == *name
                && subject["namespace"] == *namespace
                && binding["roleRef"]["name"] == role["metadata"]["name"]
                && binding["roleRef"]["kind"] == role["kind"]
        };
        let objects = objects(file);
        let roles = objects.iter().filter(|role| objects.iter().any(|binding| is_bound(binding, role)));
        let (mut unused, watch) = (Vec::new(), json!("watch"));
        for rule in roles.flat_map(|role| role["rules"].as_array().unwrap()) {
            let (group, resource) = (rule["apiGroups"][0].as_str().unwrap(), rule["resources"][0].as_str().unwrap());
            for verb in rule["verbs"].as_array().unwrap() {
                // Whether what is watched is listed first depends on the versions of both sides.
                let verb = if verb == "list" { &watch } else { verb };
                let is_this = |it: &&devcluster::Request| {
                    let whole = [&*it.resource, &*it.subresource].join("/");
                    it.group == group && whole.trim_end_matches('/') == resource && it.verb == *verb
                };
                if !by.iter().any(|it| is_this(&it)) {
                    unused.push(format!("{} {resource}", verb.as_str().unwrap()));
                }
            }
        }
        unused
    }
}

fn account(deployment: &Value) -> Identity {
    let name = deployment["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap();
    Identity::service_account(deployment["metadata"]["namespace"].as_str().unwrap(), name)
}

/// The authority of a cluster, which the descheduler wants to see whatever it asks.
fn authority(kubeconfig: &Path) -> Vec<u8> {
    let config: Value = serde_saphyr::from_str(&fs::read_to_string(kubeconfig).unwrap()).unwrap();
    let data = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    BASE64_STANDARD.decode(data.as_str().expect("an authority")).unwrap()
}

fn has_taint(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key.ends_with("/overutilized")))
}

/// Holds L7 and L14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_the_manifests_balance_a_skew_with_the_rights_of_their_accounts() {
    let exporter_port = Port::reserve().unwrap();
    let settings = prometheus::Settings { time_scale: 20.0, ..prometheus::Settings::new(exporter_port.address()) };
    let cluster = Cluster::builder()
        .scheduler()
        .controllers(&kwok::CONTROLLERS)
        .prometheus(settings.component(None))
        .start()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let url = format!("http://{}", cluster.address(devcluster::Component::Prometheus).unwrap());
    let mut site = Site::new(cluster).await;
    cluster_definition(&site).await;
    for file in ["prometheus.yaml", "prometheus-rules.yaml", "kwok-nodes.yaml", "vm-controller.yaml"] {
        site.apply(&objects(file)).await;
    }
    for file in ["eviction-webhook.yaml", "metrics-exporter.yaml", "descheduler.yaml", "descheduler-policy.yaml"] {
        site.apply(&objects(file)).await;
    }

    registers_itself(&mut site).await;

    // KWOK, with the stages of the manifest.
    let stages = one("kwok-nodes.yaml", "ConfigMap", "kwok-stages");
    let stages = site.write("stages.yaml", stages["data"]["stages.yaml"].as_str().unwrap());
    let port = Port::reserve().unwrap();
    let changes =
        [("/etc/kwok/stages.yaml", stages.as_str()), ("$(POD_IP)", "127.0.0.1"), ("0.0.0.0:10247", &port.address())];
    let deployment = one("kwok-nodes.yaml", "Deployment", "kwok-controller");
    let program = tokio::task::spawn_blocking(|| tools::ensure(Program::Kwok)).await.unwrap().unwrap();
    let kwok_args = args(&deployment, "kwok-controller", &changes);
    site.run(&deployment, "kwok-controller", &program, &kwok_args).await;

    site.part("vm-controller.yaml", "vm-controller", &[("--port=8080", "--port=0")], &["--time-scale=20"]).await;
    let port = format!("--port={}", exporter_port.number());
    site.part("metrics-exporter.yaml", "metrics-exporter", &[("--port=8000", &port)], &["--host=127.0.0.1"]).await;
    let here = ["--host=127.0.0.1", "--reach=127.0.0.1"];
    let changes = [("--port=8443", "--port=0"), ("--service=default/eviction-webhook", "")];
    site.part("eviction-webhook.yaml", "eviction-webhook", &changes, &here).await;

    place_examples(&site).await;

    // Outside of a cluster the descheduler takes its token from a Secret. In a pod it needs neither that nor the right.
    let policy = one("descheduler-policy.yaml", "ConfigMap", "descheduler-policy");
    let policy = policy["data"]["policy.yaml"].as_str().unwrap().replace(PROMETHEUS, &url);
    let mut document: Value = serde_saphyr::from_str(&policy).unwrap();
    let reference = json!({"secretReference": {"namespace": "kube-descheduler", "name": "token"}});
    document["metricsProviders"][0]["prometheus"]["authToken"] = reference;
    let policy = site.write("policy.yaml", &document.to_string());
    let metadata = json!({"name": "token", "namespace": "kube-descheduler"});
    let subject = json!({"kind": "ServiceAccount", "name": "descheduler", "namespace": "kube-descheduler"});
    site.apply(&[
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"prometheusAuthToken": "any"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "token"}, "subjects": [subject]}),
    ])
    .await;
    let deployment = one("descheduler.yaml", "Deployment", "descheduler");
    let kubeconfig = site.cluster.access().kubeconfig(&account(&deployment)).await.unwrap();
    fs::write(site.folder.path().join("prometheus-ca.crt"), authority(&kubeconfig)).unwrap();
    let port = Port::reserve().unwrap();
    let changes = [(POLICY, policy.as_str()), ("10258", &port.number().to_string()), ("=60s", "=3s")];
    let mut descheduler_args = args(&deployment, "descheduler", &changes);
    descheduler_args.push(format!("--kubeconfig={}", kubeconfig.display()));
    let program = tokio::task::spawn_blocking(standins::descheduler::program).await.unwrap().unwrap();
    let (folder, log) = (site.folder.path().to_owned(), site.folder.path().join("descheduler.log"));
    let descheduler = Companion::spawn("descheduler", &program, descheduler_args, &folder, &log).unwrap();

    let changes = [(POLICY, policy.as_str()), (PROMETHEUS, &url), ("--port=8081", "--port=0")];
    site.part("descheduler.yaml", "soft-tainter", &changes, &["--time-scale=20", "--host=127.0.0.1"]).await;

    let vms: Api<VirtualMachine> = Api::default_namespaced(site.client.clone());
    let has_moved = async || {
        let all = vms.list(&ListParams::default()).await.unwrap().items;
        let moved = all.iter().filter(|vm| {
            let conditions = vm.status.as_ref().map(|status| &status.conditions);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition.type_ == "Migrated" && condition.status == "True")
        });
        let by_descheduler = moved
            .filter(|vm| vm.annotations().get("kubevirt.io/eviction-source").is_some_and(|by| by == "descheduler"));
        (by_descheduler.count() >= 3).then_some(())
    };
    eventually("three VMs have moved", has_moved).await;
    let nodes: Api<Node> = Api::all(site.client.clone());
    let is_tainted = async || nodes.list(&ListParams::default()).await.unwrap().iter().any(has_taint).then_some(());
    eventually("a busy node is marked for the scheduler", is_tainted).await;

    // A deletion is a migration, too, and a VM that goes takes its pod with it.
    let pods: Api<Pod> = Api::default_namespaced(site.client.clone());
    let name = vms.get("vm-60").await.unwrap().status.unwrap().pod_name.unwrap();
    let refused = pods.delete(&name, &DeleteParams::default()).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 429), "{refused:?}");
    vms.delete("vm-60", &DeleteParams::default()).await.unwrap();
    let is_gone = async || pods.get_opt(&name).await.unwrap().is_none().then_some(());
    eventually("the VM's pod goes with it", is_gone).await;

    descheduler.stop(GRACE).await.unwrap();
    site.stop().await;
    let unused = async |file, name| site.unused(file, &account(&one(file, "Deployment", name))).await;
    assert_eq!(unused("vm-controller.yaml", "vm-controller").await, [""; 0]);
    assert_eq!(unused("metrics-exporter.yaml", "metrics-exporter").await, [""; 0]);
    // An apply that creates is a patch in the log, and needs both rights.
    let logged_otherwise = unused("eviction-webhook.yaml", "eviction-webhook").await;
    assert_eq!(logged_otherwise, ["create validatingwebhookconfigurations"]);
    assert_eq!(unused("kwok-nodes.yaml", "kwok-controller").await, [""; 0]);
    // When a policy has a priority threshold, and when an eviction fails.
    let rarely = unused("descheduler.yaml", "descheduler").await;
    let rarely: Vec<_> = rarely.iter().filter(|right| *right != "create events").collect();
    assert_eq!(rarely, ["get priorityclasses"]);
    // When somebody else has changed the node meanwhile.
    let rarely = unused("descheduler.yaml", "soft-tainter").await;
    assert!(rarely.is_empty() || rarely == ["get nodes"], "{rarely:?}");
}

async fn cluster_definition(site: &Site) {
    site.apply(&objects("virtualmachine-crd.yaml")).await;
    let crd = "crd/virtualmachines.simulation.node-classifier.io";
    site.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", crd]).await;
}

/// With the arguments of its pod, the webhook adds its authority to the configuration of the manifest and nothing else.
async fn registers_itself(site: &mut Site) {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(site.client.clone());
    let name = "eviction-webhook";
    let before = configurations.get(name).await.unwrap().webhooks.unwrap();
    assert!(before.iter().all(|webhook| webhook.client_config.ca_bundle.is_none()));
    site.part("eviction-webhook.yaml", name, &[("--port=8443", "--port=0")], &["--host=127.0.0.1"]).await;
    let is_trusted = async || {
        let webhooks = configurations.get(name).await.unwrap().webhooks.unwrap();
        webhooks.iter().all(|webhook| webhook.client_config.ca_bundle.is_some()).then_some(webhooks)
    };
    let mut after = eventually("the webhook writes its authority", is_trusted).await;
    for webhook in &mut after {
        webhook.client_config.ca_bundle = None;
    }
    assert_eq!(after, before);
    site.stop().await;
    // No Service leads to this machine.
    configurations.delete(name, &DeleteParams::default()).await.unwrap();
}

/// As the script does it.
async fn place_examples(site: &Site) {
    let others = ["kwok-node-3", "kwok-node-4", "kwok-node-5"];
    site.kubectl(&["wait", "--for=condition=Ready", "--timeout=60s", "nodes", "-l", "kubevirt.io/schedulable=true"])
        .await;
    site.kubectl(&[&["cordon"], &others[..]].concat()).await;
    site.apply(&objects("example-vms.yaml")).await;
    site.kubectl(&["wait", "--for=jsonpath={.status.phase}=Running", "--timeout=60s", "vm", "--all"]).await;
    site.kubectl(&[&["uncordon"], &others[..]].concat()).await;
    let vms: Api<VirtualMachine> = Api::default_namespaced(site.client.clone());
    for vm in vms.list(&ListParams::default()).await.unwrap() {
        let status = vm.status.unwrap();
        assert_eq!(status.phase, Some(Phase::Running));
        assert!(!others.contains(&&*status.node_name.unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stand_in_of_the_manifests_runs_a_descheduler_with_the_rights_of_its_account() {
    let cluster = Cluster::builder().start().await.unwrap_or_else(|error| panic!("{error}"));
    let mut site = Site::new(cluster).await;
    let crd = root().join("config/crd/third-party/kubedescheduler-5.1.yaml");
    site.kubectl(&["apply", "--server-side", "-f", crd.to_str().unwrap()]).await;
    site.kubectl(&[
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "crd/kubedeschedulers.operator.openshift.io",
    ])
    .await;
    let file = "descheduler-operator.yaml";
    site.apply(&objects(file)).await;
    let nodes: Vec<_> = objects("kwok-nodes.yaml").into_iter().filter(|object| object["kind"] == "Node").collect();
    site.apply(&nodes).await;
    site.apply(&[json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
        "spec": {"mode": "Automatic", "deschedulingIntervalSeconds": 60, "profiles": ["KubeVirtRelieveAndMigrate"]},
    })])
    .await;
    let program = tokio::task::spawn_blocking(standins::descheduler::program).await.unwrap().unwrap();
    let folder = site.folder.path().join("descheduler");
    let changes = [
        ("--descheduler=/descheduler", &*format!("--descheduler={}", program.display())),
        ("/var/lib/descheduler", folder.to_str().unwrap()),
        ("--port=8443", "--port=0"),
        (PROMETHEUS, "http://127.0.0.1:9"),
    ];
    let here = ["--time-scale=20", "--host=127.0.0.1"];
    site.part(file, "descheduler-operator", &changes, &here).await;
    let changes = [("--port=8081", "--port=0"), (PROMETHEUS, "http://127.0.0.1:9")];
    let tainter = site.part(file, "soft-tainter", &changes, &here).await;
    let path = "jsonpath={.status.readyReplicas}";
    let ready = async || {
        let args = ["get", "kubedescheduler", "cluster", "-n", "openshift-kube-descheduler-operator", "-o", path];
        (site.kubectl(&args).await == "1").then_some(())
    };
    eventually("the descheduler is ready", ready).await;
    // It asks for the nodes' values, and nobody answers: that is its work without Prometheus.
    let log = folder.join("descheduler.log");
    let tries = async || fs::read_to_string(&log).ok()?.contains("127.0.0.1").then_some(());
    eventually("the descheduler has tried", tries).await;
    let tries = async || fs::read_to_string(&tainter).ok()?.contains("this cycle is abandoned").then_some(());
    eventually("the soft-tainter has tried", tries).await;
    site.stop().await;
    let unused = async |name| site.unused(file, &account(&one(file, "Deployment", name))).await;
    // Without values nothing is evicted and nothing is marked. An apply that creates is a patch in the log.
    let rarely = ["create pods/eviction", "get priorityclasses", "create events"];
    let logged_otherwise = ["create configmaps", "create deployments"];
    assert_eq!(unused("descheduler-operator").await, [&rarely[..], &logged_otherwise].concat());
    assert_eq!(unused("soft-tainter").await, ["get nodes", "patch nodes"]);
}
