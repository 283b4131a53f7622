//! The memory of a process, as the kernel tells it in `/proc/<pid>/status`.

use std::{fs, io};

/// In bytes. A process that has ended has no memory, although its parent may not have waited for it yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// What is in RAM now.
    pub resident: Option<u64>,
    /// The most that was in RAM so far.
    pub peak: Option<u64>,
    /// What is in RAM now and is the process's own.
    pub own: Option<u64>,
    /// Pages of files in RAM now, which the kernel can take back at any time.
    pub files: Option<u64>,
}

impl Memory {
    /// An error if there is no such process, or no `/proc`.
    pub fn read(pid: u32) -> io::Result<Memory> {
        Ok(parse(&fs::read_to_string(format!("/proc/{pid}/status"))?))
    }
}

fn parse(status: &str) -> Memory {
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    };
    Memory { resident: value("VmRSS"), peak: value("VmHWM"), own: value("RssAnon"), files: value("RssFile") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_bytes_and_missing_for_a_process_that_has_ended() {
        let running = parse("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t 8 kB\nRssFile:\t 4 kB\n");
        assert_eq!(
            running,
            Memory { resident: Some(1 << 20), peak: Some(2 << 20), own: Some(8 << 10), files: Some(4 << 10) }
        );
        assert_eq!(
            parse("Name:\tx\nState:\tZ (zombie)\n"),
            Memory { resident: None, peak: None, own: None, files: None }
        );
        assert!(Memory::read(std::process::id()).unwrap().resident.unwrap() > 500_000);
    }
}
