//! Tables for the terminal: columns by display width, the last one wrapped to what is left of the line.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

const GAP: usize = 2;
const BOLD: Style = Style::new().bold();
/// The last column is not made narrower than this, whatever the terminal.
const NARROWEST: usize = 24;

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell { text: text.into(), style }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::styled(text, Style::new())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        number.to_string().into()
    }
}

/// The table with a line of headers. Colors are around words only, so that padding stays plain.
pub(crate) fn render(headers: &[&str], rows: &[Vec<Cell>], width: usize) -> String {
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width());
        cells.chain([headers[at].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headers.len()).map(widest).collect();
    let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
    let room = width.saturating_sub(before).max(NARROWEST);
    let header: Vec<Cell> = headers.iter().map(|header| Cell::styled(*header, BOLD)).collect();
    let mut text = String::new();
    for row in [&header].into_iter().chain(rows) {
        let Some((last, cells)) = row.split_last() else { continue };
        for (cell, width) in cells.iter().zip(&widths) {
            let blank = " ".repeat(width.saturating_sub(cell.text.width()) + GAP);
            text += &format!("{}{blank}", painted(&cell.text, cell.style));
        }
        for (number, line) in wrapped(&last.text, room).iter().enumerate() {
            let indent = if number == 0 { String::new() } else { " ".repeat(before) };
            text += &format!("{indent}{}\n", painted(line, last.style));
        }
    }
    // A column that is empty at the end of a line leaves nothing behind.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn painted(text: &str, style: Style) -> String {
    if style == Style::new() { text.to_owned() } else { format!("{style}{text}{style:#}") }
}

/// The lines of a text. A word that is wider than a line is not broken: it may have to be copied.
pub(crate) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.width() + 1 + word.width() <= room);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_aligned_by_display_width_and_the_last_one_is_wrapped() {
        let rows = vec![
            vec!["東京".into(), 7_usize.into(), "a text that does not fit into what is left of the line".into()],
            vec!["e\u{301}t".into(), Cell::styled("12", AnsiColor::Red.on_default()), "short".into()],
        ];
        let text = plain(&render(&["NAME", "N", "WHY"], &rows, 40));
        let expected = [
            "NAME  N   WHY",
            "東京  7   a text that does not fit into",
            "          what is left of the line",
            "e\u{301}t    12  short",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let colored = render(&["NAME", "N", "WHY"], &rows, 40);
        assert!(colored.contains("\u{1b}[31m12\u{1b}[0m  short"), "{colored:?}");
    }

    #[test]
    fn a_long_word_is_not_broken_and_nothing_is_one_empty_line() {
        let word = "x".repeat(50);
        assert_eq!(wrapped(&format!("a {word} b"), 20), ["a", word.as_str(), "b"]);
        assert_eq!(wrapped("", 20), [""]);
    }
}
