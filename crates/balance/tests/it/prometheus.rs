//! The recording rules in a real Prometheus against the evaluator. One Prometheus scrapes about two hundred clusters, which differ in
//! the label `cluster`. Each cluster has its own rule group with that label, so the shipped rules record every compared value from
//! scraped series. Pareto Front comes from the evaluator through the gauge, as it does in the lab.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use balance::{
    Algorithm, PressureModel, Scores, Signals,
    promql::{self, Options, Rule, Source},
};
use devcluster::{Cluster, Component, Prometheus, poll};
use serde_json::{Value, json};

use crate::clusters::golden;

/// In seconds. The rate of a counter is right once the window is full.
const WINDOW: u32 = 10;
const INTERVAL: u32 = 5;
const GAUGES: [&str; 4] =
    ["node_cpu_usage_ratio", "node_cpu_pressure_psi", "node_memory_usage_ratio", "node_memory_pressure_psi"];
/// The memory of a node of the counter family.
const MEMORY: f64 = 137_438_953_472.0;
const TIMEOUT: Duration = Duration::from_secs(300);
/// A comparison asks for every series of every algorithm.
const POLL: Duration = Duration::from_secs(2);

struct TestCluster {
    name: String,
    source: Source,
    /// The signals that are scraped.
    signals: Signals,
}

impl TestCluster {
    fn options(&self) -> Options {
        Options {
            source: self.source,
            window: WINDOW,
            labels: vec![("cluster".to_owned(), self.name.clone())],
            ..Options::default()
        }
    }

    /// The name and the text of its rule file. JSON is YAML.
    fn rule_file(&self) -> (String, String) {
        let labels = json!({"cluster": self.name});
        let rule = |Rule { record, expr }| json!({"record": record, "expr": expr, "labels": labels});
        let rules: Vec<Value> = promql::rules(&self.options()).into_iter().map(rule).collect();
        let group = json!({"name": self.name, "interval": format!("{INTERVAL}s"), "rules": rules});
        (format!("rules-{}.yml", self.name), json!({"groups": [group]}).to_string())
    }

    /// The signals that the rules should see.
    fn seen(&self) -> Signals {
        let gate = |usage: f64, pressure: f64| if usage > 0.7 { pressure } else { 0.0 };
        let nodes = (0..self.signals.len()).map(|node| self.signals.node(node));
        match self.source {
            Source::Gauges | Source::NodeExporter => self.signals.clone(),
            Source::OpenShift => nodes.map(|[cu, cp, mu, mp]| [cu, gate(cu, cp), mu, gate(mu, mp)]).collect(),
        }
    }

    /// Decisions G6: gauges to 1e-6, counters to 1e-2.
    fn tolerance(&self) -> f64 {
        match self.source {
            Source::Gauges => 1e-6,
            Source::NodeExporter | Source::OpenShift => 1e-2,
        }
    }
}

/// Every kind of cluster that once caused a fault, and random clusters.
fn clusters() -> Vec<TestCluster> {
    let mut rng = fastrand::Rng::with_seed(2026);
    let mut clusters = vec![golden(), Signals::idle(1), Signals::idle(5)];
    for kind in 0..204 {
        let nodes = 1 + (rng.f64() * 9.0) as usize;
        let mut node = || [rng.f64(), rng.f64(), rng.f64(), rng.f64()];
        let quarters = |node: [f64; 4]| node.map(|value| (value * 4.0).round() / 4.0);
        clusters.push(match kind % 6 {
            0 => (0..nodes).map(|_| node()).collect(),
            // Ties, in values and between dimensions.
            1 => (0..nodes).map(|_| quarters(node())).collect(),
            // As the lab's exporter computes them.
            2 => (0..nodes).map(|_| node()).map(|[a, b, ..]| PressureModel::Reference.signals(1.3 * a, b)).collect(),
            // All equal: the mean may be off by its last bit.
            3 => std::iter::repeat_n(node(), nodes).collect(),
            4 => std::iter::once(node()).collect(),
            // Some idle, some full.
            _ => (0..nodes + 1).map(|_| node()[0]).map(|value| [f64::from(value < 0.5); 4]).collect(),
        });
    }
    let gauges = clusters.into_iter().map(|signals| (Source::Gauges, signals));
    let counters = [Source::NodeExporter, Source::OpenShift].map(|source| (source, spread(&mut rng)));
    let name = |(at, (source, signals))| TestCluster { name: format!("c{at}"), source, signals };
    gauges.chain(counters).enumerate().map(name).collect()
}

