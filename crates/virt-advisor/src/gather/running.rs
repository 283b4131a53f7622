//! The running operator in a collection: its Deployment, pods and logs, its lease, its Events and its metrics.

use advisor::monitoring::SERVICE;
use kube_io::{Class, RequestError};
use serde_json::Value;

use super::{collect::Collector, index::Entry, layout, pod_metrics};
use crate::program;

/// The labels of everything that the operator is installed with.
pub(crate) const LABELS: &str = "app.kubernetes.io/name=virt-advisor-operator";

/// So much of the end of a log is kept.
const LOG_LIMIT: usize = 10 * 1024 * 1024;

/// The part of the metrics that tells of requests to the API server.
const REQUESTS: &str = "kubevirt_advisor_api_request";

impl Collector<'_> {
    pub(super) async fn operator(&mut self) {
        let namespace = self.namespace;
        let mut names = Vec::new();
        for (root, group, resource) in
            [("/apis/apps/v1", "apps", "deployments"), ("/api/v1", "", "pods"), ("/api/v1", "", "services")]
        {
            let path = format!("{root}/namespaces/{namespace}/{resource}?labelSelector={LABELS}");
            match self.reader.list(&path).await {
                Ok(objects) => {
                    for object in objects {
                        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                        match resource {
                            "pods" => {
                                self.logs(&name, &object).await;
                                self.metrics_of_pod(&name, &object).await;
                            }
                            "services" if self.pod_metrics.is_none() => self.metrics(&name, &object).await,
                            _ => {}
                        }
                        let path = match resource {
                            "pods" => layout::pod(namespace, &name),
                            _ => layout::other(namespace, group, resource, &name),
                        };
                        self.add_object(format!("{resource} {namespace}/{name}"), path, object);
                        names.push(name);
                    }
                }
                Err(error) => self.failed(format!("{resource} of the operator"), &error),
            }
        }
        self.forwarded_metrics().await;
        self.lease().await;
        let selectors: Vec<_> = names.iter().map(|name| format!("involvedObject.name={name}")).collect();
        if !selectors.is_empty() {
            self.events(namespace, "events about the operator", &selectors).await;
        }
    }

    async fn lease(&mut self) {
        let (namespace, name) = (self.namespace, advisor::access::LEASE);
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let what = format!("lease {namespace}/{name}");
        match self.reader.get(&path).await {
            Ok(lease) => {
                let path = layout::other(namespace, "coordination.k8s.io", "leases", name);
                self.add_object(what, path, lease);
            }
            Err(error) => self.failed(what, &error),
        }
    }

    /// The log of each container, and of the one before if it was restarted.
    async fn logs(&mut self, pod: &str, object: &Value) {
        for (container, restarts) in containers(object) {
            for which in ["current", "previous"] {
                if which == "previous" && restarts == 0 {
                    continue;
                }
                let path = format!(
                    "/api/v1/namespaces/{}/pods/{pod}/log?container={container}&timestamps=true&previous={}{}",
                    self.namespace,
                    which == "previous",
                    self.since,
                );
                let what = format!("{which} log of {pod}/{container}");
                match self.reader.end_of_text(&path, LOG_LIMIT).await {
                    Ok(log) => self.add(what, layout::log(self.namespace, pod, &container, which), log),
                    Err(error) => self.entries.push(Entry::refused(what, &error)),
                }
            }
        }
    }

    /// The metrics of the operator by way of the API server, for each port that has them.
    async fn metrics(&mut self, service: &str, object: &Value) {
        for (scheme, port) in metrics_ports(object) {
            let path =
                format!("/api/v1/namespaces/{}/services/{scheme}:{service}:{port}/proxy/metrics", self.namespace);
            match self.reader.text(&path).await {
                Ok(metrics) => self.add_metrics("the operator", service, metrics),
                Err(error) => self.entries.push(no_metrics(self.namespace, service, port, &error)),
            }
        }
    }

    /// The metrics of one replica, which tell who leads and what each has asked for.
    async fn metrics_of_pod(&mut self, pod: &str, object: &Value) {
        let asked = self.pod_metrics.as_ref().filter(|asked| asked.forwarded.is_none());
        let Some((asked, address)) = asked.zip(pod_metrics::address(object)) else { return };
        match asked.read(&address).await {
            Ok(metrics) => self.add_metrics(&format!("pod {pod}"), pod, metrics),
            Err(error) => self.entries.push(Entry::refused(format!("metrics of pod {pod}"), &error)),
        }
    }

    /// The metrics of the replica to which a port is forwarded.
    async fn forwarded_metrics(&mut self) {
        let asked = self.pod_metrics.as_ref();
        let Some((asked, url)) = asked.and_then(|asked| Some((asked, asked.forwarded.as_ref()?))) else { return };
        match asked.read(url).await {
            Ok(metrics) => self.add_metrics("the operator", SERVICE, metrics),
            Err(error) => self.entries.push(Entry::refused(format!("metrics of the operator, from {url}"), &error)),
        }
    }

    fn add_metrics(&mut self, whose: &str, name: &str, metrics: String) {
        let path = |end: &str| format!("{}/metrics/{}{end}.txt", layout::OWN, layout::segment(name));
        self.add(format!("requests of {whose}"), path("-requests"), requests(&metrics));
        self.add(format!("metrics of {whose}"), path(""), metrics);
    }
}

