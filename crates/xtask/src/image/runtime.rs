//! The libraries that no Cargo.lock names, as the compilers tell them: Rust's standard library and the C library.

use std::{env, process::Command};

use super::arch::Arch;

/// Versions. A program that was built elsewhere tells none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// Of Rust's standard library.
    pub(crate) rust: Option<String>,
    /// Of the static C library.
    pub(crate) glibc: Option<String>,
}

impl Runtime {
    /// What programs for an architecture are linked with on this machine.
    pub(crate) fn of_this_machine(arch: Arch) -> Runtime {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let rust = said(Command::new(rustc).arg("--version"));
        // The macros that the headers of the C library define.
        let mut compiler = Command::new(arch.compiler());
        let macros = said(compiler.args(["-dM", "-E", "-include", "features.h", "-x", "c", "/dev/null"]));
        Runtime { rust: rust.and_then(|said| rust_version(&said)), glibc: macros.and_then(|said| glibc_version(&said)) }
    }
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn rust_version(said: &str) -> Option<String> {
    said.split_whitespace().nth(1).map(str::to_owned)
}

fn glibc_version(macros: &str) -> Option<String> {
    let value = |name: &str| {
        let value =
            macros.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
        value.map(str::to_owned)
    };
    Some(format!("{}.{}", value("__GLIBC__")?, value("__GLIBC_MINOR__")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_compilers_say() {
        let macros = "#define __GLIBC_MINOR__ 36\n#define __GNUC__ 12\n#define __GLIBC__ 2\n";
        assert_eq!(glibc_version(macros).as_deref(), Some("2.36"));
        assert_eq!(glibc_version("#define __GNUC__ 12\n"), None);
        assert_eq!(rust_version("rustc 1.95.0 (598 2026-04-14)\n").as_deref(), Some("1.95.0"));
    }
}
