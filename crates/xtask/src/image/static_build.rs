//! Builds a program that needs nothing but a kernel, with the same bytes wherever this tree lies.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::{arch::Arch, contents::Image};
use crate::root;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program of the lab instead of virt-advisor
    #[arg(long)]
    lab: bool,
    /// Instead of the architecture of this machine; may be repeated
    #[arg(long)]
    arch: Vec<Arch>,
    /// The profile of Cargo
    #[arg(long, default_value = "release")]
    profile: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let image = if args.lab { Image::Lab } else { Image::Operator };
    let architectures = Arch::or_host(&args.arch)?;
    Arch::check_all(&architectures)?;
    for arch in architectures {
        println!("{}", build(image, arch, &args.profile)?.display());
    }
    Ok(())
}

/// The folder into which Cargo builds this workspace.
pub(crate) fn target_folder() -> anyhow::Result<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo metadata failed ({})", output.status);
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("reading what cargo metadata says")?;
    Ok(metadata.target_directory)
}

pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The arguments of Cargo.
pub(crate) fn arguments(image: Image, arch: Arch, profile: &str) -> Vec<String> {
    let words = ["build", "--locked", "--package", image.package(), "--target", arch.target(), "--profile", profile];
    words.iter().chain(image.features()).map(|word| (*word).to_owned()).collect()
}

/// Builds the program of an image, and returns where it is.
pub(crate) fn build(image: Image, arch: Arch, profile: &str) -> anyhow::Result<PathBuf> {
    build_by(&arguments(image, arch, profile), image.package(), arch, profile)
}

/// Builds the plugin of kubectl: the program of the operator with all that people use, and returns where it is.
pub(crate) fn build_plugin(arch: Arch, profile: &str) -> anyhow::Result<PathBuf> {
    let mut arguments = arguments(Image::Operator, arch, profile);
    arguments.retain(|word| !Image::Operator.features().contains(&word.as_str()));
    build_by(&arguments, Image::Operator.package(), arch, profile)
}

fn build_by(arguments: &[String], name: &str, arch: Arch, profile: &str) -> anyhow::Result<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    arch.check()?;
    let mut command = cargo();
    command.args(arguments).arg("--message-format=json-render-diagnostics");
    command.env("CARGO_ENCODED_RUSTFLAGS", flags(&renamed_folders()?).join("\u{1f}"));
    // Whatever the profile: without what only debuggers read, and independent of earlier builds.
    let profile = profile.to_uppercase().replace('-', "_");
    command
        .env(format!("CARGO_PROFILE_{profile}_STRIP"), "symbols")
        .env(format!("CARGO_PROFILE_{profile}_DEBUG"), "none");
    command.env("CARGO_INCREMENTAL", "0");
    if !arch.is_host() {
        let variable = arch.target().replace('-', "_");
        command.env(format!("CC_{variable}"), arch.compiler());
        command.env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), arch.compiler());
    }
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(output.status.success(), "{name} does not build ({})", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut programs = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok()?.executable);
    let program = programs.find(|path| path.file_name().is_some_and(|found| found == name));
    program.with_context(|| format!("cargo has not said where it put {name}"))
}

/// Options of rustc: the C library goes into the program, and folders of this machine do not.
fn flags(renamed: &[(PathBuf, String)]) -> Vec<String> {
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    flags.extend(renamed.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())));
    flags
}

/// Folders whose names would get into programs, by the texts of panics, and what is written there instead.
fn renamed_folders() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let absolute = |path: &Path| path.canonicalize().with_context(|| format!("looking for {}", path.display()));
    let mut renamed = vec![(absolute(&root())?, "/source".to_owned())];
    // Of several that match, rustc takes the last one.
    renamed.push((target_folder()?, "/target".to_owned()));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let registries = cargo_home.map(|home| home.join("registry/src"));
    // Each registry has a folder of its own, whose name depends on the mirror that is used.
    let entries = registries.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    renamed.extend(folders.into_iter().map(|folder| (folder, "/registry".to_owned())));
    Ok(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_of_this_machine_gets_into_a_program() {
        let renamed = renamed_folders().unwrap();
        let named: Vec<&str> = renamed.iter().map(|(_, name)| name.as_str()).collect();
        assert!(named.contains(&"/source") && named.contains(&"/registry"), "{named:?}");
        let flags = flags(&[("/home/me/tree".into(), "/source".to_owned())]);
        assert_eq!(flags, ["-Ctarget-feature=+crt-static", "--remap-path-prefix=/home/me/tree=/source"]);
    }
}
