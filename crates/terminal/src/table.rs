//! Tables for the terminal: columns by display width, the last one wrapped to what is left of the line, or below it.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

pub(crate) const GAP: usize = 2;
pub(crate) const BOLD: Style = Style::new().bold();
/// The last column is not made narrower than this for a text that is wider.
const NARROWEST: usize = 32;
/// Of lines below the first one of a row.
const INDENT: usize = 3;

#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell { text: text.into(), style }
    }

    /// Line breaks are blanks in a cell.
    fn visible(&self) -> Self {
        Cell { text: visible(&self.text.replace(['\n', '\r'], " ")), style: self.style }
    }
}

/// The text with everything that a terminal would act on in a readable form, so that nobody else controls what is on the screen. Blanks
/// stay, tabs too.
pub fn visible(text: &str) -> String {
    // Marks that change the direction of writing hide text as well as escapes do.
    let acts = |letter: char| {
        letter.is_control() && letter != '\t'
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let shown = |letter: char| if acts(letter) { letter.escape_default().to_string() } else { letter.to_string() };
    text.chars().map(shown).collect()
}

/// The same with its lines.
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
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

/// Where the cells of a row stand. A row that is too wide gets several lines, so that no name is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// The first cell is a line of its own.
    first_alone: bool,
    /// The last cell is lines of its own.
    last_alone: bool,
}

impl Layout {
    const ONE_LINE: Layout = Layout { first_alone: false, last_alone: false };
    const FIRST_ALONE: Layout = Layout { first_alone: true, last_alone: false };
    const LAST_ALONE: Layout = Layout { first_alone: false, last_alone: true };
    const BOTH_ALONE: Layout = Layout { first_alone: true, last_alone: true };

    fn of(widths: &[usize], width: usize) -> Self {
        // A text is easier to read below the rest, and a number beside it.
        let is_text = widths.last().is_some_and(|last| *last > NARROWEST);
        let next = if is_text { Layout::LAST_ALONE } else { Layout::FIRST_ALONE };
        [Layout::ONE_LINE, next].into_iter().find(|layout| layout.fits(widths, width)).unwrap_or(Layout::BOTH_ALONE)
    }

    fn fits(self, widths: &[usize], width: usize) -> bool {
        let last = widths.last().copied().unwrap_or(0);
        match self.last_alone {
            true => self.before(widths).saturating_sub(GAP) <= width,
            false => self.before(widths) + last.min(NARROWEST) <= width,
        }
    }

    /// The columns up to the last cell.
    fn before(self, widths: &[usize]) -> usize {
        let first = usize::from(self.first_alone);
        let others = widths.split_last().map_or(&[][..], |(_, others)| others);
        let indent = if self.first_alone { INDENT } else { 0 };
        indent + others.iter().skip(first).map(|width| width + GAP).sum::<usize>()
    }

    fn row(self, row: &[Cell], widths: &[usize], width: usize) -> String {
        let Some((last, mut cells)) = row.split_last() else { return String::new() };
        let (mut text, mut widths_left) = (String::new(), widths);
        if let (true, Some((first, others))) = (self.first_alone, cells.split_first()) {
            text += &format!("{}\n{}", painted(&first.text, first.style), " ".repeat(INDENT));
            (cells, widths_left) = (others, &widths[1..]);
        }
        for (cell, width) in cells.iter().zip(widths_left) {
            let blank = " ".repeat(width.saturating_sub(cell.text.width()) + GAP);
            text += &format!("{}{blank}", painted(&cell.text, cell.style));
        }
        let before = if self.last_alone { INDENT } else { self.before(widths) };
        for (number, line) in wrapped(&last.text, width.saturating_sub(before).max(NARROWEST)).iter().enumerate() {
            match (self.last_alone, number) {
                (true, _) if line.is_empty() => {}
                (true, _) => text += &format!("\n{}", " ".repeat(before)),
                (false, 0) => {}
                (false, _) => text += &format!("\n{}", " ".repeat(before)),
            }
            text += &painted(line, last.style);
        }
        text + "\n"
    }
}

/// The table with a line of headers. Colors are around words only, so that padding stays plain.
pub fn render(headers: &[&str], rows: &[Vec<Cell>], width: usize) -> String {
    let rows = &visible_rows(rows);
    let widths = widths(headers, rows);
    in_layout(Layout::of(&widths, width), headers, rows, &widths, width)
}

/// The table with the last column below the others.
pub fn with_text_below(headers: &[&str], rows: &[Vec<Cell>], width: usize) -> String {
    let rows = &visible_rows(rows);
    let widths = widths(headers, rows);
    let fits = Layout::LAST_ALONE.fits(&widths, width);
    in_layout(if fits { Layout::LAST_ALONE } else { Layout::BOTH_ALONE }, headers, rows, &widths, width)
}

