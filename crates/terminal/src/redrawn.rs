//! A screen that is redrawn in place.

use std::io::{self, Write};

use crate::height;

const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
/// A line that is too long is cut off and does not become two.
const NO_WRAP: &str = "\u{1b}[?7l";
const WRAP: &str = "\u{1b}[?7h";
/// Another screen than that of the shell, and back.
const ENTER_ALTERNATE: &str = "\u{1b}[?1049h";
const LEAVE_ALTERNATE: &str = "\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_REST: &str = "\u{1b}[J";

/// The terminal of standard output. It is as before when this is dropped.
#[derive(Debug)]
pub struct RedrawnScreen {
    is_alternate: bool,
}

impl RedrawnScreen {
    /// What was drawn last stays there at the end.
    pub fn in_place() -> Self {
        RedrawnScreen { is_alternate: false }
    }

    /// Nothing stays at the end.
    pub fn alternate() -> Self {
        let _ = io::stdout().write_all(ENTER_ALTERNATE.as_bytes());
        RedrawnScreen { is_alternate: true }
    }

    /// Replaces what is on the screen. Colors are left out where nobody wants them.
    pub fn draw(&self, text: &str) -> io::Result<()> {
        let frame = match anstream::stdout().current_choice() {
            anstream::ColorChoice::Never => frame(&anstream::adapter::strip_str(text).to_string(), height()),
            _ => frame(text, height()),
        };
        let mut out = io::stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}

impl Drop for RedrawnScreen {
    fn drop(&mut self) {
        let leave = if self.is_alternate { LEAVE_ALTERNATE } else { "" };
        let mut out = io::stdout().lock();
        let _ = write!(out, "{WRAP}{SHOW_CURSOR}{leave}").and_then(|()| out.flush());
    }
}

/// What is written to replace the screen. Where not all lines fit, the last one is shown nevertheless.
fn frame(text: &str, height: Option<usize>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = height.unwrap_or(usize::MAX).saturating_sub(1).max(2);
    let shown: Vec<&str> = match lines.as_slice() {
        lines if lines.len() <= room => lines.to_vec(),
        [first @ .., last] => first.iter().take(room - 1).chain([last]).copied().collect(),
        [] => Vec::new(),
    };
    let lines: String = shown.iter().map(|line| format!("{line}{CLEAR_LINE}\r\n")).collect();
    format!("{HIDE_CURSOR}{NO_WRAP}{HOME}{lines}{CLEAR_REST}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_screen_and_keeps_its_last_line() {
        let frame = |text: &str, height| frame(text, height).replace('\u{1b}', "^");
        assert_eq!(frame("a\nb\nat\n", Some(10)), "^[?25l^[?7l^[Ha^[K\r\nb^[K\r\nat^[K\r\n^[J");
        assert_eq!(frame("a\nb\nat\n", None), frame("a\nb\nat\n", Some(10)), "as much as there is");
        assert_eq!(frame("a\nb\nc\nat\n", Some(4)), "^[?25l^[?7l^[Ha^[K\r\nb^[K\r\nat^[K\r\n^[J", "it does not scroll");
        assert_eq!(frame("", Some(4)), "^[?25l^[?7l^[H^[J");
    }
}
