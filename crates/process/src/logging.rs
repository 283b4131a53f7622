//! The log of a program.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// Logs to standard error, with colors if that is a terminal. `filter` is the value of `--log-level`.
pub fn to_stderr(filter: &str, format: Format) -> anyhow::Result<()> {
    let colors = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt().with_env_filter(parse(filter)?).with_writer(io::stderr).with_ansi(colors);
    match format {
        Format::Text => log.init(),
        Format::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Logs to a writer, without colors. `filter` is the value of `--log-level`.
pub fn to_writer<W>(filter: &str, writer: W) -> anyhow::Result<()>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt().with_env_filter(parse(filter)?).with_writer(writer).with_ansi(false).init();
    Ok(())
}

fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(filter).with_context(|| format!("--log-level {filter}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_cannot_be_read_is_named_with_its_option() {
        assert!(parse("info,operator=debug").is_ok());
        assert_eq!(parse("info,=x=").unwrap_err().to_string(), "--log-level info,=x=");
    }
}
