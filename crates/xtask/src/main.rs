//! The project's own commands, for contributors. `make help` lists them under the names people use.

mod bench;
mod bench_plan;
mod cluster;
mod demo;
mod generate;
mod tools;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

#[derive(Parser)]
#[command(about, version)]
enum Command {
    /// Write the generated files of this repository
    Generate,
    /// Build the third-party programs that are missing from the cache
    Tools(tools::Args),
    /// Run a control plane until Ctrl-C
    Cluster(cluster::Args),
    /// Show the product on a control plane of its own, and leave it running until Ctrl-C
    Demo,
    /// Measure how long a control plane takes to start and how much memory it needs
    BenchCluster(bench::Args),
    /// Measure what a plan costs, and that it does not grow with the cluster
    BenchPlan,
}

fn main() -> ExitCode {
    let run = || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        match Command::parse() {
            Command::Generate => generate::run(),
            Command::Tools(args) => tools::run(&args),
            Command::Cluster(args) => runtime.block_on(cluster::run(&args)),
            Command::Demo => runtime.block_on(demo::run()),
            Command::BenchCluster(args) => runtime.block_on(bench::run(&args)),
            Command::BenchPlan => runtime.block_on(bench_plan::run()),
        }
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}
