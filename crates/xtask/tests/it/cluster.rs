//! A control plane ends with its owner, however the owner ends.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use process::is_alive;
use testkit::poll_blocking;

/// `xtask cluster`, running.
struct Owner {
    process: Child,
    pids: Vec<u32>,
    folder: PathBuf,
}

impl Owner {
    fn start() -> Owner {
        let mut process =
            Command::new(env!("CARGO_BIN_EXE_xtask")).arg("cluster").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (mut pids, mut folder) = (Vec::new(), None);
        for line in lines {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                [_, "pid", pid, ..] => pids.push(pid.parse().unwrap()),
                ["kubeconfig:", path] => folder = Path::new(path).parent().map(Path::to_owned),
                ["Ctrl-C", ..] => break,
                _ => {}
            }
        }
        let folder = folder.expect("it says where its kubeconfig is");
        assert_eq!(pids.len(), 2, "etcd and kube-apiserver");
        assert!(pids.iter().all(|&pid| is_alive(pid)) && folder.exists());
        Owner { process, pids, folder }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    fn assert_nothing_is_left(mut self) {
        self.process.wait().unwrap();
        let gone = poll_blocking(Duration::from_secs(120), || {
            let is_left = self.pids.iter().any(|&pid| is_alive(pid)) || self.folder.exists();
            if is_left { Err(()) } else { Ok(()) }
        });
        gone.unwrap_or_else(|()| panic!("left over: {:?} or {:?}", self.pids, self.folder));
    }
}

#[test]
fn sigkill_of_the_owner_leaves_no_process_and_no_folder() {
    let owner = Owner::start();
    owner.signal("-KILL");
    owner.assert_nothing_is_left();
}

#[test]
fn ctrl_c_ends_everything_and_is_a_success() {
    let mut owner = Owner::start();
    owner.signal("-INT");
    assert!(owner.process.wait().unwrap().success());
    owner.assert_nothing_is_left();
}
