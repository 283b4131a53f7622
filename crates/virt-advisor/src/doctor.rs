//! `virt-advisor doctor`: checks from the client's side, in one screen, each with what to do about it.

mod configurations;
mod definitions;
mod finding;
mod look;
mod managers;
mod prerequisites;
mod rights;
mod running;
mod server;
mod webhooks;

use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    connection::Connection,
    failure::Failure,
    output::{Document, OutputArgs},
};
use finding::{Finding, Level};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  virt-advisor doctor
  virt-advisor doctor -o json

Exit codes: 0 without a problem, 1 with at least one, 2 for a wrong command line or another error.")]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorReport {
    /// Whether there is no problem. Warnings are none.
    healthy: bool,
    findings: Vec<Finding>,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<ExitCode> {
    let reader = connection.reader("doctor").await?;
    let findings = look::look(&reader, connection.namespace()).await;
    let healthy = findings.iter().all(|finding| finding.level != Level::Problem);
    let document = Document::new("DoctorReport", DoctorReport { healthy, findings });
    args.output.print(&document, || finding::render(&document.body.findings, terminal::width(), terminal::signs()))?;
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::from(Failure::Found as u8) })
}
