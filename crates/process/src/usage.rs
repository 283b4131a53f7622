//! What this process uses of its machine, as the kernel counts it.

use std::{fs, time::Duration};

use crate::stat::Stat;

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
        let stat = Stat::read("self");
        Usage {
            started: stat.and_then(|stat| Some(booted()? + ticks(stat.started).as_secs_f64())),
            resident: stat.map(|stat| stat.resident_pages * page_size()),
            cpu: stat.map(|stat| ticks(stat.cpu)),
            open_files: open_files(),
        }
    }
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
    fn this_process_uses_memory_files_and_time() {
        let usage = Usage::read();
        assert!(usage.resident.unwrap() > 500_000);
        let before = usage.open_files.unwrap();
        // Other tests open and close a few meanwhile.
        let files: Vec<fs::File> = (0..100).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        assert!(Usage::read().open_files.unwrap() > before + 80);
        drop(files);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - usage.started.unwrap();
        assert!((-2.0..3600.0).contains(&age), "{age} s old");
        let start = Usage::read().cpu.unwrap();
        while Usage::read().cpu.unwrap() == start {}
    }
}
