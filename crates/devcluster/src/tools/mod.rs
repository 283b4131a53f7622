//! The third-party programs: where they are found, and how they are built from the pinned Go modules when they are not.
//! Looked for in this order: `TEST_ASSET_<PROGRAM>`, `KUBEBUILDER_ASSETS`, our cache. Never on the `PATH`: whatever is
//! there is of some other version.

mod build;
mod program;

use std::{
    env, io,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

pub use program::Program;

use crate::error::{Error, Result};

/// The path of `program`, built first if it has to be.
pub fn ensure(program: Program) -> Result<PathBuf> {
    ensure_all(&[program]).map(|mut paths| paths.remove(0))
}

/// The paths of `programs`, in their order. What is missing is built, with progress on standard error.
pub fn ensure_all(programs: &[Program]) -> Result<Vec<PathBuf>> {
    let found = programs.iter().map(|&program| find(program)).collect::<Result<Vec<_>>>()?;
    let missing: Vec<Program> =
        programs.iter().zip(&found).filter(|(_, path)| path.is_none()).map(|(&program, _)| program).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|program| program.name()).collect();
        say(format_args!(
            "{} of {} programs are not built yet: {}; this happens once and takes about {} on two cores",
            missing.len(),
            programs.len(),
            names.join(", "),
            build::duration(estimate(&missing))
        ));
    }
    let mut number = 0;
    let build = |(&program, found): (&Program, Option<PathBuf>)| match found {
        Some(path) => Ok(path),
        None => {
            number += 1;
            build::build(program, &cache_path(program, None), number, &missing, None)
        }
    };
    programs.iter().zip(found).map(build).collect()
}

/// The path of `program` for Linux on an architecture, which has Go's name for it. It is built first if it has to be.
pub fn ensure_for_linux(program: Program, arch: &str) -> Result<PathBuf> {
    let this_machine = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    if env::consts::OS == "linux" && this_machine == arch {
        return ensure(program);
    }
    let path = cache_path(program, Some(arch));
    if path.is_file() { Ok(path) } else { build::build(program, &path, 1, &[program], Some(arch)) }
}

/// How long it takes to build `programs` one after the other.
fn estimate(programs: &[Program]) -> Duration {
    programs.iter().map(|program| program.build_time()).sum()
}

/// Where `program` is, if it need not be built.
pub fn find(program: Program) -> Result<Option<PathBuf>> {
    let variable = program.variable();
    if let Some(path) = env::var_os(&variable).filter(|value| !value.is_empty()).map(PathBuf::from) {
        return match path.is_file() {
            true => Ok(Some(path)),
            false => Err(Error::BadAsset { variable, path, problem: "there is no such file" }),
        };
    }
    if let Some(folder) = env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from) {
        if !folder.is_dir() {
            return Err(Error::BadAsset {
                variable: "KUBEBUILDER_ASSETS".into(),
                path: folder,
                problem: "there is no such folder",
            });
        }
        // envtest's folder holds three programs; the others still come from the cache.
        let path = folder.join(program.name());
        if path.is_file() {
            return Ok(Some(path));
        }
    }
    Ok(Some(cache_path(program, None)).filter(|path| path.is_file()))
}

/// `$VIRT_ADVISOR_CACHE`, else the user's cache folder.
pub fn cache() -> PathBuf {
    let var = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    var("VIRT_ADVISOR_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|folder| folder.join("virt-advisor")))
        .or_else(|| var("HOME").map(|home| home.join(".cache/virt-advisor")))
        .unwrap_or_else(|| env::temp_dir().join("virt-advisor-cache"))
}

/// `arch`: for Linux on an architecture that is not this machine's.
fn cache_path(program: Program, arch: Option<&str>) -> PathBuf {
    let mut folder = cache().join(Path::new("tools")).join(program.family().name());
    folder.extend(arch);
    folder.join(program.family().key()).join(program.name())
}

/// Straight to standard error: test runners capture what goes through the print macros.
fn say(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "tools: {message}");
}
