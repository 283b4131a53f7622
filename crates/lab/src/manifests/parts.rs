//! The parts that are ours: one image, one Deployment each.

use serde_json::{Value, json};
use standins::descheduler::names;

use super::{
    DESCHEDULER, Document, IMAGE, MONITORING, VMS,
    objects::{Pod, at_home, confined, deployment, everywhere, namespace, service, service_account, written},
    platform::{LOGS_IMAGE, METRICS, PROMETHEUS_URL},
    rights,
};
use crate::webhook::{Endpoint, GARBAGE_COLLECTORS, configuration};

pub(super) const USER: u32 = 65532;
/// The folder in which the stand-in keeps the descheduler's files.
const FOLDER: &str = "/var/lib/descheduler";

/// Where a part serves its HTTP pages.
struct Pages {
    port: u16,
    scheme: &'static str,
}

impl Pages {
    fn http(port: u16) -> Pages {
        Pages { port, scheme: "HTTP" }
    }
}

fn container(name: &str, args: &[&str], pages: &Pages) -> Value {
    let health = json!({"path": "/health", "port": pages.port, "scheme": pages.scheme});
    let mut container = container_without_pages(name, args);
    container["ports"] = json!([{"name": "pages", "containerPort": pages.port}]);
    container["readinessProbe"] = json!({"httpGet": health, "periodSeconds": 5});
    container["livenessProbe"] = json!({"tcpSocket": {"port": pages.port}, "periodSeconds": 20});
    container
}

pub(super) fn container_without_pages(name: &str, args: &[&str]) -> Value {
    json!({
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": args,
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": confined(),
    })
}

/// A Deployment with one container and no volumes.
fn part(name: &'static str, namespace: &'static str, args: &[&str], pages: &Pages) -> Value {
    let containers = vec![container(name, args, pages)];
    deployment(Pod { name, namespace, main: None, user: Some(USER), containers, volumes: Vec::new() })
}

pub(super) fn documents(about: &'static str, objects: impl IntoIterator<Item = Value>) -> Vec<Document> {
    let mut about = Some(about);
    let document = |object| Document { about: about.take().unwrap_or_default(), object };
    objects.into_iter().map(document).collect()
}

pub(super) fn vm_controller() -> Vec<Document> {
    let name = "vm-controller";
    let [role, binding] = everywhere(VMS, name, name, &rights::VM_CONTROLLER);
    let part = part(name, VMS, &["vm-controller", "--port=8080"], &Pages::http(8080));
    documents(
        "The VM controller: a pod for every VirtualMachine, and migrations. See docs/lab/README_VM_CRD.md.",
        [service_account(VMS, name), role, binding, part],
    )
}

pub(super) fn eviction_webhook() -> Vec<Document> {
    let name = "eviction-webhook";
    let account = format!("system:serviceaccount:{VMS}:vm-controller");
    let [role, binding] = everywhere(VMS, name, name, &rights::EVICTION_WEBHOOK);
    let (service_arg, controller_arg) = (format!("--service={VMS}/{name}"), format!("--vm-controller={account}"));
    let args = ["webhook", "--port=8443", service_arg.as_str(), controller_arg.as_str()];
    let part = part(name, VMS, &args, &Pages { port: 8443, scheme: "HTTPS" });
    let endpoint = Endpoint::Service { namespace: VMS.to_owned(), name: name.to_owned() };
    let exempt_users: Vec<String> = GARBAGE_COLLECTORS.map(str::to_owned).into_iter().chain([account]).collect();
    let configuration = configuration(&endpoint, 8443, None, &exempt_users);
    let mut documents = documents(
        "The eviction webhook: turns evictions of VMs into migrations. See docs/lab/eviction-webhook.md.",
        [service_account(VMS, name), role, binding, service(VMS, name, (443, 8443), None), part],
    );
    documents.push(Document {
        about: "Whom to trust is missing here: the webhook makes its certificates itself and writes their authority into\n\
                `caBundle`. Until then VMs can be neither evicted nor lost.",
        object: written("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", &configuration),
    });
    documents
}