fn visible_rows(rows: &[Vec<Cell>]) -> Vec<Vec<Cell>> {
    rows.iter().map(|row| row.iter().map(Cell::visible).collect()).collect()
}

fn widths(headers: &[&str], rows: &[Vec<Cell>]) -> Vec<usize> {
    let widest = |(at, header): (usize, &&str)| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width());
        cells.chain([header.width()]).max().unwrap_or(0)
    };
    headers.iter().enumerate().map(widest).collect()
}

fn in_layout(layout: Layout, headers: &[&str], rows: &[Vec<Cell>], widths: &[usize], width: usize) -> String {
    let header: Vec<Cell> = headers.iter().map(|header| Cell::styled(*header, BOLD)).collect();
    let text: String = [&header].into_iter().chain(rows).map(|row| layout.row(row, widths, width)).collect();
    // A column that is empty at the end of a line leaves nothing behind.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn painted(text: &str, style: Style) -> String {
    if style == Style::new() || text.is_empty() { text.to_owned() } else { format!("{style}{text}{style:#}") }
}

/// The columns of a text, which may have colors. Wide characters have two, combining characters none.
pub fn columns(text: &str) -> usize {
    anstream::adapter::strip_str(text).map(UnicodeWidthStr::width).sum()
}

/// The lines of a text. A word that is wider than a line is not broken: it may have to be copied.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    let words: Vec<String> = text.split_whitespace().map(visible).collect();
    filled(words.iter().map(String::as_str), room)
}

/// Lines of these words.
pub fn filled<'a>(words: impl IntoIterator<Item = &'a str>, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words {
        let line = lines.last_mut().filter(|line| line.is_empty() || columns(line) + 1 + columns(word) <= room);
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
        let text = plain(&render(&["NAME", "N", "WHY"], &rows, 44));
        let expected = [
            "NAME  N   WHY",
            "東京  7   a text that does not fit into what",
            "          is left of the line",
            "e\u{301}t    12  short",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let colored = render(&["NAME", "N", "WHY"], &rows, 44);
        assert!(colored.contains("\u{1b}[31m12\u{1b}[0m  short"), "{colored:?}");
    }

    #[test]
    fn a_row_that_is_too_wide_gets_several_lines() {
        let name = "worker-0.cluster.example.com";
        let why = "node of a hosted cluster: the drain waits until its own controller takes it away";
        let text = |rows: &[Vec<Cell>], width| plain(&render(&["NODE", "ZONE", "WHY"], rows, width));
        let rows = [vec![name.into(), "a".into(), why.into()], vec!["x".into(), "eu-1".into(), "".into()]];
        assert_eq!(
            text(&rows, 60),
            "NODE                          ZONE\n   WHY\nworker-0.cluster.example.com  a\n   \
             node of a hosted cluster: the drain waits until its own\n   controller takes it away\n\
             x                             eu-1\n"
        );
        let rows = [vec![name.into(), "a".into(), "at least 2m".into()]];
        assert_eq!(text(&rows, 40), "NODE\n   ZONE  WHY\nworker-0.cluster.example.com\n   a     at least 2m\n");
    }

    #[test]
    fn what_others_have_written_does_not_reach_the_terminal_as_an_escape() {
        let evil = "a\u{1b}]0;x\u{7} b\u{9b}2J\u{202e}c\rd";
        assert_eq!(wrapped(evil, 80), ["a\\u{1b}]0;x\\u{7} b\\u{9b}2J\\u{202e}c d"]);
        let table = render(&["A", "B"], &[vec!["x\u{1b}[2J\ny".into(), evil.into()]], 80);
        assert!(!table.contains("\u{1b}[2J") && !table.contains(['\u{7}', '\u{9b}', '\u{202e}']), "{table:?}");
        assert_eq!(table.lines().count(), 2, "{table}");
        assert_eq!(visible_lines("a\r\n\tb"), "a\\r\n\tb");
    }

    #[test]
    fn a_long_word_is_not_broken_and_nothing_is_one_empty_line() {
        let word = "x".repeat(50);
        assert_eq!(wrapped(&format!("a {word} b"), 20), ["a", word.as_str(), "b"]);
        assert_eq!(wrapped("", 20), [""]);
    }

    #[test]
    fn colors_take_no_room() {
        let bold = format!("{BOLD}Pool wörker{BOLD:#}: 東京");
        assert_eq!(columns(&bold), 17);
        assert_eq!(filled(bold.split_whitespace(), 17).len(), 1);
    }
}
