//! What of the operating system a node needs.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

/// It says what is missing, and what to install.
const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/check-prerequisites");

/// Where the plugins for the network of pods are: of Debian's package, and of others.
const CNI: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

pub(crate) fn check() -> anyhow::Result<()> {
    let output = Command::new(CHECK).arg("--node").output().context("starting tools/check-prerequisites")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A program on the PATH. Those of administrators are found, too, where the PATH is that of a user.
pub(crate) fn find(program: &str) -> anyhow::Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = folders.map(|folder| folder.join(program)).find(|file| file.is_file());
    found.with_context(|| format!("{program} was not found"))
}

pub(crate) fn cni_folder() -> anyhow::Result<&'static Path> {
    let mut folders = CNI.iter().map(Path::new);
    folders.find(|folder| folder.join("bridge").is_file()).context("the plugins for the network of pods were not found")
}
