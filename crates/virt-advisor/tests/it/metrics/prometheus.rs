//! A real Prometheus scrapes the operator: by token, by certificate, and in vain.

use std::{
    collections::BTreeMap,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use advisor::monitoring::{METRICS, MetricType};
use devcluster::{
    Port, RunningProgram,
    tools::{self, Program},
};
use kube::{Client, Config};
use serde_json::{Value, json};
use testkit::poll;

use super::{Credentials, Site, new_ca};
use crate::replica::{CONFIG, TIMEOUT, request};

const PROMETHEUS: &str = "system:serviceaccount:openshift-monitoring:prometheus-k8s";

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_with_rights_and_not_without() {
    let site = Site::start().await;
    let reader = Credentials::Token(site.token("reader").await);
    // A plan that was approved and applied has durations and a result.
    site.metrics(&reader, "phase=\"ReviewRequired\"").await;
    let apply = json!({"spec": {"action": "Apply"}});
    request(&site.client, "PATCH", CONFIG, "application/merge-patch+json", apply).await.unwrap();
    let text = site.metrics(&reader, "phase=\"Completed\"").await;
    no_linter_complains(&text).await;

    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&site, folder.path()).await;
    let expected: BTreeMap<&str, &str> =
        [("token", "1"), ("certificate", "1"), ("stranger", "0"), ("nobody", "0"), ("mistrust", "0")].into();
    let scraped = prometheus.until("query?query=up", "scraped as expected", |answer| {
        let up = answer["data"]["result"].as_array().unwrap().iter();
        let up: BTreeMap<&str, &str> =
            up.map(|sample| (text_of(&sample["metric"]["job"]), text_of(&sample["value"][1]))).collect();
        up == expected
    });
    scraped.await;
    let targets = prometheus.get("targets").await;
    for (job, code) in [("stranger", "403"), ("nobody", "401")] {
        let mut targets = targets["data"]["activeTargets"].as_array().unwrap().iter();
        let target = targets.find(|target| target["labels"]["job"] == job).unwrap();
        assert!(text_of(&target["lastError"]).contains(code), "{job}: {target:#}");
    }
    let value = prometheus.get("query?query=kubevirt_advisor_config_phase%7Bjob=%22token%22%7D").await;
    let metric = &value["data"]["result"][0]["metric"];
    assert_eq!((&metric["profile"], &metric["phase"]), (&json!("example-profile"), &json!("Completed")));
    every_metric_is_known(&prometheus.get("metadata").await);
    // A counter is one: Prometheus would take text of the wrong type as untyped.
    let applied = prometheus.get("query?query=kubevirt_advisor_approvals_total%7Bjob=%22certificate%22%7D").await;
    assert_eq!(applied["data"]["result"][0]["metric"]["result"], "approved", "{applied:#}");
}

/// Type and help text of every metric, as Prometheus shows them to people.
fn every_metric_is_known(metadata: &Value) {
    for metric in METRICS {
        let family = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        let known = [metric.name, family].iter().find_map(|name| metadata["data"][name].as_array());
        let known = known.unwrap_or_else(|| panic!("{} is not known: {metadata:#}", metric.name));
        let kind = match metric.metric_type {
            MetricType::Gauge => "gauge",
            MetricType::Counter => "counter",
            MetricType::Histogram => "histogram",
        };
        assert!(known.iter().any(|known| known["type"] == kind && known["help"] == metric.help), "{known:?}");
    }
}

/// promtool reads the older text format, in which a counter is described by its whole name.
async fn no_linter_complains(openmetrics: &str) {
    let described = |line: &str| {
        let counter = METRICS.iter().find(|metric| {
            let family = metric.name.strip_suffix("_total");
            family.is_some_and(|family| line.split(' ').nth(2) == Some(family))
        });
        match counter {
            Some(metric) if line.starts_with("# ") => {
                line.replacen(metric.name.strip_suffix("_total").unwrap(), metric.name, 1)
            }
            _ => line.to_owned(),
        }
    };
    let classic: String =
        openmetrics.lines().filter(|line| *line != "# EOF").map(|line| described(line) + "\n").collect();
    let promtool = tokio::task::spawn_blocking(|| tools::ensure(Program::Promtool)).await.unwrap().unwrap();
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(classic.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(output.status.success() && said.is_empty(), "{said}\n{classic}");
}

struct Prometheus {
    client: Client,
    process: RunningProgram,
    _port: Port,
}

impl Prometheus {
    async fn start(site: &Site, folder: &Path) -> Prometheus {
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let pair = site.cluster.client_certificate(PROMETHEUS, "x").unwrap();
        let ca = file("ca.crt", &site.ca.pem());
        let (certificate, key) = (file("client.crt", &pair.certificate), file("client.key", &pair.key));
        let tokens = [site.token("reader").await, site.token("stranger").await];
        let tls = json!({"ca_file": ca});
        let job = |name: &str, more: Value| {
            let mut job = json!({
                "job_name": name, "scheme": "https", "tls_config": tls,
                "static_configs": [{"targets": [site.address]}],
            });
            for (field, value) in more.as_object().unwrap() {
                job[field] = value.clone();
            }
            job
        };
        let other = file("other.crt", &new_ca("other").pem());
        let config = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [
                job("token", json!({"authorization": {"credentials_file": file("reader", &tokens[0])}})),
                job("certificate", json!({"tls_config": {"ca_file": ca, "cert_file": certificate, "key_file": key}})),
                job("stranger", json!({"authorization": {"credentials_file": file("stranger", &tokens[1])}})),
                job("nobody", json!({})),
                job("mistrust", json!({"tls_config": {"ca_file": other}})),
            ],
        });
        let port = Port::reserve().unwrap();
        let args = vec![
            format!("--config.file={}", file("prometheus.yml", &config.to_string())),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address={}", port.address()),
            "--log.level=warn".to_owned(),
        ];
        let program = tokio::task::spawn_blocking(|| tools::ensure(Program::Prometheus)).await.unwrap().unwrap();
        let process = RunningProgram::spawn("prometheus", &program, args, folder, &folder.join("log")).unwrap();
        let client = Client::try_from(Config::new(format!("http://{}", port.address()).parse().unwrap())).unwrap();
        Prometheus { client, process, _port: port }
    }

    async fn get(&self, path: &str) -> Value {
        let request = http::Request::get(format!("/api/v1/{path}")).body(Vec::new()).unwrap();
        self.client.request::<Value>(request).await.unwrap_or_default()
    }

    async fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) {
        let answered = async || {
            let answer = self.get(path).await;
            if answer["status"] == "success" && holds(&answer) { Ok(()) } else { Err(answer) }
        };
        let answered = poll(TIMEOUT, answered).await;
        answered.unwrap_or_else(|answer| panic!("never {what}: {answer:#}\n{}", self.process.log_tail()));
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
