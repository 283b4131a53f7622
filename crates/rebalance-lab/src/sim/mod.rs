//! `rebalance-lab sim ...`: the simulator on the command line. Results go to a writer, progress to standard error. Styles
//! are always written; the writer removes them where they do not belong.

mod algorithms;
mod choices;
mod classify;
mod compare;
mod explain;
mod run;
mod scenarios;
mod search;
mod source;
#[cfg(test)]
mod tests;

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueEnum};
use sim::scenario::{ScenarioError, schema};
use terminal::Terminal;

use source::Choice;
pub(crate) use source::scenario;

/// Simulate how VMs are rebalanced
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario once and show what came of it
    Run(run::RunArgs),
    /// Classify the nodes of a file by all algorithms and threshold modes, without a run
    Classify(classify::ClassifyArgs),
    /// Compare algorithms on a scenario over many seeds
    Compare(compare::CompareArgs),
    /// List the scenarios that come with the program, print one, or generate one
    Scenarios(scenarios::ScenariosArgs),
    /// List the 20 algorithms
    Algorithms(algorithms::AlgorithmsArgs),
    /// Search for a score that comes near the optimum in generated scenarios, and judge all algorithms by them
    Search(search::SearchArgs),
    /// Show term by term why a node has its score
    Explain(explain::ExplainArgs),
    /// Print the JSON schema of scenario files
    Schema,
}

/// The arguments of `sim`.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    #[command(subcommand)]
    command: Command,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Output {
    #[default]
    Table,
    Json,
    Csv,
}

/// What went wrong, in words for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{0}: {1}")]
    Scenario(String, ScenarioError),
    #[error("{0}")]
    Usage(String),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("printing: {0}")]
    Print(#[from] io::Error),
}

type Result<T> = std::result::Result<T, CommandError>;

pub(crate) fn run(args: &Sim) -> anyhow::Result<()> {
    match execute(args, Terminal::of_this_process(), &mut anstream::stdout()) {
        // A pipe that was closed is not an error.
        Err(CommandError::Print(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

fn execute(sim: &Sim, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    match &sim.command {
        Command::Run(args) => run::run(args, terminal, out),
        Command::Classify(args) => classify::run(args, terminal, out),
        Command::Compare(args) => compare::run(args, terminal, out),
        Command::Scenarios(args) => scenarios::run(args, terminal, out),
        Command::Algorithms(args) => algorithms::run(args, terminal, out),
        Command::Search(args) => search::run(args, terminal, out),
        Command::Explain(args) => explain::run(args, terminal, out),
        Command::Schema => Ok(out.write_all(schema().as_bytes())?),
    }
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| CommandError::File { path: path.to_owned(), error })
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
