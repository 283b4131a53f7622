//! What a control plane costs: time from the call to readiness, and resident memory.

use std::time::{Duration, Instant};

use devcluster::{Cluster, Component, tools};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often to start it
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// Times of one start, each from the call.
struct Run {
    etcd_ready: Duration,
    api_answers: Duration,
    api_ready: Duration,
    total: Duration,
    etcd_memory: u64,
    api_memory: u64,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    // Building is not part of what is measured; nor is the first read of the programs from disk, hence the warm-up.
    tokio::task::spawn_blocking(|| tools::ensure_all(&[Component::Etcd.program(), Component::ApiServer.program()]))
        .await??;
    once().await?;

    let mut runs = Vec::new();
    for _ in 0..args.runs.max(1) {
        runs.push(once().await?);
    }
    let median = |value: fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let row = |what: &str, unit: &str, value: fn(&Run) -> f64| {
        let each: Vec<String> = runs.iter().map(|run| format!("{:7.2}", value(run))).collect();
        println!("{what:<34} {:7.2} {unit:<4} {}", median(value), each.join(" "));
    };
    println!("{:<34} {:>7}      each run", "", "median");
    row("etcd ready after", "s", |run| run.etcd_ready.as_secs_f64());
    row("kube-apiserver answers after", "s", |run| run.api_answers.as_secs_f64());
    row("kube-apiserver ready after", "s", |run| run.api_ready.as_secs_f64());
    row("cluster ready after", "s", |run| run.total.as_secs_f64());
    row("etcd resident", "MiB", |run| run.etcd_memory as f64 / 1_048_576.0);
    row("kube-apiserver resident", "MiB", |run| run.api_memory as f64 / 1_048_576.0);
    Ok(())
}

async fn once() -> anyhow::Result<Run> {
    let start = Instant::now();
    let cluster = Cluster::builder().start().await?;
    let total = start.elapsed();
    let api = cluster.startup(Component::ApiServer)?;
    Ok(Run {
        etcd_ready: cluster.startup(Component::Etcd)?.ready,
        api_answers: api.answered,
        api_ready: api.ready,
        total,
        etcd_memory: cluster.resident_memory(Component::Etcd)?,
        api_memory: cluster.resident_memory(Component::ApiServer)?,
    })
}
