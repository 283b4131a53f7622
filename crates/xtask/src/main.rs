//! The project's own commands, for contributors. `make help` lists them under the names people use.

mod bench;
mod bench_cluster;
mod bench_impact;
mod bench_operator;
mod bench_plan;
mod check_profile;
mod cluster;
mod codeowners;
mod demo;
mod deploy;
mod dev;
mod generate;
mod image;
mod install;
mod krew;
mod kubectl;
mod managed;
mod nodes;
mod packages;
mod picture;
mod release;
mod run_tests;
mod tools;
mod weaknesses;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

#[derive(Parser)]
#[command(about, version)]
enum Command {
    /// Write the generated files of this repository
    Generate,
    /// Say what is missing of a profile
    CheckProfile(check_profile::Args),
    /// Draw the picture of the README
    Picture,
    /// Build the third-party programs that are missing from the cache
    Tools(tools::Args),
    /// Run every test program of the workspace, and show one line for each
    RunTests,
    /// Run a control plane until Ctrl-C
    Cluster(cluster::Args),
    /// Show the product on a control plane of its own, and leave it running until Ctrl-C
    Demo,
    /// Install the definition of VirtPlatformConfig into the current cluster
    Install,
    /// Remove it, and with it every object of it
    Uninstall(install::Args),
    /// Install the operator into the current cluster
    Deploy(deploy::Args),
    /// Remove the operator, and nothing of what people made
    Undeploy,
    /// Write everything that an installation consists of into one file, with and without the namespace
    BuildInstaller(deploy::Args),
    /// Write everything that is published with a version, with checksums
    Release(release::Args),
    /// Keep the definitions of today as those of this version, for comparison with later ones
    Baseline,
    /// Build a program that needs nothing but a kernel, and print where it is
    BuildStatic(image::static_build::Args),
    /// Write an image as a file, without a container engine
    ImageArchive(image::write::Args),
    /// Build an image with a container engine
    ImageBuild(image::engine::BuildArgs),
    /// Build the image for `oc adm must-gather` with a container engine
    ImageMustGather(image::engine::MustGatherArgs),
    /// Push an image to its registry
    ImagePush(image::engine::PushArgs),
    /// Print the manifest of the kubectl plugin for krew
    Krew(krew::Args),
    /// Provide a cluster to develop against
    DevSetup(dev::Args),
    /// End what dev-setup provided
    DevTeardown(dev::Args),
    /// The control plane behind dev-setup
    #[command(hide = true)]
    DevHost(dev::Place),
    /// Measure how long a control plane takes to start and how much memory it needs
    BenchCluster(bench::Args),
    /// Measure what the operator costs: waiting time, requests, memory
    BenchOperator(bench_operator::Args),
    /// Measure what it costs to tell what a plan does to the virtual machines of a large cluster
    BenchImpact,
    /// Measure what a plan costs, and that it does not grow with the cluster
    BenchPlan,
}

fn main() -> ExitCode {
    let run = || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        match Command::parse() {
            Command::Generate => generate::run(),
            Command::CheckProfile(args) => check_profile::run(&args),
            Command::Picture => picture::run(),
            Command::Tools(args) => tools::run(&args),
            Command::RunTests => runtime.block_on(run_tests::run()),
            Command::Cluster(args) => runtime.block_on(cluster::run(&args)),
            Command::Demo => runtime.block_on(demo::run()),
            Command::Install => install::install(),
            Command::Uninstall(args) => install::uninstall(&args),
            Command::Deploy(args) => deploy::deploy(&args),
            Command::Undeploy => deploy::undeploy(),
            Command::BuildInstaller(args) => deploy::build_installer(&args),
            Command::Release(args) => release::run(&args),
            Command::Baseline => release::baseline(),
            Command::BuildStatic(args) => image::static_build::run(&args),
            Command::ImageArchive(args) => image::write::run(&args),
            Command::ImageBuild(args) => image::engine::build(&args),
            Command::ImageMustGather(args) => image::engine::build_must_gather(&args),
            Command::ImagePush(args) => image::engine::push(&args),
            Command::Krew(args) => krew::run(&args),
            Command::DevSetup(args) => dev::setup(&args),
            Command::DevTeardown(args) => dev::teardown(&args),
            Command::DevHost(place) => runtime.block_on(dev::host(&place)),
            Command::BenchCluster(args) => runtime.block_on(bench::run(&args)),
            Command::BenchOperator(args) => runtime.block_on(bench_operator::run(args)),
            Command::BenchImpact => runtime.block_on(bench_impact::run()),
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