/// Nodes on both sides of the gate at 70 %.
fn spread(rng: &mut fastrand::Rng) -> Signals {
    (0..10).map(|at| [0.05 + 0.1 * f64::from(at), rng.f64(), rng.f64(), rng.f64()]).collect()
}

fn score(algorithm: &Algorithm, signals: &Signals) -> Scores {
    let mut scores = Scores::new();
    algorithm.score(signals, &mut scores);
    scores
}

/// The gauges of all clusters. They do not change, so neither do their averages over the window.
fn gauges(clusters: &[TestCluster]) -> String {
    let mut text = String::new();
    for cluster in clusters {
        // A node whose signals are NaN gets no score and does not count for the means.
        for metric in GAUGES.iter().filter(|_| cluster.source == Source::Gauges) {
            let _ = writeln!(text, "{metric}{{instance=\"broken\",cluster=\"{}\"}} NaN", cluster.name);
        }
        let pareto = score(&Algorithm::ParetoFront, &cluster.seen());
        for node in 0..cluster.signals.len() {
            let [cu, cp, mu, mp] = cluster.signals.node(node);
            let name = &cluster.name;
            let mut gauge = |metric: &str, value: f64| {
                let _ = writeln!(text, "{metric}{{instance=\"n{node}\",cluster=\"{name}\"}} {value}");
            };
            gauge(promql::PARETO_GAUGE, pareto.values()[node]);
            if cluster.source == Source::Gauges {
                GAUGES.iter().zip([cu, cp, mu, mp]).for_each(|(metric, value)| gauge(metric, value));
            } else {
                gauge("node_memory_MemAvailable_bytes", MEMORY * (1.0 - mu));
                let labels = format!("node=\"n{node}\",resource=\"memory\",unit=\"byte\"");
                let _ = writeln!(
                    text,
                    "kube_node_status_allocatable{{instance=\"ksm\",cluster=\"{name}\",{labels}}} {MEMORY}"
                );
            }
        }
    }
    text
}

/// The counters now. Each carries its own timestamp, so that rates do not depend on the load of the machine.
fn counters(clusters: &[TestCluster]) -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let mut text = String::new();
    for TestCluster { name, signals, .. } in clusters.iter().filter(|cluster| cluster.source != Source::Gauges) {
        for node in 0..signals.len() {
            let [cu, cp, _, mp] = signals.node(node);
            let mut counter = |metric: &str, label: &str, rate: f64| {
                let value = 1e6 + (millis as f64 / 1000.0 - 1.7e9) * rate;
                let _ = writeln!(text, "{metric}{{instance=\"n{node}\",cluster=\"{name}\"{label}}} {value} {millis}");
            };
            counter("node_cpu_seconds_total", ",mode=\"idle\",cpu=\"0\"", 1.0 - cu);
            counter("node_cpu_seconds_total", ",mode=\"idle\",cpu=\"1\"", 1.0 - cu);
            counter("node_cpu_seconds_total", ",mode=\"user\",cpu=\"0\"", cu);
            counter("node_pressure_cpu_waiting_seconds_total", "", cp);
            counter("node_pressure_memory_waiting_seconds_total", "", mp);
        }
    }
    text
}

