//! `rebalance-lab status`: the parts, the nodes and the latest migrations of a running lab.

use anyhow::Context;
use clap::ValueEnum;
use lab::survey;
use terminal::{Terminal, print};

use crate::{lab_files::LabFiles, lab_name::LabName};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    name: LabName,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let lab = LabFiles::of_this_user().find(&args.name.name)?;
    let survey = runtime()?.block_on(async { anyhow::Ok(survey::take(&lab.sources().await?).await) })?;
    let text = match args.output {
        Output::Table => survey::text(&survey, Terminal::of_this_process().width),
        Output::Json => serde_json::to_string_pretty(&survey)? + "\n",
    };
    print(&text)
}

/// One thread is enough for commands that mostly wait.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")
}
