//! `rebalance-lab`: the lab in which rebalancing of VMs can be watched and simulated.

#[path = "../../cluster.rs"]
mod cluster;
mod descheduler;
mod exporter;
mod part;
mod sim;
mod soft_tainter;
mod vm_controller;
mod webhook;

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Parser;

const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Watches and simulates how VMs are rebalanced
#[derive(Parser)]
#[command(name = "rebalance-lab", version)]
enum Command {
    /// Simulate rebalancing: run scenarios, compare algorithms, explain scores
    Sim(::sim::command::Sim),
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
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Sim(args) => sim::run(&args),
        Command::VmController(args) => vm_controller::run(&args),
        Command::Webhook(args) => webhook::run(&args),
        Command::Exporter(args) => exporter::run(&args),
        Command::DeschedulerOperator(args) => descheduler::run(&args),
        Command::SoftTainter(args) => soft_tainter::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{ERROR}error:{ERROR:#} {error:#}");
            ExitCode::FAILURE
        }
    }
}