/// Metrics that could not be read by way of the API server. If that is not the caller's fault, it says how to read them.
fn no_metrics(namespace: &str, service: &str, port: i64, error: &RequestError) -> Entry {
    let entry = Entry::refused(format!("metrics of the operator, from service {service}"), error);
    if error.class != Class::Unauthenticated {
        return entry;
    }
    let message = format!(
        "the API server does not hand on who you are, and the operator asks for a token. In a pod (oc adm must-gather) they are \
         read from the operator's pods. From here: kubectl port-forward -n {namespace} service/{service} {port}, and meanwhile {} \
         gather --metrics-url https://127.0.0.1:{port} --metrics-ca FILE, with the CA of the operator's certificate. Whoever \
         collects needs a token, and the ClusterRole virt-advisor-operator-metrics-reader",
        program::name()
    );
    Entry { message: Some(message), ..entry }
}

/// The containers of a pod, and how often each was restarted.
fn containers(pod: &Value) -> Vec<(String, i64)> {
    let statuses = || pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let restarts = |name: &str| {
        let status = statuses().find(|status| status["name"] == name);
        status.and_then(|status| status["restartCount"].as_i64()).unwrap_or_default()
    };
    let names = pod["spec"]["containers"].as_array().into_iter().flatten();
    names.filter_map(|container| container["name"].as_str()).map(|name| (name.to_owned(), restarts(name))).collect()
}

/// The ports of a Service that serve metrics, by their names, with the scheme.
fn metrics_ports(service: &Value) -> Vec<(&'static str, i64)> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let of_metrics = ports.filter(|port| {
        let name = port["name"].as_str().unwrap_or_default();
        name.contains("metrics") || name == "https"
    });
    of_metrics
        .filter_map(|port| {
            let number = port["port"].as_i64()?;
            let is_plain = port["name"].as_str().is_some_and(|name| name == "http-metrics");
            Some((if is_plain { "http" } else { "https" }, number))
        })
        .collect()
}

/// The lines about requests to the API server: how many, with which answers, and how long they took.
fn requests(metrics: &str) -> String {
    let about = |line: &&str| line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ").starts_with(REQUESTS);
    let lines: String = metrics.lines().filter(about).map(|line| format!("{line}\n")).collect();
    if lines.is_empty() { "The metrics have nothing about requests to the API server.\n".into() } else { lines }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_log_before_a_restart_is_read_only_where_there_was_one() {
        let pod = json!({
            "spec": {"containers": [{"name": "manager"}, {"name": "new"}]},
            "status": {"containerStatuses": [{"name": "manager", "restartCount": 2}]},
        });
        assert_eq!(containers(&pod), [("manager".to_owned(), 2), ("new".to_owned(), 0)]);
    }

    #[test]
    fn metrics_are_read_from_the_ports_that_are_named_for_them() {
        let ports = |names: &[(&str, i64)]| {
            let ports: Vec<_> = names.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
            metrics_ports(&json!({"spec": {"ports": ports}}))
        };
        assert_eq!(ports(&[("metrics", 8443), ("probes", 8081)]), [("https", 8443)]);
        assert_eq!(ports(&[("https", 8443)]), [("https", 8443)]);
        assert_eq!(ports(&[("http-metrics", 8080)]), [("http", 8080)]);
        assert_eq!(metrics_ports(&json!({})), []);
    }

    #[test]
    fn metrics_that_ask_for_a_token_are_told_with_how_to_read_them() {
        let told = |class| {
            let error = RequestError::other("reading x".into(), "Unauthorized".into(), class);
            no_metrics("openshift-cnv", "metrics", 8443, &error).message.unwrap()
        };
        let message = told(Class::Unauthenticated);
        for part in [
            "does not hand on who you are",
            "kubectl port-forward -n openshift-cnv service/metrics 8443",
            "gather --metrics-url https://127.0.0.1:8443 --metrics-ca",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(told(Class::Forbidden), "Unauthorized", "in the words of the API server");
    }

    #[test]
    fn of_the_metrics_the_requests_are_shown_apart() {
        let metrics = "# HELP kubevirt_advisor_leader x\nkubevirt_advisor_leader 1\n\
                       # TYPE kubevirt_advisor_api_requests counter\nkubevirt_advisor_api_requests_total{verb=\"get\",code=\"200\"} 4\n";
        let expected = "# TYPE kubevirt_advisor_api_requests counter\nkubevirt_advisor_api_requests_total{verb=\"get\",code=\"200\"} 4\n";
        assert_eq!(requests(metrics), expected);
        assert!(requests("").starts_with("The metrics have nothing"));
    }
}
