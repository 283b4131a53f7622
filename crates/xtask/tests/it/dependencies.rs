//! Which crates of ours a program is built from.

use std::{collections::BTreeSet, process::Command};

use crate::commands::{printed, root};

/// All crates, of ours and of others, that a build of a package compiles into it.
fn crates_in(package: &str) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let tree = printed(&command.args(["--package", package]).current_dir(root()).output().unwrap());
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_operator_is_built_without_lab_simulator_and_test_cluster() {
    let crates = crates_in("virt-advisor");
    assert!(crates.contains("operator") && crates.contains("advisor"), "{crates:?}");
    for unwanted in ["balance", "devcluster", "lab", "rebalance-lab", "sim", "xtask"] {
        assert!(!crates.contains(unwanted), "virt-advisor depends on {unwanted}");
    }
}

#[test]
fn the_simulator_is_built_without_a_command_line_and_without_kubernetes() {
    let crates = crates_in("sim");
    for unwanted in ["clap", "kube", "terminal_size", "tokio"] {
        assert!(!crates.contains(unwanted), "sim depends on {unwanted}");
    }
}
