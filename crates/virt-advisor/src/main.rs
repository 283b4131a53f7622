//! `virt-advisor`: the operator, and the commands of `kubectl virt-advisor`.

mod complete;
mod configs;
mod connection;
mod decide;
// The pages have all commands.
#[cfg(test)]
#[cfg(feature = "forecast")]
mod docs;
mod doctor;
mod drift;
mod explain;
mod failure;
#[cfg(feature = "forecast")]
mod forecast;
mod gather;
#[cfg(test)]
mod golden;
mod history;
mod impact;
mod link;
mod list;
mod man;
mod metrics;
mod node_names;
mod operator;
mod options;
mod output;
mod plan;
mod probes;
mod program;
mod prose;
mod reader;
mod rights;
mod status;
mod tail;
mod unreadable;
mod wait;
mod watching;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser};
use connection::Connection;
use program::Role;

/// The version of this program, as the operator writes its own into statuses.
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Plans configuration for virtualization platforms and shows what it would change.
#[derive(Parser)]
#[command(name = "virt-advisor", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List all configurations and what each waits for
    List(list::Args),
    /// Show the plan that waits or was applied, or with --draft a fresh one
    Plan(plan::Args),
    /// Show what a profile would change in the current cluster; writes nothing
    Preview(plan::PreviewArgs),
    /// Show what a plan does to nodes and virtual machines, for how long, and what may go wrong
    Impact(impact::Args),
    /// Show what the load-aware plan would do to a cluster with the load of a scenario, or check what it did
    #[cfg(feature = "forecast")]
    Forecast(forecast::Args),
    /// Show a plan, ask about its risks, and approve it
    Approve(decide::ApproveArgs),
    /// Turn a plan down, with a reason
    Reject(decide::RejectArgs),
    /// Have a plan made that takes back what was applied
    Undo(decide::UndoArgs),
    /// Show field by field what somebody changed of what was applied, and what to do about it
    Drift(drift::Args),
    /// List the plans that were applied, or show one of them
    History(history::Args),
    /// Explain what a profile does, with its options, objects and requirements
    Explain(explain::Args),
    /// Show how far a rollout is: pools, nodes with the worst first, and what they wait for
    Status(status::Args),
    /// Wait until a plan is made, reviewed, completed or failed
    Wait(wait::Args),
    /// Run the operator against the current cluster
    Operator(operator::Args),
    /// Collect what support asks for: configurations, plans, managed objects, events, logs
    Gather(gather::Args),
    /// Check the installation from here, and say what to do about what is wrong
    Doctor(doctor::Args),
    /// Print a script for the completion of a shell
    Completion(complete::Args),
    /// Write the manual pages
    Man(man::Args),
}

/// The command line, with the name under which the program was started.
pub(crate) fn command() -> clap::Command {
    program::named(documented(), program::name())
}

/// The command line with what its help and its manual page tell besides.
pub(crate) fn documented() -> clap::Command {
    Cli::command().after_help(exit_codes())
}

fn exit_codes() -> String {
    let line = |(code, meaning): &(u8, &str)| format!("\n  {code:>3}  {meaning}");
    format!("Exit codes:{}", failure::Failure::EXIT_CODES.iter().map(line).collect::<String>())
}

/// One thread is enough for what mostly waits for an API server, and costs the same memory on a node of any size.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    if Role::of(given.first().map(OsString::as_os_str)) == Role::Completion {
        // Whatever happens, kubectl takes nothing from a program that fails.
        let _ = terminal::print(&complete::answer(command(), given.get(1..).unwrap_or_default()).await);
        return ExitCode::SUCCESS;
    }
    let matches = command().get_matches_from(program::arguments(given));
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli).await {
        Ok(code) => code,
        Err(error) => {
            let text = terminal::table::visible_lines(&format!("{error:#}"));
            anstream::eprintln!("{}error:{} {text}", prose::ERROR, prose::ERROR.render_reset());
            let (failure, hint) = failure::classify(&error);
            if let Some(hint) = hint {
                anstream::eprintln!("hint: {hint}");
            }
            ExitCode::from(failure as u8)
        }
    }
}

async fn run(Cli { connection, command }: Cli) -> anyhow::Result<ExitCode> {
    connection.check()?;
    match command {
        Command::List(args) => list::run(&args, &connection).await?,
        Command::Plan(args) => return plan::run(&args, &connection).await,
        Command::Preview(args) => plan::preview(&args, &connection).await?,
        Command::Impact(args) => impact::run(&args, &connection).await?,
        #[cfg(feature = "forecast")]
        Command::Forecast(args) => return forecast::run(&args, &connection).await,
        Command::Approve(args) => decide::approve(&args, &connection).await?,
        Command::Reject(args) => decide::reject(&args, &connection).await?,
        Command::Undo(args) => decide::undo(&args, &connection).await?,
        Command::Drift(args) => return drift::run(&args, &connection).await,
        Command::History(args) => history::run(&args, &connection).await?,
        Command::Explain(args) => explain::run(&args)?,
        Command::Status(args) => return status::run(&args, &connection).await,
        Command::Wait(args) => return wait::run(&args, &connection).await,
        Command::Operator(args) => operator::run(&args, &connection).await?,
        Command::Gather(args) => gather::run(&args, &connection).await?,
        Command::Doctor(args) => return doctor::run(&args, &connection).await,
        Command::Completion(args) => complete::script(&args, Cli::command())?,
        Command::Man(args) => man::run(&args, documented())?,
    }
    Ok(ExitCode::SUCCESS)
}
