//! How results are printed: for people, or in a stable shape for programs.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context;
use clap::ValueEnum;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Serialize;
use terminal::print;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Yaml,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
}

impl OutputArgs {
    /// Prints a result: `text` for people, through a pager if the terminal is too small for it; the document for programs.
    pub(crate) fn print(&self, document: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        match self.output {
            Format::Text => page(&text()),
            Format::Json => print(&(serde_json::to_string_pretty(document)? + "\n")),
            Format::Yaml => print(&serde_saphyr::to_string(document)?),
        }
    }
}

/// A result for programs. Fields are added, and none changes its meaning.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<T> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// The version of this program.
    pub(crate) client: &'static str,
    #[serde(flatten)]
    pub(crate) body: T,
}

impl<T> Document<T> {
    pub(crate) const API_VERSION: &'static str = "cli.advisor.kubevirt.io/v1alpha1";

    pub(crate) fn new(kind: &'static str, body: T) -> Self {
        Document { api_version: Self::API_VERSION, kind, client: crate::VERSION, body }
    }
}

/// Prints a text that may be longer than the terminal.
pub(crate) fn page(text: &str) -> anyhow::Result<()> {
    if fits(text) || !io::stdout().is_terminal() {
        return print(text);
    }
    match through_pager(text, anstream::stdout().current_choice(), Stdio::inherit()) {
        // Without a pager the text is still worth showing.
        Err(error) if error.kind() == ErrorKind::NotFound => print(text),
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("printing the result"),
        _ => Ok(()),
    }
}

/// Shows what somebody is asked about next, on standard error, where the questions are. It has to arrive, so a closed pipe is an error.
pub(crate) fn show(text: &str) -> anyhow::Result<()> {
    if !fits(text) {
        let paged = through_pager(text, anstream::stderr().current_choice(), Stdio::from(io::stderr()));
        if paged.is_ok_and(|status| status.success()) {
            return Ok(());
        }
    }
    anstream::stderr().write_all(text.as_bytes()).context("showing what is asked about")
}

fn fits(text: &str) -> bool {
    terminal::height().is_none_or(|height| text.lines().count() < height)
}

/// The pager of the user. `less` is told to show colors and to leave the text on the screen.
fn through_pager(text: &str, colors: anstream::ColorChoice, screen: Stdio) -> io::Result<ExitStatus> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".into());
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else { return Err(ErrorKind::NotFound.into()) };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(screen);
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    // Ctrl-C belongs to the pager: once somebody has asked for the signal, it does not end this program any more.
    let _ = tokio::signal::ctrl_c().now_or_never();
    let mut pager = command.spawn()?;
    if let Some(mut input) = pager.stdin.take() {
        let painted = match colors {
            anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
            _ => text.to_owned(),
        };
        // A pager that is left early closes its end.
        let _ = input.write_all(painted.as_bytes());
    }
    pager.wait()
}
