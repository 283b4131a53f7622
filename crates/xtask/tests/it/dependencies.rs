//! Which crates of ours a program is built from.

use std::{collections::BTreeSet, process::Command};

use crate::commands::{printed, root};

/// All crates, of ours and of others, that a build of a package compiles into it.
fn crates_in(package: &str, features: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let tree = printed(&command.args(["--package", package]).args(features).current_dir(root()).output().unwrap());
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The image of the operator is built by the same arguments.
#[test]
fn the_operator_is_built_without_lab_simulator_and_test_cluster() {
    let crates = crates_in("virt-advisor", &["--no-default-features"]);
    assert!(crates.contains("operator") && crates.contains("advisor"), "{crates:?}");
    let lab = ["balance", "devcluster", "lab", "lab-parts", "rebalance-lab", "sim", "standins"];
    for unwanted in lab.into_iter().chain(["testkit", "xtask"]) {
        assert!(!crates.contains(unwanted), "virt-advisor depends on {unwanted}");
    }
}

#[test]
fn the_plugin_has_the_simulator_and_still_no_lab() {
    let crates = crates_in("virt-advisor", &[]);
    assert!(crates.contains("sim") && crates.contains("balance"), "{crates:?}");
    for unwanted in ["devcluster", "lab", "lab-parts", "rebalance-lab", "standins", "testkit"] {
        assert!(!crates.contains(unwanted), "the plugin depends on {unwanted}");
    }
}

#[test]
fn the_simulator_is_built_without_a_command_line_and_without_kubernetes() {
    let crates = crates_in("sim", &[]);
    for unwanted in ["clap", "kube", "terminal_size", "tokio"] {
        assert!(!crates.contains(unwanted), "sim depends on {unwanted}");
    }
}
