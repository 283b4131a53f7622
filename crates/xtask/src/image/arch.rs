//! The architectures that images are built for, and what a machine needs to build for another one.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail};

/// By the names that images and Go use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    /// The one of this machine.
    pub(crate) fn host() -> anyhow::Result<Arch> {
        match env::consts::ARCH {
            "x86_64" => Ok(Arch::Amd64),
            "aarch64" => Ok(Arch::Arm64),
            other => bail!("there are images for amd64 and arm64, and this machine is {other}: choose one with --arch"),
        }
    }

    /// Those that were chosen, or the one of this machine.
    pub(crate) fn or_host(chosen: &[Arch]) -> anyhow::Result<Vec<Arch>> {
        if chosen.is_empty() { Ok(vec![Arch::host()?]) } else { Ok(chosen.to_vec()) }
    }

    /// What is missing for the last one is told before the first one is built.
    pub(crate) fn check_all(architectures: &[Arch]) -> anyhow::Result<()> {
        architectures.iter().try_for_each(|arch| arch.check())
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Arch::Amd64 => "amd64",
            Arch::Arm64 => "arm64",
        }
    }

    /// The target of Rust. Programs are linked with the static C library of GNU.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Arch::Amd64 => "x86_64-unknown-linux-gnu",
            Arch::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    pub(crate) fn is_host(self) -> bool {
        env::consts::OS == "linux" && Arch::host().is_ok_and(|host| host == self)
    }

    /// The compiler that links for it on machines of another kind, and Debian's packages with that and with its C library.
    fn cross_compiler(self) -> (&'static str, &'static str) {
        match self {
            Arch::Amd64 => ("x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu libc6-dev-amd64-cross"),
            Arch::Arm64 => ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
        }
    }

    /// The C compiler, which links, too.
    pub(crate) fn compiler(self) -> &'static str {
        if self.is_host() { "cc" } else { self.cross_compiler().0 }
    }

    /// Says everything that is missing for a build, with what to install.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        let missing = self.missing(&rust_library(self.target())?, &static_library(self.compiler()));
        if missing.is_empty() {
            return Ok(());
        }
        let other = if self.is_host() { "" } else { "\n  or build on a machine of that architecture" };
        bail!("programs for linux/{} cannot be built on this machine:\n  {}{other}", self.name(), missing.join("\n  "))
    }

    /// `rust` is the folder of Rust's standard library for this target, `c` the C library, if it was found.
    fn missing(self, rust: &Path, c: &Library) -> Vec<String> {
        let mut missing = Vec::new();
        if !rust.is_dir() {
            let target = self.target();
            missing.push(format!("the target {target} is missing in Rust; install it: rustup target add {target}"));
        }
        let (compiler, packages) = match self.is_host() {
            true => ("cc", "gcc libc6-dev"),
            false => self.cross_compiler(),
        };
        match c {
            Library::Found => {}
            Library::Missing => missing.push(format!(
                "{compiler} has no static C library (libc.a); install it: apt install {packages}, dnf install glibc-static"
            )),
            Library::NoCompiler => {
                missing.push(format!("{compiler}, which links, was not found; install it: apt install {packages}"));
            }
        }
        missing
    }
}

/// The static C library of a compiler.
#[derive(Debug, PartialEq, Eq)]
enum Library {
    Found,
    Missing,
    NoCompiler,
}

fn static_library(compiler: &str) -> Library {
    // A compiler that does not find the file prints the name as it is.
    match Command::new(compiler).arg("-print-file-name=libc.a").output() {
        Ok(output) if output.status.success() => {
            let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
            if path.is_absolute() { Library::Found } else { Library::Missing }
        }
        _ => Library::NoCompiler,
    }
}

/// Where Rust's standard library for a target is, or would be.
fn rust_library(target: &str) -> anyhow::Result<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    let output = output.context("starting rustc; install Rust: https://rustup.rs")?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_told_at_once_with_what_to_install() {
        let other = if Arch::Arm64.is_host() { Arch::Amd64 } else { Arch::Arm64 };
        let missing = other.missing(Path::new("/nowhere"), &Library::NoCompiler);
        assert_eq!(missing.len(), 2);
        assert!(missing[0].ends_with(&format!("install it: rustup target add {}", other.target())), "{missing:?}");
        let (compiler, packages) = other.cross_compiler();
        assert!(missing[1].starts_with(compiler) && missing[1].ends_with(packages), "{missing:?}");
        assert!(other.missing(Path::new("/"), &Library::Missing)[0].contains("libc.a"));
        assert!(other.missing(Path::new("/"), &Library::Found).is_empty());
    }

    #[test]
    fn a_compiler_is_asked_for_its_static_library() {
        assert_eq!(static_library("no-such-compiler"), Library::NoCompiler);
        assert_eq!(static_library("cc"), Library::Found, "the images are built with it");
    }
}
