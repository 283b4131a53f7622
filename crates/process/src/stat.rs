//! What the kernel tells of a process in `/proc/<pid>/stat`.

use std::fs;

/// Times are in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Whether it has ended, even if its parent has not waited for it yet.
    pub(crate) has_ended: bool,
    pub(crate) cpu: u64,
    /// Since the machine was started.
    pub(crate) started: u64,
    pub(crate) resident_pages: u64,
}

impl Stat {
    /// `process` is an id, or `self`. None if there is no such process, or no `/proc`.
    pub(crate) fn read(process: &str) -> Option<Stat> {
        parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }
}

fn parse(stat: &str) -> Option<Stat> {
    // The second field is the name of the program in parentheses, which may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |position: usize| fields.get(position)?.parse::<u64>().ok();
    Some(Stat {
        has_ended: matches!(*fields.first()?, "Z" | "X"),
        cpu: number(11)? + number(12)?,
        started: number(19)?,
        resident_pages: number(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_whatever_the_program_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 4 0 123456 1000000 2048 184467";
        let expected = Stat { has_ended: false, cpu: 200, started: 123_456, resident_pages: 2048 };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse(&stat.replace(") S", ") Z")), Some(Stat { has_ended: true, ..expected }));
        assert_eq!(parse(""), None);
        assert_eq!(parse("7 (a) S 1"), None);
    }
}
