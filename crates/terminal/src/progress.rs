//! A bar on standard error, for work that takes a while. Only a terminal shows it.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::Terminal;

const WIDTH: usize = 30;
/// Fewer steps are not worth a bar.
const FEWEST: usize = 4;

/// Draws the bar for each call with how many of how many steps are done, from any thread, and removes it at the end.
pub fn progress_bar(terminal: Terminal, what: &'static str) -> impl Fn(usize, usize) + Sync {
    let most = AtomicUsize::new(0);
    move |done, all| {
        let Some(text) = drawn(terminal, what, done, all) else { return };
        // Locked before it is compared: a thread that is late does not draw what was removed.
        let mut stderr = io::stderr().lock();
        if most.fetch_max(done, Ordering::Relaxed) < done {
            let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        }
    }
}

fn drawn(terminal: Terminal, what: &str, done: usize, all: usize) -> Option<String> {
    if !terminal.progress || all < FEWEST {
        return None;
    }
    let full = WIDTH * done.min(all) / all;
    Some(if done >= all {
        "\r\x1b[K".to_owned()
    } else {
        format!("\r[{}{}] {done}/{all} {what}", "#".repeat(full), "-".repeat(WIDTH - full))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_how_far_it_is_and_nothing_else_does() {
        let terminal = Terminal { width: None, progress: true };
        let half = format!("\r[{}{}] 20/40 runs", "#".repeat(15), "-".repeat(15));
        assert_eq!(drawn(terminal, "runs", 20, 40), Some(half));
        assert_eq!(drawn(terminal, "runs", 40, 40).as_deref(), Some("\r\u{1b}[K"), "the line is empty again");
        assert_eq!(drawn(terminal, "runs", 1, 3), None, "too little to wait for");
        assert_eq!(drawn(Terminal::default(), "runs", 20, 40), None, "not a terminal");
    }
}