pub(super) fn metrics_exporter() -> Vec<Document> {
    let name = "metrics-exporter";
    let [role, binding] = everywhere(MONITORING, name, name, &rights::METRICS_EXPORTER);
    let part = part(name, MONITORING, &["exporter", "--port=8000"], &Pages::http(8000));
    documents(
        "The metrics exporter: the load of the nodes, for Prometheus. See docs/lab/exporter.md.",
        [service_account(MONITORING, name), role, binding, service(MONITORING, name, (8000, 8000), Some(30800)), part],
    )
}

/// How the soft-tainter gets a policy; without one it follows the KubeDescheduler.
#[derive(Default)]
pub(super) struct Orders<'a> {
    pub(super) args: &'a [&'a str],
    pub(super) env: Value,
    pub(super) mounts: Value,
    pub(super) volumes: Vec<Value>,
}

pub(super) fn soft_tainter(namespace: &'static str, orders: Orders<'_>) -> Vec<Value> {
    let name = "soft-tainter";
    let role = if namespace == DESCHEDULER { name.to_owned() } else { format!("{namespace}-{name}") };
    let [role, binding] = everywhere(namespace, name, &role, &rights::SOFT_TAINTER);
    let prometheus = format!("--prometheus={PROMETHEUS_URL}");
    let args = [&["soft-tainter", "--port=8081", prometheus.as_str()], orders.args].concat();
    let mut container = container(name, &args, &Pages::http(8081));
    for (field, value) in [("env", orders.env), ("volumeMounts", orders.mounts)] {
        if value.is_array() {
            container[field] = value;
        }
    }
    let volumes = orders.volumes;
    let pod = Pod { name, namespace, main: None, user: Some(USER), containers: vec![container], volumes };
    vec![service_account(namespace, name), role, binding, deployment(pod)]
}

pub(super) fn descheduler_operator() -> Vec<Document> {
    let (name, home) = ("descheduler-operator", names::NAMESPACE);
    let (label, value) = names::MONITORED.split_once('=').unwrap_or((names::MONITORED, "true"));
    let rights = [&rights::DESCHEDULER[..], &rights::DESCHEDULER_OPERATOR].concat();
    let [role, binding] = everywhere(home, name, name, &rights);
    let [home_role, home_binding] = at_home(home, name, &rights::DESCHEDULER_OPERATOR_AT_HOME);
    let (prometheus, folder) = (format!("--prometheus={PROMETHEUS_URL}"), format!("--folder={FOLDER}"));
    let args =
        ["descheduler-operator", "--port=8443", "--descheduler=/descheduler", folder.as_str(), prometheus.as_str()];
    let mounts = json!([{"name": "descheduler", "mountPath": FOLDER}]);
    let mut operator = container(name, &args, &Pages::http(METRICS));
    operator["volumeMounts"] = mounts.clone();
    operator["resources"]["limits"]["memory"] = "512Mi".into();
    // The descheduler logs to a file, because the stand-in reads its last lines when it has ended.
    let logs = json!({
        "name": "descheduler",
        "image": LOGS_IMAGE,
        "command": ["tail", "-n", "+1", "-F", format!("{FOLDER}/descheduler.log")],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": confined(),
        "volumeMounts": mounts,
    });
    let pod = Pod {
        name,
        namespace: home,
        main: Some("descheduler"),
        user: Some(USER),
        containers: vec![operator, logs],
        volumes: vec![json!({"name": "descheduler", "emptyDir": {}})],
    };
    let [tainter_role, tainter_binding] = at_home(home, "soft-tainter", &rights::SOFT_TAINTER_AT_HOME);
    let mut documents = documents(
        "Instead of descheduler.yaml and descheduler-policy.yaml: a stand-in for the descheduler operator, which does what a\n\
         KubeDescheduler says. `setup-kind-env.sh --operator` uses this. See docs/lab/descheduler.md.",
        [
            namespace(home, json!({label: value})),
            service_account(home, name),
            role,
            binding,
            home_role,
            home_binding,
            service(home, name, (METRICS, METRICS), Some(30844)),
            deployment(pod),
            tainter_role,
            tainter_binding,
        ],
    );
    let mut about = "The soft-tainter, by the same orders.";
    for object in soft_tainter(home, Orders::default()) {
        documents.push(Document { about, object });
        about = "";
    }
    documents
}
