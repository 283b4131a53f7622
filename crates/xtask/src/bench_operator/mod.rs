//! What the operator costs: how long people wait for it, how many requests a configuration takes from its first plan to
//! drift, and how much memory the operator needs.
//!
//! The operator is the optimized binary, as its own process, on a real API server. The benchmark writes the statuses of
//! pools, so that only the operator's own time is measured.

mod lifecycle;
mod scrape;

use std::{collections::BTreeMap, process::Command, time::Duration};

use anyhow::{Context, ensure};
use devcluster::{Cluster, Identity, Request, RunningProgram};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{Api, Client, api::DynamicObject};
use serde_json::json;

use lifecycle::{Lifecycle, MCO, phase, resource};

use crate::root;

const RUNS: usize = 50;
const PROFILE: &str = "load-aware-rebalancing";
const OPERATOR: &str = "virt-advisor-operator-bench";

/// How many MachineConfigs of others there are, and their size.
const FOREIGN: usize = 2000;
const FOREIGN_BYTES: usize = 64 * 1024;

/// What is measured, and what the reference implementation took on the same server.
const STEPS: [(&str, f64); 4] = [
    ("created -> ReviewRequired", 60.0),
    ("approved -> both objects written", 52.0),
    ("pool ready -> Completed", 75.0),
    ("foreign edit -> Drifted", 58.0),
];

pub(crate) async fn run() -> anyhow::Result<()> {
    scrape::run()?;
    println!("Building the operator, and starting a control plane with the third parties' kinds");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--release", "--bin", "virt-advisor"])
        .current_dir(root())
        .status()?;
    ensure!(built.success(), "the operator could not be built");
    let cluster = Cluster::builder().start().await?;
    let client = kube_io::connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    for args in [
        &["apply", "--server-side", "-k", "config/crd"][..],
        &["apply", "--server-side", "-k", "config/crd/third-party"],
        &["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"],
        &["apply", "--server-side", "-k", "config/samples/third-party"],
        &["apply", "--server-side", "--subresource=status", "-f", "config/samples/third-party/status.yaml"],
    ] {
        let mut kubectl = cluster.access().kubectl_command(&Identity::Admin).await?;
        let output = kubectl.args(args).current_dir(root()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let program = std::env::current_exe()?.with_file_name("virt-advisor");
    let who = Identity::user(OPERATOR, &["system:masters"]);
    let start = async || cluster.access().run(&who, "virt-advisor", &program, &["operator"]).await;
    let operator = start().await?;
    let mut lifecycle = Lifecycle::new(client.clone()).await?;
    lifecycle.until("offered", |kind, object| kind == "VirtPlatformConfig" && phase(object) == "Ignored").await?;
    let idle = memory(&operator)?;

    let mut times = Vec::new();
    let mut requests = Vec::new();
    for _ in 0..RUNS {
        let before = cluster.audit().position(&client).await?;
        times.push(lifecycle.run().await?);
        requests.push(counted(cluster.audit().since(before, &client).await?));
        lifecycle.reset().await?;
    }
    let totals: Vec<usize> = requests.iter().map(|kinds| kinds.values().sum()).collect();
    let (least, most) = (totals.iter().min().copied().unwrap_or(0), totals.iter().max().copied().unwrap_or(0));
    println!("\nRequests of a whole life, watches and events aside: {least} to {most} (reference: 70 to 76)");
    for (kind, count) in requests.last().context("there were runs")? {
        println!("  {count:>3} {kind}");
    }
    let busy = memory(&operator)?;
    println!("\nResident memory: {idle:.1} MiB idle, {busy:.1} MiB after {RUNS} lives (reference: 54 MiB)");

    println!("Adding {FOREIGN} MachineConfigs of {} KiB of other people's", FOREIGN_BYTES / 1024);
    foreign(&client).await?;
    let crowded = memory(&operator)?;
    operator.stop(Duration::from_secs(5)).await?;
    let mut bare = Vec::new();
    for _ in 0..RUNS {
        bare.push(lifecycle.run_bare().await?);
    }
    let operator = start().await?;
    lifecycle.ignore().await?;
    lifecycle.run().await?;
    let restarted = memory(&operator)?;
    println!(
        "Resident memory: {crowded:.1} MiB beside them, {restarted:.1} MiB after a restart and one more life (reference: 206 MiB beside 1,000)"
    );
    let size = std::fs::metadata(&program)?.len() as f64 / 1e6;
    println!("Binary: {size:.1} MB (reference: 74 MB)");
    show(&times, &bare);
    Ok(())
}

/// How long people wait, beside the least that the same writes take on the same API server in the same run.
fn show(times: &[[Duration; 4]], bare: &[[Duration; 4]]) {
    println!("\nOne life of {PROFILE}, {RUNS} times, and what the same writes take without an operator:\n");
    println!(
        "{:<34} {:>9} {:>9} {:>10} {:>8} {:>15} {:>7}",
        "", "p50 [ms]", "p99 [ms]", "bare [ms]", "to bare", "reference [ms]", "ratio"
    );
    for (step, (name, reference)) in STEPS.iter().enumerate() {
        let of = |times: &[[Duration; 4]]| times.iter().map(|steps| steps[step]).collect::<Vec<_>>();
        let (half, most, bare) = (percentile(of(times), 0.5), percentile(of(times), 0.99), percentile(of(bare), 0.5));
        println!(
            "{name:<34} {half:>9.1} {most:>9.1} {bare:>10.1} {:>8.2} {reference:>15.0} {:>7.2}",
            half / bare,
            half / reference
        );
    }
}

/// In milliseconds.
fn percentile(mut times: Vec<Duration>, share: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1000.0
}

fn memory(operator: &RunningProgram) -> anyhow::Result<f64> {
    Ok(operator.resident_memory()? as f64 / 1024.0 / 1024.0)
}

/// The number of requests by verb and path, without watches, the lists with which they begin, and events.
fn counted(requests: Vec<Request>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        let is_watch = request.verb == "watch" || request.verb == "list" && request.uri.contains("fieldSelector");
        if request.user == OPERATOR && !is_watch && !request.uri.contains("/events") {
            let path = request.uri.split('?').next().unwrap_or_default().to_owned();
            let path = path.replace("rendered-worker-d9366560000b5d89c5825f832fda0bd6", "rendered-*");
            *counts.entry(format!("{} {path}", request.verb)).or_insert(0) += 1;
        }
    }
    counts
}

async fn foreign(client: &Client) -> anyhow::Result<()> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(MCO, "v1", "MachineConfig"));
    let payload = "x".repeat(FOREIGN_BYTES);
    stream::iter(0..FOREIGN)
        .map(|number| {
            let (api, payload) = (api.clone(), payload.clone());
            async move {
                let source = format!("data:,{payload}");
                let object: DynamicObject = serde_json::from_value(json!({
                    "apiVersion": format!("{MCO}/v1"),
                    "kind": "MachineConfig",
                    "metadata": {"name": format!("50-other-{number:04}"), "labels": {format!("{MCO}/role"): "other"}},
                    "spec": {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/etc/other", "contents": {"source": source}}]}}},
                }))?;
                api.create(&Default::default(), &object).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(8)
        .try_collect()
        .await
}
