//! The eviction webhook on a real API server: evictions through the Eviction API, deletions by kubectl.

mod certificates;
mod crowd;
mod malformed;
mod migration_aware;
mod moves;

use std::{sync::Arc, time::Duration};

use api::{VirtualMachine, crd, virtual_machine::Phase};
use devcluster::{Cluster, Component, Identity, Kwok};
use futures::{StreamExt, future::join_all};
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{Namespace, Node, Pod},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use lab::kwok;
use lab_parts::{
    launcher,
    vm::{self, VmController},
    webhook::{
        Certificates, EVICTION_REQUESTED, EVICTION_SOURCE, Endpoint, GARBAGE_COLLECTORS, MigrationAwareSettings, NAME,
        Webhook, WebhookSettings,
    },
};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::{
    sync::{Mutex, MutexGuard, OnceCell},
    time::timeout,
};

use crate::platform::blank;

const USER: &str = "eviction-webhook-user";
const VM_CONTROLLER: &str = "vm-controller-user";
const EVICTIONS: &str = "virt-launcher-eviction-interceptor.kubevirt.io";
const DELETIONS: &str = "virt-launcher-deletion-interceptor.kubevirt.io";

/// The expected code and message, for the name of a webhook and a VM.
type Words = fn(&str, &str) -> (u16, String);

fn triggered(by: &str, vm: &str) -> (u16, String) {
    denied(by, &format!("Eviction triggered evacuation of VMI \"{vm}\""))
}

fn in_progress(by: &str, vm: &str) -> (u16, String) {
    denied(by, &format!("Evacuation in progress: Eviction triggered evacuation of VMI \"{vm}\""))
}

/// The answer of the API server to a denial by the webhook.
fn denied(by: &str, message: &str) -> (u16, String) {
    (429, format!("admission webhook \"{by}\" denied the request: {message}"))
}

/// Code and message, if there was an error.
fn outcome<T>(answer: kube::Result<T>) -> Option<(u16, String)> {
    match answer {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some((status.code, status.message.clone())),
        Err(other) => panic!("{other}"),
    }
}

/// A cluster with nodes `n1`, `n2` and so on of 32 cores each.
async fn cluster_with_nodes(nodes: usize, memory_bytes: u64) -> Arc<Cluster> {
    let builder = Cluster::builder().scheduler().kwok(Kwok { stages: kwok::stages().to_owned() });
    let (cluster, client) = blank(builder.controllers(&kwok::CONTROLLERS)).await;
    cluster.access().install_crds(&[crd::virtual_machine()]).await.unwrap();
    // The garbage collector looks for new kinds every half a minute and when it starts.
    cluster.kill(Component::ControllerManager).unwrap();
    cluster.start(Component::ControllerManager).await.unwrap();
    let all: Api<Node> = Api::all(client);
    for number in 1..=nodes {
        let node = kwok::node(&format!("n{number}"), 32, memory_bytes);
        all.create(&PostParams::default(), &node).await.unwrap();
    }
    Arc::new(cluster)
}

struct Lab {
    cluster: Arc<Cluster>,
    client: Client,
    vms: Api<VirtualMachine>,
    pods: Api<Pod>,
}

impl Lab {
    /// Starts a control plane without nodes and controllers.
    async fn start() -> Lab {
        let (cluster, _) = blank(Cluster::builder()).await;
        cluster.access().install_crds(&[crd::virtual_machine()]).await.unwrap();
        Lab::on(Arc::new(cluster)).await
    }

    /// A cluster with two nodes, which tests use one after another.
    async fn start_with_nodes() -> (MutexGuard<'static, ()>, Lab) {
        static CLUSTER: OnceCell<Arc<Cluster>> = OnceCell::const_new();
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let lab = Lab::on(CLUSTER.get_or_init(|| cluster_with_nodes(2, 128 << 30)).await.clone()).await;
        (turn, lab)
    }

