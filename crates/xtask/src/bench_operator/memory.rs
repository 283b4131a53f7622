//! The memory of a process: its own, and pages of files, which the kernel can take back at any time.

use std::fmt;

use anyhow::Context;
use devcluster::RunningProgram;

/// Resident memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    own: u64,
    files: u64,
}

impl Memory {
    pub(super) fn of(program: &RunningProgram) -> anyhow::Result<Memory> {
        let pid = program.pid();
        let read = process::Memory::read(pid).with_context(|| format!("reading the memory of process {pid}"))?;
        let (own, files) = read.own.zip(read.files).with_context(|| format!("process {pid} has ended"))?;
        Ok(Memory { own, files })
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (own, files) = (mebibytes(self.own), mebibytes(self.files));
        write!(f, "{:.1} MiB ({own:.1} RssAnon, {files:.1} RssFile)", own + files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_with_what_the_kernel_can_take_back() {
        let memory = Memory { own: 8 << 20, files: 12 << 20 };
        assert_eq!(memory.to_string(), "20.0 MiB (8.0 RssAnon, 12.0 RssFile)");
    }
}
