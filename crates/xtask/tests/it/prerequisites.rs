//! What a new machine lacks is told at once, before anything is built.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output},
};

use crate::commands::{root, text};

/// A machine with nothing but a shell, and with the programs that a test adds.
struct Machine {
    path: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Machine { path: tempfile::tempdir().unwrap(), cache: tempfile::tempdir().unwrap() };
        for program in ["sh", "tr", "df"] {
            let folder = ["/bin", "/usr/bin"].into_iter().find(|folder| Path::new(folder).join(program).exists());
            symlink(Path::new(folder.unwrap()).join(program), machine.path.path().join(program)).unwrap();
        }
        machine
    }

    /// With a program that prints `says` whatever it is asked.
    fn with(self, name: &str, says: &str) -> Self {
        let path = self.path.path().join(name);
        fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn check(&self, args: &[&str]) -> Output {
        let mut command = Command::new(root().join("tools/check-prerequisites"));
        for name in ["CARGO", "KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "TEST_ASSET_KUBECTL"] {
            command.env_remove(name);
        }
        let target = self.cache.path().join("target");
        command.env("PATH", self.path.path()).env("VIRT_ADVISOR_CACHE", self.cache.path());
        command.args(args).env("CARGO_TARGET_DIR", target).output().unwrap()
    }
}

#[test]
fn everything_that_is_missing_is_told_in_one_line_each_with_what_to_install() {
    let output = Machine::new().check(&["--lints", "etcd", "kubectl"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("GB are free")).collect();
    let parts = [
        ["missing: cargo was not found", "https://rustup.rs"],
        ["missing: a C compiler (cc) was not found", "apt install gcc"],
        ["missing: Go was not found, and these are not built yet: etcd kubectl", "https://go.dev/dl"],
        ["warning: git was not found", "apt install git"],
        ["Nothing was built.", "run the command again"],
    ];
    assert_eq!(lines.len(), parts.len(), "{said}");
    for (line, [problem, remedy]) in lines.iter().zip(parts) {
        assert!(line.starts_with(problem) && line.contains(remedy), "{problem:?} and {remedy:?} are not in {line:?}");
    }
}

#[test]
fn a_machine_that_has_everything_is_told_what_was_found() {
    let machine = Machine::new().with("cargo", "cargo 1.99.0 (abc 2027-01-01)").with("cc", "").with("git", "");
    let output = machine.with("go", "go version go1.30.1 linux/amd64").check(&["etcd"]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.starts_with("prerequisites: cargo 1.99.0, C compiler, Go 1.30.1, git"), "{said}");
}

#[test]
fn programs_that_are_too_old_are_told_with_the_version_that_is_needed() {
    let old = Machine::new().with("cargo", "cargo 1.80.0").with("cc", "").with("go", "go version go1.20.4 linux/amd64");
    let said = text(&old.check(&["etcd"]).stderr);
    assert!(said.contains("missing: cargo is 1.80.0, and 1.95 is needed; update it: rustup update"), "{said}");
    assert!(said.contains("missing: Go is 1.20.4, and 1.26 is needed; install Go 1.26 or newer"), "{said}");
}

#[test]
fn without_programs_to_build_go_is_not_asked_for() {
    let machine = Machine::new().with("cargo", "cargo 1.99.0").with("cc", "");
    assert!(machine.check(&[]).status.success());

    // As the cache names it: family, version and a hash, program.
    let version = devcluster::tools::Program::Etcd.version();
    let folder = machine.cache.path().join(format!("tools/etcd/{version}-0123abcd"));
    fs::create_dir_all(&folder).unwrap();
    assert!(!machine.check(&["etcd"]).status.success());
    fs::write(folder.join("etcd"), "").unwrap();
    let output = machine.check(&["etcd"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_runs_containers_is_asked_for_only_where_it_is_needed() {
    let machine = Machine::new().with("cargo", "cargo 1.99.0").with("cc", "").with("podman", "");
    assert!(machine.check(&[]).status.success());
    let output = machine.check(&["--containers"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("missing: buildah was not found; install it: apt install buildah"), "{said}");
    assert!(said.contains("missing: runc was not found") && !said.contains("podman"), "{said}");
}

#[test]
fn little_space_is_a_warning_and_stops_nothing() {
    let machine = Machine::new().with("cargo", "cargo 1.99.0").with("cc", "");
    let output = machine.check(&["--space", "9000000"]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("a first build takes about 9000000 GB"), "{output:?}");
}

#[test]
fn whoever_is_not_root_is_told_that_a_node_needs_it() {
    let machine = Machine::new().with("cargo", "cargo 1.99.0").with("cc", "").with("id", "1000");
    let said = text(&machine.check(&["--node"]).stderr);
    assert!(said.contains("missing: the rights of root; run it as root: sudo -E"), "{said}");
}

#[test]
fn what_a_node_and_the_scripts_on_it_need_is_told_in_one_line() {
    let machine = Machine::new().with("cargo", "cargo 1.99.0").with("cc", "").with("id", "0").with("curl", "");
    let said = text(&machine.check(&["--node"]).stderr);
    let line = said.lines().find(|line| line.starts_with("missing: programs that a node needs")).unwrap_or_default();
    for (program, package) in [("unshare", "util-linux"), ("find", "findutils"), ("bash", "bash"), ("jq", "jq")] {
        // The folders of administrators are looked at, too.
        let is_missing = !["/usr/sbin", "/sbin"].iter().any(|folder| Path::new(folder).join(program).exists());
        assert_eq!(line.split(' ').any(|word| word == package), is_missing, "{package}: {said}");
    }
    assert!(!line.contains("curl"), "{said}");
}
