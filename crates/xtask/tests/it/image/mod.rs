//! What is handed out: the images, and what is told about them.

mod alone;
mod archives;
mod commands;
mod engines;
mod layout;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::commands::{printed, root};

/// The time of all images in these tests.
const SECONDS: &str = "1700000000";

/// One of our commands, with a folder for what it builds, and with the same time whatever the commit.
fn xtask(target: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(args).env("CARGO", env!("CARGO")).env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", target);
    command.env("SOURCE_DATE_EPOCH", SECONDS);
    command
}

/// A program as an image holds it, but for the optimizations of a release. `IMAGE_PROGRAMS` names a folder where it was built before.
fn static_program(which: &[&str], profile: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("IMAGE_PROGRAMS") {
        let name = if which.contains(&"--lab") { "rebalance-lab" } else { "virt-advisor" };
        return Path::new(&folder).join(name);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["build-static", "--profile", profile]).args(which).env("CARGO", env!("CARGO"));
    PathBuf::from(printed(&command.current_dir(root()).output().unwrap()).trim())
}

/// A small file in the place of a program.
fn dummy(folder: &Path) -> String {
    let file = folder.join("program");
    fs::write(&file, "#!/bin/true\n").unwrap();
    file.to_str().unwrap().to_owned()
}