    async fn on(cluster: Arc<Cluster>) -> Lab {
        let client = cluster.access().client().await.unwrap();
        let (vms, pods) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        let lab = Lab { cluster, client, vms, pods };
        lab.grant(json!([
            {"apiGroups": [""], "resources": ["pods", "namespaces"], "verbs": ["get"]},
            {"apiGroups": ["simulation.node-classifier.io"], "resources": ["virtualmachines"], "verbs": ["get", "patch"]},
            {"apiGroups": ["simulation.node-classifier.io"], "resources": ["virtualmachines/status"], "verbs": ["patch"]},
            {"apiGroups": ["operator.openshift.io"], "resources": ["kubedeschedulers"], "resourceNames": ["cluster"],
             "verbs": ["get"]},
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
             "verbs": ["create"]},
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
             "resourceNames": [NAME], "verbs": ["list", "patch", "watch"]},
        ]))
        .await;
        lab
    }

    /// The same lab in another namespace.
    fn within(&self, namespace: &str) -> Lab {
        let (cluster, client) = (self.cluster.clone(), self.client.clone());
        let (vms, pods) = (Api::namespaced(client.clone(), namespace), Api::namespaced(client.clone(), namespace));
        Lab { cluster, client, vms, pods }
    }

    /// Replaces the rights of the webhook.
    async fn grant(&self, rules: Value) {
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": NAME}, "rules": rules});
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]});
        let params = PatchParams::apply("test").force();
        roles.patch(NAME, &params, &Patch::Apply(role)).await.unwrap();
        bindings.patch(NAME, &params, &Patch::Apply(binding)).await.unwrap();
    }

    async fn webhook(&self, certificates: Certificates) -> Webhook {
        self.webhook_with(certificates, MigrationAwareSettings::default()).await
    }

    async fn webhook_with(&self, certificates: Certificates, migration_aware: MigrationAwareSettings) -> Webhook {
        let client = self.cluster.access().client_for(&Identity::user(USER, &[])).await.unwrap();
        let settings = WebhookSettings {
            address: ([127, 0, 0, 1], 0).into(),
            endpoint: Endpoint::Host("127.0.0.1".into()),
            certificates,
            is_registered: true,
            exempt_users: GARBAGE_COLLECTORS.into_iter().chain([VM_CONTROLLER]).map(str::to_owned).collect(),
            migration_aware,
        };
        // New rights take effect after a moment.
        let start = async || Webhook::start(client.clone(), settings.clone()).await.ok();
        eventually("the webhook starts", start).await
    }

    async fn create(&self, vm: &str) -> VirtualMachine {
        let object = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine", "metadata": {"name": vm},
            "spec": {"resources": {"cpu": "1", "memory": "2Gi"}},
        });
        self.vms.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
    }

    /// Starts a VM controller. `start_timeout` is the limit for the start of a target, in seconds of the clock.
    async fn controller(&self, start_timeout: Duration) -> VmController {
        let time_scale = 20.0;
        let start_timeout = start_timeout.mul_f64(time_scale);
        self.controller_with(vm::VmControllerSettings {
            time_scale,
            start_timeout,
            ..vm::VmControllerSettings::default()
        })
        .await
    }

    async fn controller_with(&self, settings: vm::VmControllerSettings) -> VmController {
        let who = Identity::user(VM_CONTROLLER, &["system:masters"]);
        VmController::start(self.cluster.access().client_for(&who).await.unwrap(), settings)
    }

    /// Creates a VM and its pod as the VM controller would. Returns the name of the pod.
    async fn add(&self, vm: &str) -> String {
        let made = self.create(vm).await;
        let pod = format!("virt-launcher-{vm}-00000");
        self.add_pod(
            &pod,
            Some("n1"),
            json!({
                "labels": {launcher::DOMAIN: vm, launcher::APP.0: launcher::APP.1},
                "finalizers": [launcher::FINALIZER],
                "ownerReferences": [{"apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
                    "name": vm, "uid": made.uid(), "controller": true}],
            }),
        )
        .await;
        self.report(vm, json!({"podName": pod, "nodeName": "n1", "phase": "Running"})).await;
        pod
    }

    async fn add_pod(&self, name: &str, node: Option<&str>, mut metadata: Value) {
        metadata["name"] = json!(name);
        let spec = json!({"nodeName": node, "containers": [{"name": "compute", "image": "none"}]});
        let pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn report(&self, vm: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.vms.patch_status(vm, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn node_to_leave(&self, vm: &str) -> Option<String> {
        self.vms.get(vm).await.unwrap().status.unwrap().evacuation_node_name
    }

    async fn evict(&self, pod: &str) -> Option<(u16, String)> {
        outcome(self.pods.evict(pod, &EvictParams::default()).await)
    }

    async fn evict_with(&self, pod: &str, more: Value) -> Option<(u16, String)> {
        let mut body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body["metadata"]["name"] = json!(pod);
        let uri = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
        let request = http::Request::post(uri).header("content-type", "application/json");
        outcome(self.client.request::<Value>(request.body(body.to_string().into_bytes()).unwrap()).await)
    }

    /// Evicts the pods of these VMs and checks the answers. Returns those whose answer was a timeout.
    async fn evict_at_once<'a>(
        &self,
        asked: Vec<(&'a String, &'a String)>,
        expected: &[Words],
    ) -> Vec<(&'a String, &'a String)> {
        let answers = join_all(asked.iter().map(|(_, pod)| self.evict(pod))).await;
        let mut slow = Vec::new();
        for (asked, answer) in asked.into_iter().zip(answers) {
            let (code, message) = answer.unwrap_or_else(|| panic!("{} was evicted", asked.1));
            if message.contains("context deadline exceeded") || message.contains("did not answer within") {
                slow.push(asked);
                continue;
            }
            let vm = format!("default/{}", asked.0);
            let is_expected = expected.iter().any(|words| words(EVICTIONS, &vm) == (code, message.clone()));
            assert!(is_expected, "{code} {message}");
        }
        slow
    }

    async fn try_eviction(&self, pod: &str) -> Option<(u16, String)> {
        let post_options = PostParams { dry_run: true, ..PostParams::default() };
        outcome(self.pods.evict(pod, &EvictParams { post_options, ..EvictParams::default() }).await)
    }

    /// Waits until the API server calls the webhook, which is a moment after the registration.
    async fn is_asked(&self, pod: &str) {
        let vm = self.pods.get(pod).await.unwrap().labels()[launcher::DOMAIN].clone();
        let expected = triggered(EVICTIONS, &format!("default/{vm}"));
        let ask = async || (self.try_eviction(pod).await.as_ref() == Some(&expected)).then_some(());
        eventually(format!("evictions of {pod} are answered"), ask).await;
        let expected = triggered(DELETIONS, &format!("default/{vm}"));
        let delete = DeleteParams { dry_run: true, ..DeleteParams::default() };
        let ask = async || (outcome(self.pods.delete(pod, &delete).await).as_ref() == Some(&expected)).then_some(());
        eventually(format!("deletions of {pod} are answered"), ask).await;
    }

    async fn kubectl(&self, args: &[&str]) -> (bool, String) {
        let output = self.cluster.access().kubectl(&Identity::Admin, args).await.unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    async fn bundle(&self) -> Vec<u8> {
        let all: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let found = all.get(NAME).await.unwrap().webhooks.unwrap();
        found[0].client_config.ca_bundle.clone().unwrap().0
    }
}

/// Reason and message of the eviction request of a VM.
fn cause(vm: &VirtualMachine) -> Option<(String, String)> {
    let conditions = &vm.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == EVICTION_REQUESTED)?;
    Some((found.reason.clone(), found.message.clone()))
}

/// L20 (undeletable pod), L28 (target as source), L30 (webhook never called), L31 (dry run migrates), L32 (HTML for a
/// bad review) and L34 (repeated eviction), as far as the answers go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evictions_and_deletions_of_a_vm_are_recorded_on_it_and_others_pass() {
    let lab = Lab::start().await;
    let pod = lab.add("a").await;
    let webhook = lab.webhook(Certificates::default()).await;
    lab.is_asked(&pod).await;
    assert_eq!(lab.node_to_leave("a").await, None, "dry runs were recorded");
    let by_options = lab.evict_with(&pod, json!({"deleteOptions": {"dryRun": ["All"]}})).await.unwrap();
    assert_eq!(lab.node_to_leave("a").await, None, "a dry run by its options was recorded: {by_options:?}");
    assert_eq!(cause(&lab.vms.get("a").await.unwrap()), None);

    let by_descheduler = json!({"metadata": {"annotations": {
        "requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by lab/LowNodeUtilization: over",
    }}});
    assert_eq!(lab.evict_with(&pod, by_descheduler).await, Some(triggered(EVICTIONS, "default/a")));
    assert_eq!(lab.node_to_leave("a").await.as_deref(), Some("n1"));
    let vm = lab.vms.get("a").await.unwrap();
    assert_eq!(vm.annotations()[EVICTION_SOURCE], "descheduler");
    let (reason, message) = cause(&vm).unwrap();
    assert_eq!(reason, "Descheduler");
    assert!(message.starts_with(&format!("eviction of pod {pod} by ")), "{message}");
    assert!(message.ends_with(" for sigs.k8s.io/descheduler: triggered by lab/LowNodeUtilization: over"), "{message}");
    let version = vm.resource_version();
    assert_eq!(lab.evict(&pod).await, Some(in_progress(EVICTIONS, "default/a")));
    assert_eq!(lab.vms.get("a").await.unwrap().resource_version(), version, "a repeated request wrote something");

    // Neither a deletion by name nor that of a collection deletes a pod.
    lab.report("a", json!({"evacuationNodeName": null})).await;
    let (_, said) = lab.kubectl(&["delete", "pod", &pod, "--force", "--wait=false"]).await;
    assert!(said.ends_with(&triggered(DELETIONS, "default/a").1), "{said}");
    assert_eq!(lab.node_to_leave("a").await.as_deref(), Some("n1"));
    let vm = lab.vms.get("a").await.unwrap();
    assert!(!vm.annotations().contains_key(EVICTION_SOURCE), "the descheduler had no part in this one");
    assert_eq!(cause(&vm).unwrap().0, "Deletion");
    lab.report("a", json!({"evacuationNodeName": null})).await;
    let all = lab.pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    assert_eq!(outcome(all.map(|_| ())), Some(triggered(DELETIONS, "default/a")));
    assert_eq!(lab.node_to_leave("a").await.as_deref(), Some("n1"));

    let labels = json!({launcher::DOMAIN: "a", launcher::APP.0: launcher::APP.1});
    let target = json!({"labels": labels, "annotations": {launcher::SOURCE: pod}, "finalizers": [launcher::FINALIZER]});
    lab.add_pod("virt-launcher-a-11111", Some("n2"), target).await;
    let refused = Some(denied(EVICTIONS, "Eviction request for target Pod"));
    assert_eq!(lab.evict("virt-launcher-a-11111").await, refused);

    let wrong = Patch::Merge(json!({"spec": {"resources": {"memory": "8Ei"}}}));
    lab.vms.patch("a", &PatchParams::default(), &wrong).await.unwrap();
    assert_eq!(lab.evict("virt-launcher-gone-0").await.map(|(code, _)| code), Some(404));
    lab.add_pod("virt-launcher-lonely-0", Some("n1"), json!({"labels": labels.clone()})).await;
    assert_eq!(lab.evict("virt-launcher-lonely-0").await, None, "a pod that the VM controller has let go");
    let lost = json!({"labels": {launcher::DOMAIN: "no-such-vm", launcher::APP.0: launcher::APP.1},
        "finalizers": [launcher::FINALIZER]});
    lab.add_pod("virt-launcher-lost-0", Some("n1"), lost).await;
    assert_eq!(outcome(lab.pods.delete("virt-launcher-lost-0", &DeleteParams::default()).await), None);

    // Everybody may delete in a namespace that is being deleted.
    let spaces: Api<Namespace> = Api::all(lab.client.clone());
    let space = json!({"metadata": {"name": "ending"}});
    spaces.create(&PostParams::default(), &serde_json::from_value(space).unwrap()).await.unwrap();
    let there = lab.within("ending");
    let ending = there.add("e").await;
    let delete = DeleteParams { dry_run: true, ..DeleteParams::default() };
    assert_eq!(outcome(there.pods.delete(&ending, &delete).await), Some(triggered(DELETIONS, "ending/e")));
    spaces.delete("ending", &DeleteParams::default()).await.unwrap();
    assert_eq!(outcome(there.pods.delete(&ending, &DeleteParams::default()).await), None);

    // If the webhook may not write the status, its message is not one that the descheduler counts.
    let other = lab.add("b").await;
    lab.is_asked(&other).await;
    lab.grant(json!([
        {"apiGroups": [""], "resources": ["pods", "namespaces"], "verbs": ["get"]},
        {"apiGroups": ["simulation.node-classifier.io"], "resources": ["virtualmachines"], "verbs": ["get", "patch"]},
    ]))
    .await;
    let (code, said) = eventually("the right is gone", async || {
        lab.report("b", json!({"evacuationNodeName": null})).await;
        lab.evict(&other).await.filter(|(_, said)| said.contains("failed marking"))
    })
    .await;
    assert_eq!(code, 429);
    assert!(said.contains("kubevirt failed marking the vmi for eviction: ") && said.contains("cannot patch"), "{said}");
    assert!(!said.contains("Eviction triggered evacuation"), "{said}");
    assert_eq!(lab.node_to_leave("b").await, None);

    malformed::reviews_are_refused(&webhook).await;
}
