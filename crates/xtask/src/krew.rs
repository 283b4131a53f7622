//! The manifest of the plugin for krew: the template, with the version and the checksums of a release.

use std::path::PathBuf;

use anyhow::{Context, bail};

const TEMPLATE: &str = "config/krew/virt-advisor.yaml";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The version of the release, for example v0.1.0
    version: String,
    /// The checksums of its archives, as sha256sum writes them
    checksums: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let sums =
        std::fs::read_to_string(&args.checksums).with_context(|| format!("reading {}", args.checksums.display()))?;
    print!("{}", manifest(&args.version, &sums)?);
    Ok(())
}

/// The manifest of a release that does not have the archives of all platforms: name and checksum of each that it has.
pub(crate) fn manifest_of(version: &str, archives: &[(String, String)]) -> anyhow::Result<String> {
    let template = template()?;
    let (head, platforms) = template.split_once("  platforms:\n").context("the template lists no platforms")?;
    let is_there = |platform: &&str| archives.iter().any(|(name, _)| platform.contains(&format!("${{{name}}}")));
    let entries = platforms.split("    - selector:").skip(1);
    let kept: String = entries.filter(is_there).map(|entry| format!("    - selector:{entry}")).collect();
    let sums: String = archives.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    filled(&format!("{head}  platforms:\n{kept}"), version, &sums)
}

fn template() -> anyhow::Result<String> {
    std::fs::read_to_string(crate::root().join(TEMPLATE)).with_context(|| format!("reading {TEMPLATE}"))
}

/// The template with `${VERSION}`, and with the checksum of each archive for `${name of the archive}`.
fn manifest(version: &str, sums: &str) -> anyhow::Result<String> {
    filled(&template()?, version, sums)
}

fn filled(template: &str, version: &str, sums: &str) -> anyhow::Result<String> {
    let mut text = template.replace("${VERSION}", version);
    for line in sums.lines() {
        let Some((sum, name)) = line.split_once(char::is_whitespace) else { continue };
        text = text.replace(&format!("${{{}}}", name.trim_start_matches([' ', '*'])), sum);
    }
    match text.split_once("${").and_then(|(_, rest)| rest.split_once('}')) {
        Some((missing, _)) => bail!("there is no checksum of {missing}"),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use devcluster::tools::{self, Program};

    use super::*;

    fn sums() -> String {
        let sum = |platform: &str| format!("{}  virt-advisor-{platform}.tar.gz\n", "ab".repeat(32));
        ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"].map(sum).concat()
    }

    /// Without an installation, which would download a release.
    fn validate(manifest: &str) -> std::process::Output {
        let folder = tempfile::tempdir().unwrap();
        // Its name must be that of the plugin.
        let file = folder.path().join("virt-advisor.yaml");
        std::fs::write(&file, manifest).unwrap();
        let validator = tools::ensure(Program::ValidateKrewManifest).unwrap();
        Command::new(validator).args(["-skip-install", "-manifest"]).arg(file).output().unwrap()
    }

    #[test]
    fn an_archive_without_a_checksum_is_named() {
        let error = manifest("v0.1.0", sums().split_once('\n').unwrap().1).unwrap_err().to_string();
        assert_eq!(error, "there is no checksum of virt-advisor-linux-amd64.tar.gz");
    }

    /// What runs a third-party program, which `make check` leaves out.
    mod third_party {
        use super::*;

        #[test]
        fn krews_own_validator_accepts_the_manifest() {
            let manifest = manifest("v0.1.0", &sums()).unwrap();
            let output = validate(&manifest);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let without_v = validate(&manifest.replace("version: v0.1.0", "version: 0.1.0"));
            assert!(!without_v.status.success(), "the validator looks");
        }
    }
}