/// Serves the result of `body` to every request, until the test process ends.
fn serve(body: impl Fn() -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = body();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    address
}

/// The `data` of a response of Prometheus.
fn ask(address: &str, path: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{path}: {answer}");
    serde_json::from_str::<Value>(body).unwrap()["data"].take()
}

/// The values of a series by cluster and node. The node is empty for a value of the whole cluster.
fn recorded(address: &str, series: &str) -> BTreeMap<(String, String), f64> {
    let answer = ask(address, &format!("/api/v1/query?query={series}"));
    let sample = |sample: &Value| {
        let labels = sample["metric"].as_object().unwrap();
        let label = |name: &str| labels.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let expected = if series.starts_with("descheduler:node:") { 3 } else { 2 };
        assert_eq!(labels.len(), expected, "labels of {series}: {labels:?}");
        let value: f64 = sample["value"][1].as_str().unwrap().parse().unwrap();
        assert!((0.0..=1.0).contains(&value), "{series} of {labels:?} is {value}");
        ((label("cluster"), label("instance")), value)
    };
    answer["result"].as_array().unwrap().iter().map(sample).collect()
}

/// The current differences between Prometheus and the evaluator.
fn differences(address: &str, clusters: &[TestCluster]) -> Vec<String> {
    let mut found = Vec::new();
    for algorithm in Algorithm::all() {
        let mut nodes = recorded(address, &promql::node_series(&algorithm));
        let mut averages = recorded(address, &promql::cluster_series(&algorithm));
        for cluster in clusters {
            let name = &cluster.name;
            let mut compare = |node: &str, expected: f64, got: Option<f64>| {
                if got.is_none_or(|got| (got - expected).abs() > cluster.tolerance()) {
                    let signals = &cluster.signals;
                    found.push(format!("{algorithm} of {name} {node}: {got:?} instead of {expected}; {signals:?}"));
                }
            };
            let scores = score(&algorithm, &cluster.seen());
            for (node, &expected) in scores.values().iter().enumerate() {
                let node = format!("n{node}");
                let got = nodes.remove(&(name.clone(), node.clone()));
                compare(&node, expected, got);
            }
            compare("on average", scores.mean(), averages.remove(&(name.clone(), String::new())));
        }
        assert!(nodes.is_empty() && averages.is_empty(), "{algorithm} of no node of ours: {nodes:?} {averages:?}");
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_scores_are_those_of_the_evaluator() {
    let clusters = Arc::new(clusters());
    assert!(clusters.len() >= 200);
    let exporter = serve({
        let (clusters, gauges) = (Arc::clone(&clusters), gauges(&clusters));
        move || gauges.clone() + &counters(&clusters)
    });
    let prometheus = Prometheus {
        config: format!(
            "global: {{scrape_interval: 2s, scrape_timeout: 2s}}\nrule_files: ['rules-*.yml']\nscrape_configs:\n\
             - {{job_name: nodes, honor_labels: true, metric_relabel_configs: [{{action: labeldrop, regex: job}}], \
             static_configs: [{{targets: ['{exporter}']}}]}}\n"
        ),
        rules: clusters.iter().map(TestCluster::rule_file).collect(),
        ..Prometheus::default()
    };
    let cluster = Cluster::builder().prometheus(prometheus).start().await.unwrap();
    let address = cluster.address(Component::Prometheus).unwrap();

    // The first scrape, an evaluation of every group and a full window take some time. The scraped values never change,
    // so a wrong rule stays wrong.
    let compared = async || {
        let found = differences(&address, &clusters);
        if found.is_empty() { Ok(()) } else { Err(found) }
    };
    if let Err(found) = poll(POLL, TIMEOUT, compared).await {
        panic!("{} differences, the first is {}", found.len(), found[0]);
    }

    let groups = ask(&address, "/api/v1/rules");
    for group in groups["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            assert_eq!(rule["health"], "ok", "{rule}");
        }
    }
}
