//! Printing for people and for pipes.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Context;

/// What is known of the terminal that results are shown on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Terminal {
    /// How many characters fit in a line, if there is a limit.
    pub(crate) width: Option<usize>,
    /// Whether progress is shown, on standard error.
    pub(crate) progress: bool,
}

impl Terminal {
    /// The terminal of this process. A pipe has no limit: it gets whole tables.
    pub(crate) fn of_this_process() -> Self {
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        Self { width, progress: io::stderr().is_terminal() }
    }
}

/// Prints to standard output. A pipe that was closed is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match anstream::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("printing"),
        _ => Ok(()),
    }
}
