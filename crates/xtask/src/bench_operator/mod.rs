//! What the operator costs: how long people wait for it, how many requests a configuration takes from its first plan to drift, and how
//! much memory the operator needs. The operator is the optimized binary with the arguments that are shipped, as its own process, on a
//! real API server. The benchmark writes the statuses of pools, so that only the operator's own time is measured.

mod lifecycle;
mod memory;
mod scrape;

use std::{collections::BTreeMap, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, ensure};
use devcluster::{AuditedRequest, Identity};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{Api, Client, api::DynamicObject};
use serde_json::{Value, json};

use lifecycle::{Lifecycle, MCO, phase, resource};
use memory::Memory;

use crate::{bench_cluster, root};

const RUNS: usize = 50;
const PROFILE: &str = "load-aware-rebalancing";
const OPERATOR: &str = "virt-advisor-operator-bench";
/// After this, nothing of the start is left: connections, buffers and lists.
const SETTLED: Duration = Duration::from_secs(30);
const MINUTE: Duration = Duration::from_secs(60);

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

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure this operator, for example of another commit, instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    scrape::run()?;
    println!("Building the operator, and starting a control plane with the third parties' kinds");
    let program = args.program.map_or_else(build, Ok)?;
    let cluster = bench_cluster::start().await?;
    let client = kube_io::connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    let who = Identity::user(OPERATOR, &["system:masters"]);
    let args = shipped_args()?;
    println!("Arguments: {}", args.join(" "));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let start = async || cluster.access().run(&who, "virt-advisor", &program, &args).await;
    let operator = start().await?;
    let mut lifecycle = Lifecycle::new(client.clone()).await?;
    lifecycle.until("offered", |kind, object| kind == "VirtPlatformConfig" && phase(object) == "Ignored").await?;
    tokio::time::sleep(SETTLED).await;
    let before = cluster.audit().position(&client).await?;
    tokio::time::sleep(MINUTE).await;
    show_rest(&cluster.audit().since(before, &client).await?);
    let idle = Memory::of(&operator)?;

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
    let busy = Memory::of(&operator)?;
    println!("\nResident memory: {idle} at rest, {busy} after {RUNS} lives (reference: 54 MiB)");

    println!("Adding {FOREIGN} MachineConfigs of {} KiB of other people's", FOREIGN_BYTES / 1024);
    foreign(&client).await?;
    let crowded = Memory::of(&operator)?;
    operator.stop(Duration::from_secs(5)).await?;
    let mut bare = Vec::new();
    for _ in 0..RUNS {
        bare.push(lifecycle.run_bare().await?);
    }
    let operator = start().await?;
    lifecycle.ignore().await?;
    lifecycle.run().await?;
    let restarted = Memory::of(&operator)?;
    println!(
        "Resident memory: {crowded} beside them, {restarted} after a restart and one more life (reference: 206 MiB beside 1,000)"
    );
    let size = std::fs::metadata(&program)?.len() as f64 / 1e6;
    println!("Binary: {size:.1} MB (reference: 74 MB)");
    show(&times, &bare);
    Ok(())
}

/// Builds the optimized `virt-advisor` as the image of the operator has it, beside this program.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--release", "--package", "virt-advisor", "--no-default-features"])
        .current_dir(root())
        .status()?;
    ensure!(built.success(), "virt-advisor could not be built");
    Ok(std::env::current_exe()?.with_file_name("virt-advisor"))
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

/// The arguments of the shipped Deployment, on ports of loopback that are free.
fn shipped_args() -> anyhow::Result<Vec<String>> {
    let path = root().join("config/manager/manager.yaml");
    let manager: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
    let args = manager.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    let args = args.with_context(|| format!("{} has no arguments", path.display()))?.iter().filter_map(Value::as_str);
    let mut args: Vec<String> = args.map(on_loopback).collect();
    args.push("--leader-election-namespace=openshift-cnv".to_owned());
    Ok(args)
}

fn on_loopback(arg: &str) -> String {
    match arg.split_once("-bind-address=:") {
        Some((flag, _)) => format!("{flag}-bind-address=127.0.0.1:0"),
        None => arg.to_owned(),
    }
}

/// What the operator asks for while nothing happens.
fn show_rest(requests: &[AuditedRequest]) {
    let of = |is: fn(&AuditedRequest) -> bool| {
        requests.iter().filter(|request| request.user == OPERATOR && is(request)).count()
    };
    let (watches, leases) = (of(|request| request.verb == "watch"), of(|request| request.resource == "leases"));
    let others = of(|request| request.verb != "watch" && request.resource != "leases");
    println!("\nWatch requests per minute at rest: {watches}");
    println!("Other requests per minute at rest: {leases} for the lease, {others} others");
}

/// The number of requests by verb and path, without watches, the lists with which they begin, the lease, and events.
fn counted(requests: Vec<AuditedRequest>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        let is_watch = request.verb == "watch" || request.verb == "list" && request.uri.contains("fieldSelector");
        let is_lease = request.resource == "leases";
        if request.user == OPERATOR && !is_watch && !is_lease && !request.uri.contains("/events") {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_started_as_it_is_shipped() {
        let args = shipped_args().unwrap();
        for expected in ["operator", "--leader-elect", "--metrics-bind-address=127.0.0.1:0"] {
            assert!(args.iter().any(|arg| arg == expected), "{expected} is not in {args:?}");
        }
        assert!(!args.iter().any(|arg| arg.contains("=:")), "{args:?}");
    }
}
