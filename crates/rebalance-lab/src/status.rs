//! `rebalance-lab status`: a look at a running lab.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use clap::ValueEnum;
use lab::survey;
use sim::command::Terminal;

use crate::record::{Name, Records};

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
    name: Name,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let found = Records::of_this_user().find(&args.name.name)?;
    let survey = runtime()?.block_on(async { anyhow::Ok(survey::take(&found.sources().await?).await) })?;
    let text = match args.output {
        Output::Table => survey::text(&survey, Terminal::of_this_process().width),
        Output::Json => serde_json::to_string_pretty(&survey)? + "\n",
    };
    print(&text)
}

/// One thread is enough to ask and to wait.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")
}

/// Whoever was reading may have seen enough.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match anstream::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("printing"),
        _ => Ok(()),
    }
}
