//! `virt-advisor`: what the advisor can do from the command line.

mod operator;
mod options;
mod preview;
mod probes;
mod report;
mod text;

use std::process::ExitCode;

use clap::Parser;

/// Plans configuration for virtualization platforms and shows what it would change.
#[derive(Parser)]
#[command(name = "virt-advisor", version)]
enum Command {
    /// Show what a profile would change in the current cluster; writes nothing
    Preview(preview::Args),
    /// Run the operator against the current cluster
    Operator(operator::Args),
}

/// One thread is enough for what mostly waits for an API server, and costs the same memory on a node of any size.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Preview(args) => preview::run(&args).await,
        Command::Operator(args) => operator::run(&args).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{}error:{} {error:#}", text::ERROR, text::ERROR.render_reset());
            ExitCode::FAILURE
        }
    }
}
