//! The parts that are not ours: Prometheus, KWOK with its nodes, and the real descheduler with its policy.

use advisor::kube_descheduler::Release;
use devcluster::tools::Program;
use serde_json::{Value, json};
use standins::descheduler::{Policy, PolicyContext, Spec};

use super::{
    DESCHEDULER, Document, MONITORING, VMS,
    objects::{
        Pod, config_map, config_volume, confined, deployment, everywhere, namespace, service, service_account, written,
    },
    parts::{Orders, soft_tainter},
    rights,
};
use crate::{kwok, prometheus::PrometheusSettings};

pub(super) const PROMETHEUS_URL: &str = "http://prometheus.monitoring.svc:9090";
/// The port of the descheduler's metrics without TLS.
pub(super) const METRICS: u16 = 8443;
/// The image must contain `nginx` and `tail`.
pub(super) const LOGS_IMAGE: &str = "docker.io/nginxinc/nginx-unprivileged:1.29-alpine";

const NOBODY: u32 = 65534;
const NODES: u32 = 5;
const CORES: u32 = 32;
const MEMORY: u64 = 128 << 30;
const EXAMPLES: u32 = 60;
const POLICY: &str = "descheduler-policy";
const POLICY_FOLDER: &str = "/policy-dir";
const INTERVAL_SECONDS: u32 = 60;
/// The interval as the ConfigMap of the policy has it, as Kubernetes puts it into arguments.
const INTERVAL: &str = "$(DESCHEDULING_INTERVAL)";

const PROXY: &str = "\
pid /tmp/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path /tmp/client;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
  server {
    listen 8443;
    location / {
      proxy_pass https://127.0.0.1:10258;
    }
  }
}
";

fn plain(object: Value) -> Document {
    Document { about: "", object }
}

fn settings() -> PrometheusSettings {
    PrometheusSettings {
        descheduler: Some(format!("descheduler.{DESCHEDULER}.svc:{METRICS}")),
        ..PrometheusSettings::new(format!("metrics-exporter.{MONITORING}.svc:8000"))
    }
}

/// Prometheus has two version numbers: v0.315.0 of the Go module is v3.15.0 of the image.
fn prometheus_version() -> String {
    let mut numbers = Program::Prometheus.version().trim_start_matches('v').split('.').skip(1);
    let combined: u32 = numbers.next().and_then(|number| number.parse().ok()).unwrap_or_default();
    format!("v{}.{}.{}", combined / 100, combined % 100, numbers.next().unwrap_or("0"))
}

pub(super) fn prometheus() -> Vec<Document> {
    let name = "prometheus";
    let mut args = vec![
        "--config.file=/etc/prometheus/prometheus.yml".to_owned(),
        "--storage.tsdb.path=/prometheus".to_owned(),
        "--storage.tsdb.retention.time=24h".to_owned(),
        "--web.listen-address=:9090".to_owned(),
        "--web.enable-lifecycle".to_owned(),
    ];
    args.extend(settings().flags());
    let container = json!({
        "name": name,
        "image": format!("docker.io/prom/prometheus:{}", prometheus_version()),
        "args": args,
        "ports": [{"name": "http", "containerPort": 9090}],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/-/healthy", "port": 9090}, "periodSeconds": 20},
        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": confined(),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/prometheus"},
            {"name": "data", "mountPath": "/prometheus"},
        ],
    });
    let pod = Pod {
        name,
        namespace: MONITORING,
        main: None,
        user: Some(NOBODY),
        containers: vec![container],
        volumes: vec![
            config_volume("config", &["prometheus-config", "prometheus-rules"]),
            json!({"name": "data", "emptyDir": {}}),
        ],
    };
    vec![
        Document {
            about: "Prometheus, which scrapes the exporter and evaluates the rules in prometheus-rules.yaml.",
            object: namespace(MONITORING, Value::Null),
        },
        plain(service_account(MONITORING, name)),
        plain(config_map(MONITORING, "prometheus-config", json!({"prometheus.yml": settings().configuration()}))),
        plain(service(MONITORING, name, (9090, 9090), Some(30090))),
        plain(deployment(pod)),
    ]
}

