//! Paragraphs for the terminal.

use anstyle::{AnsiColor, Style};
use terminal::table;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Text is not made narrower than this, whatever the terminal.
const NARROWEST: usize = 30;
/// Of lines that go on with the one above.
pub(crate) const INDENT: usize = 3;

/// The text in lines that fit, each behind blanks.
pub(crate) fn indented(text: &str, indent: usize, width: usize) -> String {
    hanging(&" ".repeat(indent), text, indent, width)
}

/// The text in lines that fit: the first one behind `label`, the others behind as many blanks.
pub(crate) fn hanging(label: &str, text: &str, indent: usize, width: usize) -> String {
    painted(label, text, Style::new(), indent, width)
}

/// The same with the text in a color.
pub(crate) fn painted(label: &str, text: &str, style: Style, indent: usize, width: usize) -> String {
    let lines = table::wrapped(text, width.saturating_sub(indent).max(NARROWEST));
    let line = |(number, line): (usize, &String)| {
        let before = if number == 0 { label } else { "" };
        let blank = " ".repeat(indent.saturating_sub(table::columns(before)));
        format!("{before}{blank}{style}{line}{style:#}\n")
    };
    lines.iter().enumerate().map(line).collect()
}

/// A text that begins at the margin, and whose other lines are behind blanks. It may have colors, so what others have written is
/// made visible by the caller.
pub(crate) fn outdented(text: &str, width: usize) -> String {
    let room = if table::columns(text) <= width { width } else { width.saturating_sub(INDENT) };
    table::filled(text.split_whitespace(), room.max(NARROWEST)).join(&format!("\n{}", " ".repeat(INDENT))) + "\n"
}

/// A command behind blanks, in lines that a shell joins again. A word of it is not broken.
pub(crate) fn command(text: &str, indent: usize, width: usize) -> String {
    const CONTINUED: &str = " \\";
    let blank = " ".repeat(indent);
    if indent + table::columns(text) <= width {
        return format!("{blank}{text}\n");
    }
    let mut is_quoted = false;
    // What stands in quotes is one word, with its blanks.
    let words = text.split(|letter| {
        is_quoted ^= letter == '\'';
        letter == ' ' && !is_quoted
    });
    let lines = table::filled(words, width.saturating_sub(indent + INDENT + CONTINUED.len()).max(NARROWEST));
    format!("{blank}{}\n", lines.join(&format!("{CONTINUED}\n{blank}{}", " ".repeat(INDENT))))
}

/// A title and its lines; nothing without lines.
pub(crate) fn section(title: &str, lines: impl IntoIterator<Item = String>, width: usize) -> String {
    let lines: String = lines.into_iter().map(|line| indented(&line, INDENT, width)).collect();
    if lines.is_empty() { lines } else { format!("\n{BOLD}{title}{BOLD:#}\n{lines}") }
}

pub(crate) fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hang_behind_their_label() {
        assert_eq!(
            hanging("  why", "one two three four five six seven", 8, 38),
            "  why   one two three four five six\n        seven\n"
        );
        assert_eq!(section("Notes", [], 80), "");
        assert_eq!(hanging(&format!("{BOLD}ö{BOLD:#}"), "text", 3, 38), "\u{1b}[1mö\u{1b}[0m  text\n");
    }

    #[test]
    fn a_command_of_several_lines_is_still_one() {
        let text = "kubectl patch machineconfigpool worker --type=merge -p '{\"spec\":{\"paused\":true}}'";
        assert_eq!(command(text, 3, 90), format!("   {text}\n"));
        assert_eq!(
            command(text, 3, 60),
            "   kubectl patch machineconfigpool worker --type=merge \\\n      -p '{\"spec\":{\"paused\":true}}'\n"
        );
        assert_eq!(command("echo 'a  b' c", 0, 10), "echo 'a  b' c\n");
        let quoted = format!("echo '{}  {}'", "a".repeat(20), "b".repeat(20));
        assert_eq!(command(&quoted, 0, 40), quoted.replacen(' ', " \\\n   ", 1) + "\n");
    }
}
