//! Tables with one line for each row. Long texts are cut in the middle, then columns are left out from the right.

use unicode_width::UnicodeWidthChar;

use crate::table::{BOLD, GAP, columns};

/// The least width that a text is cut to.
const SHORTEST: usize = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Debug, Default)]
pub struct CompactTable {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl CompactTable {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Renders the table with at most this width, if it is given.
    pub fn render(&self, width: Option<usize>) -> String {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, (header, _))| {
                let widest = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max();
                widest.unwrap_or(0).max(columns(header))
            })
            .collect();
        let mut shown = widths.len();
        if let Some(width) = width {
            let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            while total(&widths[..shown]) > width {
                let text = |at: &usize| self.columns[*at].1 == Align::Left && widths[*at] > SHORTEST;
                let over = total(&widths[..shown]) - width;
                match (0..shown).filter(text).max_by_key(|at| widths[*at]) {
                    Some(longest) => widths[longest] -= over.min(widths[longest] - SHORTEST),
                    None if shown > 1 => shown -= 1,
                    None => break,
                }
            }
        }
        let headers: Vec<String> = self.columns.iter().map(|(header, _)| (*header).to_owned()).collect();
        let mut text = format!("{BOLD}{}{BOLD:#}\n", self.line(&headers, &widths[..shown]));
        for row in &self.rows {
            text += &self.line(row, &widths[..shown]);
            text.push('\n');
        }
        if shown < widths.len() {
            let hidden: Vec<&str> = self.columns[shown..].iter().map(|(header, _)| *header).collect();
            text += &format!("Too narrow for {}; -o json has all.\n", hidden.join(", "));
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut text = String::new();
        for (at, width) in widths.iter().enumerate() {
            let cell = cut(cells.get(at).map_or("", String::as_str), *width);
            text += &pad(&cell, *width, self.columns[at].1);
            if at + 1 < widths.len() {
                text += &" ".repeat(GAP);
            }
        }
        text.trim_end().to_owned()
    }
}

/// The text with spaces up to this width. A text that is wider stays as it is.
pub fn pad(text: &str, width: usize, align: Align) -> String {
    let spaces = " ".repeat(width.saturating_sub(columns(text)));
    match align {
        Align::Left => format!("{text}{spaces}"),
        Align::Right => format!("{spaces}{text}"),
    }
}

/// Cuts the middle, because names often differ at their end.
fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept / 2, kept - kept / 2);
    let head: String = within(text.chars(), head).collect();
    let tail: Vec<char> = within(text.chars().rev(), tail).collect();
    // A combining character without its base would join the ellipsis.
    let tail = tail.into_iter().rev().skip_while(|c| c.width() == Some(0));
    head.chars().chain(['…']).chain(tail).collect()
}

/// The first characters that fit the width.
fn within(characters: impl Iterator<Item = char>, width: usize) -> impl Iterator<Item = char> {
    characters.scan(0, move |used, c| {
        *used += c.width().unwrap_or(0);
        (*used <= width).then_some(c)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> CompactTable {
        let mut table =
            CompactTable::new(&[("NAME", Align::Left), ("STEPS", Align::Right), ("BYTES MOVED", Align::Right)]);
        table.row(vec!["a name that is rather long".into(), "7".into(), "1.2 GB".into()]);
        table.row(vec!["short".into(), "1234".into(), "0 B".into()]);
        table
    }

    fn plain(text: &str) -> String {
        text.replace(&BOLD.render().to_string(), "").replace(&BOLD.render_reset().to_string(), "")
    }

    #[test]
    fn columns_are_aligned() {
        let text = plain(&table().render(None));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "NAME                        STEPS  BYTES MOVED");
        assert_eq!(lines[2], "short                        1234          0 B");
    }

    #[test]
    fn a_table_fits_by_cutting_texts_first_and_leaving_out_columns_then() {
        for width in 8..60 {
            let text = plain(&table().render(Some(width)));
            let rows = text.lines().filter(|line| !line.starts_with("Too narrow"));
            let widest = rows.map(columns).max().unwrap();
            assert!(widest <= width.max(SHORTEST), "{width}: {text}");
        }
        assert!(plain(&table().render(Some(40))).contains("a name th…ather long"));
        assert!(plain(&table().render(Some(25))).contains("Too narrow for BYTES MOVED; -o json has all.\n"));
    }

    /// `東京` has two wide characters, and `e\u{301}` is one `é`.
    #[test]
    fn wide_and_combining_characters_are_aligned_and_cut_by_their_width() {
        assert_eq!((columns("東京"), columns("e\u{301}a"), columns("▲ é")), (4, 2, 3));
        assert_eq!([pad("東京", 6, Align::Left), pad("東京", 6, Align::Right)], ["東京  ", "  東京"]);
        assert_eq!(pad("東京", 3, Align::Left), "東京");
        let mut table = CompactTable::new(&[("NAME", Align::Left), ("STEPS", Align::Right)]);
        for name in ["東京", "e\u{301}t", "plain"] {
            table.row(vec![name.into(), "7".into()]);
        }
        let text = plain(&table.render(None));
        assert_eq!(text.lines().map(columns).collect::<Vec<_>>(), [12; 4], "{text}");
        assert_eq!(cut("東京都千代田区", 8), "東…田区", "a wide character that does not fit is left out");
        assert_eq!(cut("ae\u{301}bcdefghi", 6), "ae\u{301}…ghi");
        assert_eq!(cut("abcdefgh京\u{301}i", 4), "a…i", "no mark without its base");
    }
}