pub(super) fn prometheus_rules() -> Vec<Document> {
    let (file, rules) = settings().rule_file();
    vec![Document {
        about: "The rules of all 20 algorithms, in one group. See docs/lab/PROMETHEUS_ALGORITHMS.md.",
        object: config_map(MONITORING, "prometheus-rules", json!({file: rules})),
    }]
}

pub(super) fn kwok_nodes() -> Vec<Document> {
    let (name, home) = ("kwok-controller", "kube-system");
    let [role, binding] = everywhere(home, name, name, &rights::KWOK);
    let container = json!({
        "name": name,
        "image": format!("registry.k8s.io/kwok/kwok:{}", Program::Kwok.version()),
        "args": [
            "--config=/etc/kwok/stages.yaml",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            "--node-ip=$(POD_IP)",
            "--cidr=10.64.0.0/10",
            "--server-address=0.0.0.0:10247",
        ],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "http", "containerPort": 10247}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 10247}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 10247}, "periodSeconds": 20},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "stages", "mountPath": "/etc/kwok"}],
    });
    let pod = Pod {
        name,
        namespace: home,
        main: None,
        user: None,
        containers: vec![container],
        volumes: vec![config_volume("stages", &["kwok-stages"])],
    };
    let mut documents = vec![
        Document {
            about: "KWOK, which plays the kubelet of the nodes below with stages of our own. It needs no definitions.",
            object: service_account(home, name),
        },
        plain(role),
        plain(binding),
        plain(config_map(home, "kwok-stages", json!({"stages.yaml": kwok::stages()}))),
        plain(deployment(pod)),
    ];
    documents.extend((1..=NODES).map(|number| {
        let node = kwok::node(&format!("kwok-node-{number}"), CORES, MEMORY);
        plain(written("v1", "Node", &node))
    }));
    documents
}

/// The policy that the real operator derives from a KubeDescheduler with the values of the reference. In a pod the
/// descheduler has a token of its own for Prometheus.
fn policy() -> Result<Policy, String> {
    let spec = json!({
        "profiles": ["KubeVirtRelieveAndMigrate"],
        "mode": "Automatic",
        "deschedulingIntervalSeconds": INTERVAL_SECONDS,
        "evictionLimits": {"total": 5, "node": 2},
        "profileCustomizations": {"devDeviationThresholds": "Low"},
    });
    let context = PolicyContext {
        release: Release::NEWEST,
        prometheus_url: PROMETHEUS_URL.to_owned(),
        protected: PolicyContext::protected_among([]),
        time_scale: 1.0,
    };
    let read = Spec::read(&spec).and_then(|spec| Policy::of(&spec, &context));
    let mut policy = read.map_err(|problem| problem.to_string())?;
    let mut document: Value = serde_saphyr::from_str(&policy.text).map_err(|problem| problem.to_string())?;
    if let Some(provider) = document.pointer_mut("/metricsProviders/0/prometheus").and_then(Value::as_object_mut) {
        provider.remove("authToken");
    }
    policy.text = advisor::object_text::yaml(Some(&document));
    Ok(policy)
}

pub(super) fn descheduler_policy() -> Vec<Document> {
    let text = policy().map_or_else(|problem| format!("# not written: {problem}\n"), |policy| policy.text);
    vec![Document {
        about: "What the descheduler and the soft-tainter go by: the interval between two runs, the query (which algorithm),\n\
                the thresholds in percent around the average (`thresholds` below it, `targetThresholds` above it), and the\n\
                limits. After a change:\n\
                kubectl apply --server-side --force-conflicts -f config/lab/descheduler-policy.yaml\n\
                kubectl -n kube-descheduler rollout restart deployment/descheduler deployment/soft-tainter",
        object: config_map(
            DESCHEDULER,
            POLICY,
            json!({"interval": format!("{INTERVAL_SECONDS}s"), "policy.yaml": text}),
        ),
    }]
}

