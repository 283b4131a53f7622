//! The end of a text of unknown length, in bounded memory.

/// Keeps the last bytes of what is pushed.
#[derive(Debug)]
pub(crate) struct Tail {
    limit: usize,
    bytes: Vec<u8>,
    /// How many bytes came before.
    lost: usize,
    /// The last one of them.
    last_lost: u8,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Tail { limit, bytes: Vec::new(), lost: 0, last_lost: 0 }
    }

    pub(crate) fn push(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
        // Twice the limit, so that bytes are moved seldom.
        if self.bytes.len() > 2 * self.limit {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.limit);
        if let Some(last) = self.bytes.drain(..excess).next_back() {
            self.last_lost = last;
        }
        self.lost += excess;
    }

    /// The text, from the beginning of a line. If something is missing, the first line says how much.
    pub(crate) fn into_text(mut self) -> String {
        self.shorten();
        if self.lost == 0 {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        let line = match self.last_lost {
            b'\n' => 0,
            _ => self.bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1),
        };
        let lost = self.lost + line;
        format!("[cut: {lost} older bytes are left out]\n{}", String::from_utf8_lossy(&self.bytes[line..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_and_the_cut_is_marked() {
        let cut = |lost: usize, rest: &str| format!("[cut: {lost} older bytes are left out]\n{rest}");
        for (case, text, limit, expected) in [
            ("short", "one\ntwo\n", 8, "one\ntwo\n".to_owned()),
            ("empty", "", 8, String::new()),
            ("a line too much", "one\ntwo\nthree\n", 10, cut(4, "two\nthree\n")),
            ("in the middle of a line", "one\ntwo\nthree\n", 9, cut(8, "three\n")),
            ("one long line", "0123456789", 4, cut(6, "6789")),
            ("in the middle of a letter", "ää", 3, cut(1, "\u{fffd}ä")),
        ] {
            for part in [1, 3, 100] {
                let mut tail = Tail::new(limit);
                text.as_bytes().chunks(part).for_each(|part| tail.push(part));
                assert!(tail.bytes.len() <= 2 * limit + part);
                assert_eq!(tail.into_text(), expected, "{case}, {part} bytes at once");
            }
        }
    }
}
