//! Printing for people and for pipes.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;

/// Prints to standard output. A pipe that was closed is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    match anstream::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("printing the result"),
        _ => Ok(()),
    }
}
