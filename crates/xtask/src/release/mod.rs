//! `make release`: everything that is published with a version, in one folder, with checksums.

mod archive;
mod baseline;
mod definitions;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

pub(crate) use baseline::write as baseline;

use crate::{
    image::{arch::Arch, digest::sha256, reference::ImageReference, static_build, write},
    krew,
    packages::{self, Source, VERSION},
    root,
};

const SUMS: &str = "SHA256SUMS";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The version, which has to be that of Cargo.toml
    #[arg(long, default_value = VERSION)]
    version: String,
    /// The image of the operator, instead of the one in config/project.yaml. One with a digest is published already, so it is not
    /// written as a file
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageReference>,
    /// The image for must-gather, instead of the one in config/project.yaml
    #[arg(long, value_name = "IMAGE")]
    must_gather_image: Option<ImageReference>,
    /// Instead of the architecture of this machine; may be repeated
    #[arg(long)]
    arch: Vec<Arch>,
    /// The profile of Cargo
    #[arg(long, default_value = "release")]
    profile: String,
    /// The image of the lab, too
    #[arg(long)]
    lab: bool,
    /// Where to write it. What a release has left there is removed
    #[arg(long, default_value = "dist/release")]
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(
        args.version.trim_start_matches('v') == VERSION.trim_start_matches('v'),
        "this tree is {VERSION}, not {}: the version comes from Cargo.toml alone; change it there, and run `make generate`",
        args.version
    );
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).context("reading CHANGELOG.md")?;
    ensure!(has_section(&changes), "CHANGELOG.md has no section `## {VERSION}`: move what is Unreleased there");
    ensure!(!has_unreleased(&changes), "CHANGELOG.md has entries under `## Unreleased`: move them to `## {VERSION}`");
    let problems = baseline::problems()?;
    ensure!(problems.is_empty(), "these changes of definitions break users:\n{}", problems.join("\n"));
    let architectures = Arch::or_host(&args.arch)?;
    Arch::check_all(&architectures)?;
    let mut source = Source { architectures, ..Source::new()? };
    source.image = args.image.clone().unwrap_or(source.image);
    source.must_gather = args.must_gather_image.clone().unwrap_or(source.must_gather);

    let folder = root().join(&args.folder);
    empty(&folder)?;
    for (name, content) in packaged(&source)? {
        put(&folder, &name, &content)?;
    }
    let mut programs = Vec::new();
    for &arch in &source.architectures {
        let path = static_build::build_plugin(arch, &args.profile)?;
        programs.push((arch, fs::read(&path).with_context(|| format!("reading {}", path.display()))?));
    }
    let archives = packed_programs(&programs, &folder)?;
    put(&folder, "virt-advisor.yaml", krew::manifest_of(VERSION, &archives)?.as_bytes())?;
    let written = |image: Option<ImageReference>, lab: bool| {
        write::run(&write::Args::new(image, lab, &source.architectures, &args.profile, &folder))
    };
    if source.image.digest.is_none() {
        written(Some(source.image.clone()), false)?;
    }
    if args.lab {
        written(None, true)?;
    }
    put(&folder, SUMS, sums(&folder)?.as_bytes())?;
    baseline::write()
}

/// Makes the folder, or removes the release before this one from it.
fn empty(folder: &Path) -> anyhow::Result<()> {
    let holds_something = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    let shown = folder.display();
    ensure!(
        !holds_something || folder.join(SUMS).is_file(),
        "{shown} holds other files than those of a release: name another folder, or empty it"
    );
    if holds_something {
        fs::remove_dir_all(folder).with_context(|| format!("emptying {shown}"))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("creating {shown}"))
}

/// Whether the changelog has a heading of this version.
fn has_section(changes: &str) -> bool {
    changes.lines().any(|line| line.strip_prefix("## ").is_some_and(|rest| rest.split(' ').next() == Some(VERSION)))
}

/// Whether the changelog has entries that belong to no version.
fn has_unreleased(changes: &str) -> bool {
    let section = changes.lines().skip_while(|line| *line != "## Unreleased").skip(1);
    section.take_while(|line| !line.starts_with("## ")).any(|line| line.starts_with("- "))
}

fn put(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    fs::write(folder.join(name), content).with_context(|| format!("writing {name}"))?;
    println!("{name} written");
    Ok(())
}

/// Installers, chart and bundle: name, and content.
fn packaged(source: &Source) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let version = VERSION.trim_start_matches('v');
    let mut files = Vec::new();
    let (mut chart, mut bundle) = (Vec::new(), Vec::new());
    for (path, text) in packages::dist(source)? {
        let path = path.trim_start_matches("dist/").to_owned();
        let content = text.into_bytes();
        match path.split_once('/') {
            Some(("chart", rest)) => chart.push((format!("{}/{rest}", packages::CHART), content, false)),
            Some(("bundle", _)) => bundle.push((path, content, false)),
            _ if path == "bundle.Dockerfile" => bundle.push((path, content, false)),
            _ => files.push((path, content)),
        }
    }
    files.push((format!("{}-{version}.tgz", packages::CHART), archive::packed(chart)?));
    files.push((format!("{}-bundle-{version}.tgz", packages::CHART), archive::packed(bundle)?));
    Ok(files)
}