/// The variable of a container that [`INTERVAL`] refers to.
fn interval_env() -> Value {
    let source = json!({"configMapKeyRef": {"name": POLICY, "key": "interval"}});
    json!([{"name": "DESCHEDULING_INTERVAL", "valueFrom": source}])
}

pub(super) fn descheduler() -> Vec<Document> {
    let name = "descheduler";
    let [role, binding] = everywhere(DESCHEDULER, name, name, &rights::DESCHEDULER);
    let mut args = vec![
        format!("--policy-config-file={POLICY_FOLDER}/policy.yaml"),
        "--logging-format=text".to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=10258".to_owned(),
    ];
    let flags = policy().map(|policy| policy.flags()).unwrap_or_default();
    args.extend(flags.into_iter().filter(|flag| !flag.starts_with("--descheduling-interval=")));
    args.push(format!("--descheduling-interval={INTERVAL}"));
    let mounts = json!([{"name": "policy", "mountPath": POLICY_FOLDER}]);
    let real = json!({
        "name": name,
        "image": format!("registry.k8s.io/descheduler/descheduler:{}", Program::Descheduler.version()),
        "command": ["/bin/descheduler"],
        "args": args,
        "env": interval_env(),
        "ports": [{"name": "https", "containerPort": 10258}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 10258, "scheme": "HTTPS"}, "periodSeconds": 20},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": confined(),
        "volumeMounts": mounts,
    });
    let proxy = json!({
        "name": "metrics",
        "image": LOGS_IMAGE,
        "command": ["nginx", "-g", "daemon off;", "-c", "/etc/proxy/nginx.conf"],
        "ports": [{"name": "http", "containerPort": METRICS}],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": confined(),
        "volumeMounts": [{"name": "proxy", "mountPath": "/etc/proxy"}, {"name": "temporary", "mountPath": "/tmp"}],
    });
    let policy_volume = config_volume("policy", &[POLICY]);
    let pod = Pod {
        name,
        namespace: DESCHEDULER,
        main: Some(name),
        user: Some(1000),
        containers: vec![real, proxy],
        volumes: vec![
            policy_volume.clone(),
            config_volume("proxy", &["descheduler-metrics"]),
            json!({"name": "temporary", "emptyDir": {}}),
        ],
    };
    let mut documents = vec![
        Document {
            about: "The real descheduler, with the policy in descheduler-policy.yaml. Its metrics are served without TLS beside it.",
            object: namespace(DESCHEDULER, Value::Null),
        },
        plain(service_account(DESCHEDULER, name)),
        plain(role),
        plain(binding),
        plain(config_map(DESCHEDULER, "descheduler-metrics", json!({"nginx.conf": PROXY}))),
        plain(service(DESCHEDULER, name, (METRICS, METRICS), Some(30844))),
        plain(deployment(pod)),
    ];
    let policy_arg = format!("--policy={POLICY_FOLDER}/policy.yaml");
    let interval_arg = format!("--interval={INTERVAL}");
    let orders = Orders {
        args: &[policy_arg.as_str(), interval_arg.as_str()],
        env: interval_env(),
        mounts,
        volumes: vec![policy_volume],
    };
    let mut about = "The soft-tainter: asks the scheduler to keep new pods away from busy nodes, by the same policy.";
    for object in soft_tainter(DESCHEDULER, orders) {
        documents.push(Document { about, object });
        about = "";
    }
    documents
}

pub(super) fn example_vms() -> Vec<Document> {
    let mut about = "Guests to balance, all of one size and alike in use. `setup-kind-env.sh` closes all nodes but two while it creates\n\
                     them, so that there is a skew. Fractions need quotes.";
    (1..=EXAMPLES)
        .map(|number| Document {
            about: std::mem::take(&mut about),
            object: json!({
                "apiVersion": format!("{}/{}", api::names::SIMULATION_GROUP, api::names::VERSION),
                "kind": "VirtualMachine",
                "metadata": {"name": format!("vm-{number}"), "namespace": VMS},
                "spec": {
                    "resources": {"cpu": "1", "memory": "2Gi"},
                    "utilization": {"cpu": "0.8", "memory": "0.5"},
                },
            }),
        })
        .collect()
}
