//! The log of a program, and its level, which can be changed while the program runs.

use std::{
    fmt,
    io::{self, IsTerminal},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, ensure};
use tracing_subscriber::{EnvFilter, filter::LevelFilter, fmt::MakeWriter, reload};

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

impl Format {
    /// Text for people at a terminal, JSON for everything that collects logs.
    pub fn of_stderr() -> Format {
        if io::stderr().is_terminal() { Format::Text } else { Format::Json }
    }
}

/// The level of the log: a filter as `--log-level` takes it.
pub struct LogLevel {
    filter: Mutex<String>,
    reload: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
}

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogLevel {}", self.get())
    }
}

impl LogLevel {
    pub fn get(&self) -> String {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Filters all lines from now on. A filter that cannot be read changes nothing.
    pub fn set(&self, filter: &str) -> anyhow::Result<()> {
        let filter = filter.trim();
        let parsed = filter_of(filter).with_context(|| format!("the filter {filter}"))?;
        let mut current = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        (self.reload)(parsed).context("changing the filter of the log")?;
        filter.clone_into(&mut current);
        Ok(())
    }
}

/// Logs to standard error, with colors if that is a terminal. `filter` is the value of `--log-level`.
pub fn to_stderr(filter: &str, format: Format) -> anyhow::Result<LogLevel> {
    let colors = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt().with_env_filter(parse(filter)?).with_writer(io::stderr).with_ansi(colors);
    let filter = Mutex::new(filter.to_owned());
    match format {
        Format::Text => {
            let log = log.with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            Ok(LogLevel { filter, reload: Box::new(move |new| handle.reload(new)) })
        }
        Format::Json => {
            let log = log.json().flatten_event(true).with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            Ok(LogLevel { filter, reload: Box::new(move |new| handle.reload(new)) })
        }
    }
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
    filter_of(filter).with_context(|| format!("--log-level {filter}"))
}

/// A directive that is a mistyped level would be taken for a target, and silence everything else.
fn filter_of(filter: &str) -> anyhow::Result<EnvFilter> {
    let directives: Vec<&str> = filter.split(',').map(str::trim).filter(|directive| !directive.is_empty()).collect();
    ensure!(!directives.is_empty(), "the filter is empty");
    for directive in &directives {
        ensure!(
            directive.contains('=') || directive.parse::<LevelFilter>().is_ok(),
            "{directive} is none of error, warn, info, debug, trace and off; the level of a part is given as part=level"
        );
    }
    Ok(EnvFilter::try_new(directives.join(","))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_cannot_be_read_is_named_with_its_option() {
        assert!(parse("info,operator=debug").is_ok());
        assert_eq!(parse("info,=x=").unwrap_err().to_string(), "--log-level info,=x=");
    }

    /// `warning` would be the name of a target, and nothing else would be logged.
    #[test]
    fn a_mistyped_level_is_refused_and_the_levels_are_named() {
        for right in ["error", "WARN", "info", "debug", "trace", "off", "warn,kube_io=debug", "kube_io=off, info"] {
            assert!(parse(right).is_ok(), "{right}");
        }
        for wrong in ["warning", "verbose", "kube_io", "info,operator", "warn,err"] {
            let error = format!("{:#}", parse(wrong).unwrap_err());
            assert!(error.starts_with(&format!("--log-level {wrong}: ")), "{error}");
            assert!(error.contains("error, warn, info, debug, trace and off"), "{error}");
        }
    }

    #[test]
    fn the_level_changes_while_the_program_runs_and_a_wrong_one_changes_nothing() {
        let level = to_stderr("warn", Format::Json).unwrap();
        assert_eq!(level.get(), "warn");
        level.set(" info,kube_io=debug\n").unwrap();
        assert_eq!(level.get(), "info,kube_io=debug");
        for wrong in ["", "info,=x=", "kube_io=loud", "warning"] {
            assert!(level.set(wrong).is_err(), "{wrong}");
        }
        assert_eq!(level.get(), "info,kube_io=debug");
    }
}