/// Packs each program with the license, and returns names and checksums.
fn packed_programs(programs: &[(Arch, Vec<u8>)], folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let license = fs::read(root().join("LICENSE")).context("reading LICENSE")?;
    let mut archives = Vec::new();
    for (arch, program) in programs {
        let name = format!("virt-advisor-linux-{}.tar.gz", arch.name());
        let files =
            vec![("LICENSE".to_owned(), license.clone(), false), ("virt-advisor".to_owned(), program.clone(), true)];
        let content = archive::packed(files)?;
        put(folder, &name, &content)?;
        archives.push((name, sha256(&content)));
    }
    Ok(archives)
}

/// The checksums of all files in the folder, as sha256sum writes and checks them.
fn sums(folder: &Path) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).context("reading the folder of the release")? {
        let entry = entry?;
        let name = entry.file_name().display().to_string();
        if name != SUMS && entry.file_type()?.is_file() {
            let content = fs::read(entry.path()).with_context(|| format!("reading {name}"))?;
            lines.push((name, sha256(&content)));
        }
    }
    lines.sort();
    Ok(lines.into_iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_of_the_changelog_is_found_by_its_version() {
        assert!(has_section(&format!("# Changelog\n\n## {VERSION} (2026-11-18)\n")));
        assert!(!has_section(&format!("# Changelog\n\n## Unreleased\n\n### {VERSION}\n## {VERSION}0\n")));
    }

    #[test]
    fn entries_without_a_version_are_found() {
        let released = format!("## {VERSION}\n\n- A change.\n");
        assert!(has_unreleased(&format!("# Changelog\n\n## Unreleased\n\n### Added\n\n- More.\n\n{released}")));
        assert!(!has_unreleased(&format!("# Changelog\n\n## Unreleased\n\n{released}")));
        assert!(!has_unreleased(&released));
    }

    #[test]
    fn the_same_content_gives_the_same_checksums_whoever_packs_it() {
        let files = || vec![("b".to_owned(), b"2".to_vec(), false), ("a".to_owned(), b"1".to_vec(), true)];
        let reversed = files().into_iter().rev().collect();
        assert_eq!(archive::packed(files()).unwrap(), archive::packed(reversed).unwrap());
    }

    #[test]
    fn a_release_holds_installers_chart_bundle_programs_and_their_checksums() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (name, content) in packaged(&Source::new().unwrap()).unwrap() {
            put(folder, &name, &content).unwrap();
        }
        let archives = packed_programs(&[(Arch::Amd64, b"a program".to_vec())], folder).unwrap();
        assert_eq!(archives.len(), 1);
        let manifest = krew::manifest_of(VERSION, &archives).unwrap();
        assert!(manifest.contains(&archives[0].1) && !manifest.contains("darwin"), "{manifest}");
        let sums = sums(folder).unwrap();
        let names: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
        let version = VERSION.trim_start_matches('v');
        let expected = [
            "admission-policy-audit.yaml".to_owned(),
            "admission-policy.yaml".to_owned(),
            "install-with-namespace.yaml".to_owned(),
            "install.yaml".to_owned(),
            "monitoring.yaml".to_owned(),
            "virt-advisor-linux-amd64.tar.gz".to_owned(),
            format!("virt-advisor-operator-{version}.tgz"),
            format!("virt-advisor-operator-bundle-{version}.tgz"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn nothing_of_the_release_before_is_left_and_nothing_else_is_removed() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("release");
        empty(&folder).unwrap();
        put(&folder, "virt-advisor-linux-arm64.tar.gz", b"stale").unwrap();
        let refused = empty(&folder).unwrap_err().to_string();
        assert!(refused.contains("holds other files than those of a release"), "{refused}");
        put(&folder, SUMS, b"").unwrap();
        empty(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    /// Whatever is published names the same images, also if they are given without a tag.
    #[test]
    fn every_file_names_the_images_that_are_given() {
        let mut source = Source::new().unwrap();
        source.image = "registry.example.com/advisor".parse().unwrap();
        source.must_gather = format!("registry.example.com/gather@sha256:{}", "0a".repeat(32)).parse().unwrap();
        let files = packages::dist(&source).unwrap();
        let text = |path: &str| &files.iter().find(|(known, _)| known == path).unwrap().1;
        assert!(text("dist/install.yaml").contains("image: registry.example.com/advisor:latest\n"));
        let values = text("dist/chart/values.yaml");
        assert!(values.contains("repository: \"registry.example.com/advisor\"") && values.contains("tag: \"latest\""));
        let version = text("dist/bundle/manifests/virt-advisor-operator.clusterserviceversion.yaml");
        assert!(version.contains("registry.example.com/advisor:latest"));
        assert_eq!(version.matches(&source.must_gather.to_string()).count(), 2, "annotation and related image");
        let old = Source::new().unwrap();
        for (path, text) in &files {
            for image in [&old.image.name, &old.must_gather.name] {
                assert!(
                    !text.contains(&format!("{image}:")) && !text.contains(&format!("{image}\"")),
                    "{path}: {image}"
                );
            }
        }
    }
}
