//! `rebalance-lab`: the lab in which rebalancing of VMs can be watched and simulated.

mod descheduler;
mod down;
mod exporter;
mod import;
mod lab_file;
mod lab_files;
mod lab_name;
mod load;
mod logs;
mod machine_config;
mod part;
mod sim;
mod soft_tainter;
mod status;
mod up;
mod vm_controller;
mod watch;
mod webhook;

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Parser;

const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Watches and simulates how VMs are rebalanced
#[derive(Parser)]
#[command(name = "rebalance-lab", version)]
enum Command {
    /// Start the whole lab, and keep it until Ctrl-C or `down`
    Up(up::Args),
    /// Show the parts, the nodes and the latest migrations of a running lab
    Status(status::Args),
    /// The same, live
    Watch(watch::Args),
    /// Change what VMs of a running lab use, at once or by a scenario
    Load(load::Args),
    /// Show what a part of a running lab says
    Logs(logs::Args),
    /// End a running lab
    Down(down::Args),
    /// Make a scenario from a live cluster and its Prometheus
    Import(import::Args),
    /// Simulate rebalancing: run scenarios, compare algorithms, explain scores
    Sim(sim::Sim),
    /// Keep a pod for every VirtualMachine, and migrate those that are to leave their node
    VmController(vm_controller::Args),
    /// Turn evictions and deletions of VMs' pods into migrations
    Webhook(webhook::Args),
    /// Serve the metrics of the lab's nodes to Prometheus
    Exporter(exporter::Args),
    /// Run the real descheduler as a KubeDescheduler asks, or with a policy as it is
    DeschedulerOperator(descheduler::Args),
    /// Ask the scheduler to keep new pods away from busy nodes
    SoftTainter(soft_tainter::Args),
    /// Roll MachineConfigs out to nodes without machines, as the machine config operator does to real ones
    MachineConfigOperator(machine_config::Args),
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Up(args) => up::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Down(args) => down::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::VmController(args) => vm_controller::run(&args),
        Command::Webhook(args) => webhook::run(&args),
        Command::Exporter(args) => exporter::run(&args),
        Command::DeschedulerOperator(args) => descheduler::run(&args),
        Command::SoftTainter(args) => soft_tainter::run(&args),
        Command::MachineConfigOperator(args) => machine_config::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{ERROR}error:{ERROR:#} {error:#}");
            ExitCode::FAILURE
        }
    }
}
