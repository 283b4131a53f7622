//! `rebalance-lab sim ...`: what the simulator can do from the command line. Results go to a writer, progress to standard
//! error; styles are written always, and whoever prints leaves them out where they do not belong.

mod algorithms;
mod compare;
mod explain;
mod run;
mod scenarios;
mod source;

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueEnum};

use crate::scenario::{Scenario, ScenarioError};
pub use source::{Choice, scenario};

/// Simulate how VMs are rebalanced
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario once and show what came of it
    Run(run::RunArgs),
    /// Compare algorithms on a scenario over many seeds
    Compare(compare::CompareArgs),
    /// List the scenarios that come with the program, print one, or generate one
    Scenarios(scenarios::ScenariosArgs),
    /// List the 19 algorithms
    Algorithms(algorithms::AlgorithmsArgs),
    /// Show term by term why a node has its score
    Explain(explain::ExplainArgs),
    /// Print the JSON schema of scenario files
    Schema,
}

/// The arguments of `sim`.
#[derive(Debug, Args)]
pub struct Sim {
    #[command(subcommand)]
    command: Command,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    #[default]
    Table,
    Json,
    Csv,
}

/// What went wrong, in words for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("{0}: {1}")]
    Scenario(String, ScenarioError),
    #[error("{0}")]
    Usage(String),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("printing: {0}")]
    Print(#[from] io::Error),
}

impl CommandError {
    /// A word for scripts and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Scenario(..) => "InvalidScenario",
            Self::Usage(_) => "InvalidUsage",
            Self::File { .. } => "FileFailed",
            Self::Print(_) => "PrintFailed",
        }
    }
}

type Result<T> = std::result::Result<T, CommandError>;

/// What is known of the place that results are shown at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    /// How many characters fit in a line, if there is a limit.
    pub width: Option<usize>,
    /// Whether progress is shown, on standard error.
    pub progress: bool,
}

impl Terminal {
    /// Of this process: tables fit a terminal, and a pipe gets all of them.
    pub fn of_this_process() -> Self {
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        Self { width, progress: io::stderr().is_terminal() }
    }
}

/// Does what was asked for.
pub fn run(sim: &Sim, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    match &sim.command {
        Command::Run(args) => run::run(args, terminal, out),
        Command::Compare(args) => compare::run(args, terminal, out),
        Command::Scenarios(args) => scenarios::run(args, terminal, out),
        Command::Algorithms(args) => algorithms::run(args, terminal, out),
        Command::Explain(args) => explain::run(args, terminal, out),
        Command::Schema => Ok(out.write_all(schema().as_bytes())?),
    }
}

/// The JSON schema of scenario files, as it is published.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Scenario);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| CommandError::File { path: path.to_owned(), error })
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// A bar on standard error, for work that takes a while at a terminal.
fn bar(terminal: Terminal, what: &'static str) -> impl Fn(usize, usize) + Sync {
    const WIDTH: usize = 30;
    move |done, all| {
        if !terminal.progress || all < 4 {
            return;
        }
        let full = WIDTH * done / all.max(1);
        let mut stderr = io::stderr().lock();
        let _ = if done == all {
            write!(stderr, "\r{:width$}\r", "", width = WIDTH + what.len() + 30)
        } else {
            write!(stderr, "\r[{}{}] {done}/{all} {what}", "#".repeat(full), "-".repeat(WIDTH - full))
        };
        let _ = stderr.flush();
    }
}
