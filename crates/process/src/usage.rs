//! What this process uses of its machine, as the kernel counts it.

use std::{fs, time::Duration};

/// Resources of this process. What cannot be read is missing: there is no `/proc` on other systems than Linux.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// When it started, in seconds since 1970.
    pub started: Option<f64>,
    /// Bytes in RAM.
    pub resident: Option<u64>,
    pub cpu: Option<Duration>,
    pub open_files: Option<u64>,
}

impl Usage {
    pub fn read() -> Usage {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let fields = stat.as_deref().and_then(fields);
        Usage {
            started: fields.and_then(|fields| Some(booted()? + ticks(fields.started).as_secs_f64())),
            resident: fields.map(|fields| fields.resident_pages * page_size()),
            cpu: fields.map(|fields| ticks(fields.cpu)),
            open_files: open_files(),
        }
    }
}

/// The fields of `/proc/self/stat` that are used. Times are in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    cpu: u64,
    /// Since the machine was started.
    started: u64,
    resident_pages: u64,
}

fn fields(stat: &str) -> Option<Fields> {
    // The second field is the name of the program in parentheses, which may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |position: usize| fields.get(position)?.parse::<u64>().ok();
    Some(Fields { cpu: number(11)? + number(12)?, started: number(19)?, resident_pages: number(21)? })
}

fn ticks(count: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(count.saturating_mul(1000) / per_second)
}

fn page_size() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// When the machine was started, in seconds since 1970.
fn booted() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn open_files() -> Option<u64> {
    // The folder itself is open while it is read.
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(count.saturating_sub(1)).ok()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn the_fields_are_found_whatever_the_program_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 4 0 123456 1000000 2048 184467";
        assert_eq!(fields(stat), Some(Fields { cpu: 200, started: 123_456, resident_pages: 2048 }));
        assert_eq!(fields(""), None);
        assert_eq!(fields("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_uses_memory_files_and_time() {
        let usage = Usage::read();
        assert!(usage.resident.unwrap() > 500_000);
        let before = usage.open_files.unwrap();
        let file = fs::File::open("/proc/self/stat").unwrap();
        assert!(Usage::read().open_files.unwrap() > before.saturating_sub(2));
        drop(file);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - usage.started.unwrap();
        assert!((-2.0..3600.0).contains(&age), "{age} s old");
        let start = Usage::read().cpu.unwrap();
        while Usage::read().cpu.unwrap() == start {}
    }
}
