//! What the terminal can show.

use std::io::{self, IsTerminal};

use terminal_size::{Height, Width};

/// Where nobody says how wide the terminal is.
const WIDTH: usize = 80;

/// The columns for a text: those that COLUMNS names, or else those of the terminal.
pub fn width() -> usize {
    let measured = terminal_size::terminal_size().map(|(Width(width), _)| usize::from(width));
    width_of(std::env::var("COLUMNS").ok().as_deref(), measured)
}

/// A width of 0 says nothing.
fn width_of(named: Option<&str>, measured: Option<usize>) -> usize {
    let named = named.and_then(|columns| columns.parse::<usize>().ok());
    let known = [named, measured].into_iter().flatten().find(|columns| *columns > 0);
    known.unwrap_or(WIDTH).clamp(40, 200)
}

/// The lines of the terminal, if there is one.
pub fn height() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, Height(height))| usize::from(height)).filter(|height| *height > 0)
}

/// What is known of the terminal that results are shown on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    /// How many characters fit in a line, if there is a limit.
    pub width: Option<usize>,
    /// Whether progress is shown, on standard error.
    pub progress: bool,
}

impl Terminal {
    /// The terminal of this process. A pipe has no limit: it gets whole tables.
    pub fn of_this_process() -> Self {
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width));
        Terminal { width, progress: io::stderr().is_terminal() }
    }
}

/// Which characters the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signs {
    Unicode,
    Ascii,
}

/// The first of these variables that is set says which characters there are.
pub fn signs() -> Signs {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    signs_of(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).as_deref())
}

fn signs_of(locale: Option<&str>) -> Signs {
    let locale = locale.unwrap_or_default().to_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") { Signs::Unicode } else { Signs::Ascii }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_the_named_one_else_the_measured_one_and_never_nothing() {
        for (named, measured, expected) in [
            (Some("120"), Some(90), 120),
            (Some("0"), Some(90), 90),
            (Some("wide"), Some(90), 90),
            (None, Some(0), WIDTH),
            (Some("0"), None, WIDTH),
            (Some("10"), None, 40),
        ] {
            assert_eq!(width_of(named, measured), expected, "{named:?} {measured:?}");
        }
    }

    #[test]
    fn signs_beyond_ascii_are_shown_where_the_locale_has_them() {
        for (locale, expected) in [
            (Some("en_US.UTF-8"), Signs::Unicode),
            (Some("C.utf8"), Signs::Unicode),
            (Some("C"), Signs::Ascii),
            (None, Signs::Ascii),
        ] {
            assert_eq!(signs_of(locale), expected, "{locale:?}");
        }
    }
}
