//! The packages that are compiled into a program, as Cargo resolves them for a target: without those that only build scripts,
//! macros or tests use.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
};

use anyhow::{Context, ensure};

use super::{arch::Arch, contents::Image, static_build::cargo};

/// Separates the columns of `cargo tree`; no name, version or license has it.
const COLUMN: char = '|';
/// Behind a package whose dependencies `cargo tree` has shown before.
const SHOWN_BEFORE: &str = " (*)";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackageId {
    pub(crate) name: String,
    pub(crate) version: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Package {
    /// An expression of SPDX.
    pub(crate) license: Option<String>,
    /// SHA-256 of what was downloaded. Packages of this workspace have none.
    pub(crate) checksum: Option<String>,
    pub(crate) dependencies: BTreeSet<PackageId>,
}

pub(crate) type Packages = BTreeMap<PackageId, Package>;

/// The packages in the program of an image, and the one that it is built from.
pub(crate) fn packages(image: Image, arch: Arch, lock: &str) -> anyhow::Result<(PackageId, Packages)> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "depth"]);
    command.args(["--format", &format!("{COLUMN}{{p}}{COLUMN}{{l}}")]);
    command.args(["--package", image.package(), "--target", arch.target()]).args(image.features());
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo tree failed ({})", output.status);
    let (root, mut packages) = parse(&String::from_utf8_lossy(&output.stdout))?;
    let checksums = checksums(lock);
    for (id, package) in &mut packages {
        package.checksum = checksums.get(id).cloned();
    }
    Ok((root, packages))
}

fn parse(tree: &str) -> anyhow::Result<(PackageId, Packages)> {
    let mut packages = Packages::new();
    // The packages from the program down to the last line.
    let mut path = Vec::<PackageId>::new();
    for line in tree.lines() {
        let unexpected = || format!("cargo tree printed {line:?}");
        let mut columns = line.trim_end_matches(SHOWN_BEFORE).split(COLUMN);
        let (depth, id, license) = (columns.next(), columns.next(), columns.next());
        let depth: usize = depth.and_then(|depth| depth.parse().ok()).with_context(unexpected)?;
        let mut words = id.with_context(unexpected)?.split_whitespace();
        let (name, version) = words.next().zip(words.next()).with_context(unexpected)?;
        let id = PackageId { name: name.to_owned(), version: version.trim_start_matches('v').to_owned() };
        path.truncate(depth);
        if let Some(user) = path.last() {
            packages.entry(user.clone()).or_default().dependencies.insert(id.clone());
        }
        let license = license.filter(|license| !license.is_empty());
        // Cargo allowed a slash for "or" in the past.
        packages.entry(id.clone()).or_default().license = license.map(|license| license.replace('/', " OR "));
        path.push(id);
    }
    let root = path.into_iter().next().context("cargo tree printed nothing")?;
    Ok((root, packages))
}

/// The checksums in a Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<PackageId, String> {
    let packages = lock.split("\n[[package]]\n").skip(1);
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let checksum = |package: &str| {
        let id = PackageId { name: value(package, "name")?, version: value(package, "version")? };
        Some((id, value(package, "checksum")?))
    };
    packages.filter_map(checksum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, version: &str) -> PackageId {
        PackageId { name: name.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn dependencies_are_read_from_the_depth_of_lines() {
        let tree = "\
            0|top v0.1.0 (/some/path)|Apache-2.0\n\
            1|a v1.0.0|MIT/Apache-2.0\n\
            2|b v2.0.0|\n\
            1|c v3.0.0+x|MIT\n\
            2|a v1.0.0|MIT/Apache-2.0 (*)\n";
        let (root, packages) = parse(tree).unwrap();
        assert_eq!(root, id("top", "0.1.0"));
        let uses =
            |name: &str, version: &str| packages[&id(name, version)].dependencies.iter().cloned().collect::<Vec<_>>();
        assert_eq!(uses("top", "0.1.0"), [id("a", "1.0.0"), id("c", "3.0.0+x")]);
        assert_eq!(uses("a", "1.0.0"), [id("b", "2.0.0")]);
        assert_eq!(uses("c", "3.0.0+x"), [id("a", "1.0.0")]);
        let license = |name: &str, version: &str| packages[&id(name, version)].license.clone();
        assert_eq!(license("a", "1.0.0").as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(license("b", "2.0.0"), None);
        assert!(parse("").is_err() && parse("x|y").is_err());
    }

    #[test]
    fn a_program_has_no_packages_of_macros_build_scripts_and_tests() {
        let lock = std::fs::read_to_string(crate::root().join("Cargo.lock")).unwrap();
        let (root, packages) = packages(Image::Operator, Arch::Amd64, &lock).unwrap();
        assert_eq!(root, id("virt-advisor", env!("CARGO_PKG_VERSION")));
        let has = |name: &str| packages.keys().any(|id| id.name == name);
        for name in ["operator", "advisor", "kube", "rustls", "tokio"] {
            assert!(has(name), "{name} is missing");
        }
        // A macro, what only macros use, a tool of build scripts, what only tests use, what only the plugin has, and another system.
        for name in ["serde_derive", "syn", "cc", "insta", "testkit", "lab", "sim", "windows-sys"] {
            assert!(!has(name), "{name} is not in the program");
        }
        for (id, package) in &packages {
            let is_ours = package.checksum.is_none();
            assert_eq!(is_ours, id.version == env!("CARGO_PKG_VERSION") && is_member(&id.name), "{id:?}");
            assert!(package.license.is_some(), "{id:?}");
        }
    }

    /// Whether a package is one of this workspace.
    fn is_member(name: &str) -> bool {
        let folder = if name == "virt-advisor-api" { "api" } else { name };
        crate::root().join("crates").join(folder).is_dir()
    }

    #[test]
    fn checksums_are_those_of_the_lock_file() {
        let lock = "# x\nversion = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"0a\"\n\
            dependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        assert_eq!(checksums(lock), BTreeMap::from([(id("a", "1.0.0"), "0a".to_owned())]));
    }
}
