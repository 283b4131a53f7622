//! Processes by more than their id, which another process may have later.

use std::io;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::stat::Stat;

/// A process id together with the time at which that process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pid: u32,
    /// In clock ticks since the machine was started.
    started: u64,
}

impl ProcessIdentity {
    /// This process.
    pub fn current() -> io::Result<ProcessIdentity> {
        let pid = std::process::id();
        let missing = || io::Error::other("there is no /proc to read when this process started");
        Ok(ProcessIdentity { pid, started: start_time(pid).ok_or_else(missing)? })
    }

    pub fn pid(self) -> u32 {
        self.pid
    }

    pub fn is_alive(self) -> bool {
        start_time(self.pid) == Some(self.started)
    }

    /// Sends SIGTERM. Not an error if the process has ended.
    pub fn terminate(self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Sends SIGKILL. Not an error if the process has ended.
    pub fn kill(self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    fn signal(self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        match pid.filter(|_| self.is_alive()) {
            Some(pid) => Ok(kill_process(pid, signal)?),
            None => Ok(()),
        }
    }
}

/// Whether some process with this id runs. A zombie does not.
pub fn is_alive(pid: u32) -> bool {
    start_time(pid).is_some()
}

/// When a process started; none if it has ended, even if its parent has not waited for it yet.
fn start_time(pid: u32) -> Option<u64> {
    Stat::read(&pid.to_string()).filter(|stat| !stat.has_ended).map(|stat| stat.started)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_with_the_same_id_that_started_later_is_another_one() {
        let current = ProcessIdentity::current().unwrap();
        assert!(current.is_alive());
        let earlier = ProcessIdentity { started: current.started - 1, ..current };
        assert!(!earlier.is_alive());
        earlier.kill().unwrap();
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let identity = ProcessIdentity { pid, started: start_time(pid).unwrap() };
        identity.terminate().unwrap();
        while is_alive(pid) {
            std::thread::yield_now();
        }
        assert!(!identity.is_alive());
        child.wait().unwrap();
    }
}
