//! What the real Prometheus needs for the lab's rules: `cargo bench -p lab-parts --bench rules [-- 500 5000]`.
//! For each number of nodes: an exporter without a cluster, a Prometheus with the lab's configuration, and what it says about
//! itself after some rounds by the clock.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod synthetic;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, routing::get};
use devcluster::{
    Port, RunningProgram,
    tools::{self, Program},
};
use kube::{Client, Config};
use lab_parts::{exporter::Renderer, prometheus::PrometheusSettings};
use serde_json::Value;
use testkit::within;
use tokio::net::TcpListener;

use synthetic::{VMS_PER_NODE, index};

const TIMEOUT: Duration = Duration::from_secs(600);
/// More than the averages need to have all their samples.
const ROUNDS: f64 = 7.0;
const SCORE: &str = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";

/// Serves the page of so many nodes.
async fn exporter(nodes: u32) -> SocketAddr {
    let (index, begin) = (Arc::new(index(nodes)), Instant::now());
    let renderer = Arc::new(Mutex::new(Renderer::default()));
    let page = move || async move { renderer.lock().unwrap().render(&index.snapshot(begin.elapsed())) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/metrics", get(page))).await });
    address
}

struct Prometheus {
    process: RunningProgram,
    client: Client,
    _folder: tempfile::TempDir,
    _port: Port,
}

impl Prometheus {
    async fn start(settings: &PrometheusSettings) -> Prometheus {
        let program = tokio::task::spawn_blocking(|| tools::ensure(Program::Prometheus)).await.unwrap().unwrap();
        let (folder, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
        let (name, rules) = settings.rule_file();
        std::fs::write(folder.path().join(name), rules).unwrap();
        std::fs::write(folder.path().join("prometheus.yml"), settings.configuration()).unwrap();
        let mut args = vec![
            "--config.file=prometheus.yml".to_owned(),
            "--storage.tsdb.path=data".to_owned(),
            format!("--web.listen-address={}", port.address()),
        ];
        args.extend(settings.flags());
        let log = folder.path().join("log");
        let process = RunningProgram::spawn("prometheus", &program, args, folder.path(), &log).unwrap();
        let mut config = Config::new(format!("http://{}", port.address()).parse().unwrap());
        config.default_retry = false;
        Prometheus { process, client: Client::try_from(config).unwrap(), _folder: folder, _port: port }
    }

    async fn get(&self, path: &str) -> Option<String> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.client.request_text(request).await.ok()
    }

    async fn json(&self, path: &str) -> Option<Value> {
        serde_json::from_str(&self.get(path).await?).ok()
    }

    /// What it says about itself, summed up over labels.
    async fn own(&self) -> Option<BTreeMap<String, f64>> {
        let mut found = BTreeMap::new();
        for line in self.get("/metrics").await?.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ')?;
            let name = series.split('{').next()?.to_owned();
            *found.entry(name).or_default() += value.parse::<f64>().unwrap_or_default();
        }
        Some(found)
    }

    /// The value of a query without labels, or how many there are.
    async fn ask(&self, query: &str) -> Vec<f64> {
        let answer = self.json(&format!("/api/v1/query?query={query}")).await.unwrap();
        let samples = answer["data"]["result"].as_array().unwrap().clone();
        samples.iter().filter_map(|sample| sample["value"][1].as_str()?.parse().ok()).collect()
    }
}

async fn measure(nodes: u32) {
    let settings = PrometheusSettings::new(exporter(nodes).await.to_string());
    let prometheus = Prometheus::start(&settings).await;
    let rounds = async || {
        // Who asks too often is measured, too.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let own = prometheus.own().await?;
        (own.get("prometheus_rule_group_iterations_total")? >= &ROUNDS).then_some(own)
    };
    let own = within(TIMEOUT, format!("{ROUNDS} rounds"), rounds).await;
    assert_eq!(prometheus.ask(SCORE).await.len(), nodes as usize, "every node has a score");
    assert_eq!(own["prometheus_rule_evaluation_failures_total"], 0.0);
    let rules = prometheus.json("/api/v1/rules").await.unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap().clone();
    let mut times: Vec<(f64, &str)> =
        rules.iter().filter_map(|rule| Some((rule["evaluationTime"].as_f64()?, rule["name"].as_str()?))).collect();
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let scrape = prometheus.ask("scrape_duration_seconds{job=\"lab-exporter\"}".replace('"', "%22").as_str()).await;
    println!(
        "{nodes:>6} nodes x {VMS_PER_NODE}: a round of {} rules takes {:.2} s of the {} s that it may, the slowest ({}) {:.2} s; \
         {} rounds missed; a scrape takes {:.2} s; {:.0} series in memory, {:.0} MiB",
        times.len(),
        own["prometheus_rule_group_last_duration_seconds"],
        own["prometheus_rule_group_interval_seconds"],
        times[0].1,
        times[0].0,
        own["prometheus_rule_group_iterations_missed_total"],
        scrape[0],
        own["prometheus_tsdb_head_series"],
        prometheus.process.resident_memory().unwrap() as f64 / f64::from(1 << 20),
    );
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let counts = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).map(|count| count.parse().unwrap());
    let counts: Vec<u32> = counts.collect();
    for nodes in if counts.is_empty() { vec![500, 5_000] } else { counts } {
        runtime.block_on(measure(nodes));
    }
}
