//! Commands for people work with the kubectl or oc that people have, and need no Go then.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::commands::{printed, text};

/// A machine with nothing on its PATH and in its cache but the programs that a test adds.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        Machine { folder: tempfile::tempdir().unwrap() }
    }

    /// With a client that tells this version, and otherwise only how it was called.
    fn with(self, name: &str, version: &str) -> Self {
        let path = self.program(name);
        let script = format!("#!/bin/sh\n[ \"$1\" = version ] && echo '{version}' && exit\necho \"{name} $*\"\n");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn install(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.arg("install").env("PATH", self.folder.path()).env("VIRT_ADVISOR_CACHE", self.folder.path());
        command.env_remove("KUBEBUILDER_ASSETS").env_remove("TEST_ASSET_KUBECTL");
        command
    }

    fn run(&self) -> Output {
        self.install().output().unwrap()
    }
}

fn kubectl(version: &str) -> String {
    format!(r#"{{"clientVersion": {{"major": "1", "gitVersion": "{version}"}}}}"#)
}

fn oc(version: &str) -> String {
    format!(
        r#"{{"clientVersion": {{"major": "", "gitVersion": "{version}-202509"}}, "releaseClientVersion": "{version}"}}"#
    )
}

/// The program that did the work.
fn used(output: &Output) -> String {
    let said = printed(output);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("apply --server-side"), "{said}");
    lines[0].split(' ').next().unwrap().to_owned()
}

#[test]
fn kubectl_is_used_or_oc_if_it_is_new_enough() {
    let both = Machine::new().with("kubectl", &kubectl("v1.30.2")).with("oc", &oc("4.21.0"));
    assert_eq!(used(&both.run()), "kubectl");
    assert_eq!(used(&Machine::new().with("oc", &oc("4.17.3")).run()), "oc");
    assert_eq!(used(&Machine::new().with("oc", &oc("5.1.0")).run()), "oc");
    let old = Machine::new().with("kubectl", &kubectl("v1.24.0")).with("oc", &oc("4.18.0"));
    assert_eq!(used(&old.run()), "oc");
}

#[test]
fn a_client_that_somebody_names_counts_more() {
    let machine = Machine::new().with("kubectl", &kubectl("v1.35.0")).with("named", &kubectl("v1.1.0"));
    let output = machine.install().env("TEST_ASSET_KUBECTL", machine.program("named")).output().unwrap();
    assert_eq!(used(&output), "named");
}

#[test]
fn without_a_client_that_is_new_enough_and_without_go_both_ways_out_are_told() {
    let machine = Machine::new().with("kubectl", &kubectl("v1.24.0")).with("oc", "no JSON");
    let output = machine.run();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in [
        "kubectl is v1.24.0, and kubectl 1.30 or oc 4.17 or newer is needed",
        "install kubectl 1.30",
        "Go was not found",
    ] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}
