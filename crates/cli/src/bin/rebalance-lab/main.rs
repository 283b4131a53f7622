//! `rebalance-lab`: the lab in which rebalancing of VMs can be watched and simulated.

mod sim;

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
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Sim(args) => sim::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{ERROR}error:{ERROR:#} {error:#}");
            ExitCode::FAILURE
        }
    }
}
