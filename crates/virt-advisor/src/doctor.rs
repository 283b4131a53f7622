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

use std::{
    io::{ErrorKind, Write},
    process::ExitCode,
};

use advisor::access::NAMESPACE;
use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

use crate::{reader::Reader, terminal};
use finding::{Finding, Level, Signs};

#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 without a problem, 1 with at least one, 2 for a wrong command line.")]
pub(crate) struct Args {
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// The namespace of the operator
    #[arg(short, long, default_value = NAMESPACE)]
    namespace: String,
    /// The context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// How many seconds a request may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    request_timeout: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// The result for programs: fields are added, and none changes its meaning.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    api_version: &'static str,
    kind: &'static str,
    client: &'static str,
    healthy: bool,
    findings: &'a [Finding],
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let reader = Reader::connect(args.context.as_deref(), "doctor", Some(args.request_timeout)).await?;
    let findings = look::look(&reader, &args.namespace).await;
    let healthy = findings.iter().all(|finding| finding.level != Level::Problem);
    let text = match args.output {
        Output::Text => finding::render(&findings, terminal::width(), signs(locale().as_deref())),
        Output::Json => {
            let client = crate::VERSION;
            let (api_version, kind) = ("doctor.advisor.kubevirt.io/v1alpha1", "DoctorReport");
            serde_json::to_string_pretty(&Report { api_version, kind, client, healthy, findings: &findings })? + "\n"
        }
    };
    match anstream::stdout().write_all(text.as_bytes()) {
        // A pipe that was closed is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error).context("printing the result"),
        _ => {}
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first of these variables that is set says which characters there are.
fn locale() -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable)
}

fn signs(locale: Option<&str>) -> Signs {
    let locale = locale.unwrap_or_default().to_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") { Signs::Unicode } else { Signs::Ascii }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_beyond_ascii_are_shown_where_the_locale_has_them() {
        for (locale, expected) in [
            (Some("en_US.UTF-8"), Signs::Unicode),
            (Some("C.utf8"), Signs::Unicode),
            (Some("C"), Signs::Ascii),
            (None, Signs::Ascii),
        ] {
            assert_eq!(signs(locale), expected, "{locale:?}");
        }
    }
}
