//! The logs of our own parts. They share a process, and each has its own log file.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The part that each module belongs to. The first match counts.
const MODULES: [(&str, &str); 6] = [
    ("lab_parts::vm", "vm-controller"),
    ("lab_parts::webhook", "eviction-webhook"),
    ("lab_parts::exporter", "metrics-exporter"),
    ("lab_parts::soft_tainter", "soft-tainter"),
    ("standins::descheduler", "descheduler-operator"),
    ("standins::machine_config", "machine-config-operator"),
];
/// The log of all other modules.
const REST: &str = "lab";

fn part_of(module: Option<&str>) -> &'static str {
    let module = module.unwrap_or_default();
    let is_in = |of: &str| module.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    MODULES.into_iter().find(|(of, _)| is_in(of)).map_or(REST, |(_, part)| part)
}

pub(super) fn path(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}.log"))
}

/// Lines that are written before the files are open are dropped.
#[derive(Debug, Clone, Default)]
pub struct PartLogs(Arc<Mutex<BTreeMap<&'static str, File>>>);

impl PartLogs {
    pub(super) fn open(&self, folder: &Path) -> io::Result<()> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for part in MODULES.iter().map(|(_, part)| *part).chain([REST]) {
            files.insert(part, OpenOptions::new().create(true).append(true).open(path(folder, part))?);
        }
        Ok(())
    }

    /// Writes a line of a module to the log of its part.
    pub fn write(&self, module: Option<&str>, line: &[u8]) -> io::Result<()> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.get_mut(part_of(module)).map_or(Ok(()), |file| file.write_all(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_belongs_to_a_part() {
        for (module, part) in [
            (Some("lab_parts::vm::controller"), "vm-controller"),
            (Some("lab_parts::vmm"), "lab"),
            (Some("lab_parts::soft_tainter::controller"), "soft-tainter"),
            (Some("standins::descheduler::controller"), "descheduler-operator"),
            (Some("kube::client"), "lab"),
            (None, "lab"),
        ] {
            assert_eq!(part_of(module), part, "{module:?}");
        }
    }

    #[test]
    fn each_part_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let logs = PartLogs::default();
        logs.write(Some("lab_parts::vm"), b"too early\n").unwrap();
        logs.open(folder.path()).unwrap();
        logs.write(Some("lab_parts::vm::handle"), b"here\n").unwrap();
        assert_eq!(std::fs::read_to_string(path(folder.path(), "vm-controller")).unwrap(), "here\n");
        assert_eq!(std::fs::read_to_string(path(folder.path(), "soft-tainter")).unwrap(), "");
    }
}
