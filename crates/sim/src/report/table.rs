//! Tables that fit the terminal: aligned, long texts cut in the middle, and columns left out from the right where it is too narrow.

use anstyle::Style;

const BOLD: Style = Style::new().bold();
const GAP: usize = 2;
/// A text is not cut shorter than this.
const SHORTEST: usize = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// At most `width` wide, where it is given.
    pub fn render(&self, width: Option<usize>) -> String {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, (header, _))| {
                let longest = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| length(cell)).max();
                longest.unwrap_or(0).max(length(header))
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
            let padding = " ".repeat(width.saturating_sub(length(&cell)));
            match self.columns[at].1 {
                Align::Left => text += &format!("{cell}{padding}"),
                Align::Right => text += &format!("{padding}{cell}"),
            }
            if at + 1 < widths.len() {
                text += &" ".repeat(GAP);
            }
        }
        text.trim_end().to_owned()
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The middle goes: what tells names apart is often at their end.
fn cut(text: &str, width: usize) -> String {
    let length = length(text);
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept / 2, kept - kept / 2);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("NAME", Align::Left), ("STEPS", Align::Right), ("BYTES MOVED", Align::Right)]);
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
            let widest = rows.map(length).max().unwrap();
            assert!(widest <= width.max(SHORTEST), "{width}: {text}");
        }
        assert!(plain(&table().render(Some(40))).contains("a name th…ather long"));
        assert!(plain(&table().render(Some(25))).contains("Too narrow for BYTES MOVED; -o json has all.\n"));
    }
}
