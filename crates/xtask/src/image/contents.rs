//! What is in each of the two images, and what it is called.

use std::path::Path;

use anyhow::Context;
use devcluster::tools::{self, Program};

use super::{arch::Arch, commit::Commit, reference::ImageReference};
use crate::packages::VERSION;

/// Neither root nor anybody else on a node.
pub(crate) const USER: &str = "65532:65532";
pub(crate) const SOURCE: &str = "https://github.com/virt-advisor/virt-advisor";
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    Operator,
    Lab,
}

/// A file in the root directory of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl Image {
    /// The package whose program it runs. The program has the same name.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Image::Operator => "virt-advisor",
            Image::Lab => "rebalance-lab",
        }
    }

    /// The features that Cargo builds the program with. The operator needs no simulator.
    pub(crate) fn features(self) -> &'static [&'static str] {
        match self {
            Image::Operator => &["--no-default-features"],
            Image::Lab => &[],
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Image::Operator => "virt-advisor-operator",
            Image::Lab => "rebalance-lab",
        }
    }

    /// The file from which an engine builds it.
    pub(crate) fn dockerfile(self) -> &'static str {
        match self {
            Image::Operator => "Dockerfile",
            Image::Lab => "Dockerfile.lab",
        }
    }

    pub(crate) fn entrypoint(self) -> Vec<String> {
        vec![format!("/{}", self.package())]
    }

    /// The arguments of the program unless a pod has its own.
    pub(crate) fn command(self) -> Vec<String> {
        match self {
            Image::Operator => vec!["operator".to_owned()],
            Image::Lab => Vec::new(),
        }
    }

    /// The image that the manifests name.
    pub(crate) fn default_reference(self) -> anyhow::Result<ImageReference> {
        match self {
            Image::Operator => crate::deploy::default_image(),
            Image::Lab => lab::manifests::IMAGE.parse().map_err(anyhow::Error::msg),
        }
    }

    /// Programs of others that it runs. The stand-in for the descheduler operator starts the real descheduler.
    pub(crate) fn third_party(self) -> &'static [Program] {
        match self {
            Image::Operator => &[],
            Image::Lab => &[Program::Descheduler],
        }
    }

    /// Its files, sorted by name: our program, which was built before, and those of others, which are built if they have to be.
    pub(crate) fn files(self, program: &Path, arch: Arch) -> anyhow::Result<Vec<File>> {
        let read = |path: &Path| std::fs::read(path).with_context(|| format!("reading {}", path.display()));
        let mut files = vec![File { name: self.package(), bytes: read(program)? }];
        for &other in self.third_party() {
            let path = tools::ensure_for_linux(other, arch.name())?;
            files.push(File { name: other.name(), bytes: read(&path)? });
        }
        files.sort_by_key(|file| file.name);
        Ok(files)
    }

    /// What is written on the image, by the names that OCI gives it, sorted by name.
    pub(crate) fn labels(self, commit: &Commit) -> Vec<(String, String)> {
        let mut labels = vec![
            ("created", commit.time()),
            ("licenses", LICENSE.to_owned()),
            ("source", SOURCE.to_owned()),
            ("title", self.title().to_owned()),
            ("version", VERSION.to_owned()),
        ];
        labels.extend(commit.revision().map(|revision| ("revision", revision)));
        labels.sort();
        labels.into_iter().map(|(name, value)| (format!("org.opencontainers.image.{name}"), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The words of the instructions of a Dockerfile.
    fn instructions(image: Image) -> Vec<String> {
        let text = std::fs::read_to_string(crate::root().join(image.dockerfile())).unwrap();
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn an_engine_builds_from_the_dockerfile_what_the_archive_has() {
        for image in [Image::Operator, Image::Lab] {
            let mut names = vec![image.package()];
            names.extend(image.third_party().iter().map(|program| program.name()));
            names.sort_unstable();
            let entrypoint = serde_json::to_string(&image.entrypoint()).unwrap();
            let mut expected = vec![
                "FROM scratch".to_owned(),
                format!("COPY {} /", names.join(" ")),
                format!("USER {USER}"),
                format!("ENTRYPOINT {entrypoint}"),
            ];
            if !image.command().is_empty() {
                expected.push(format!("CMD {}", serde_json::to_string(&image.command()).unwrap()));
            }
            assert_eq!(instructions(image), expected, "{}", image.dockerfile());
        }
    }

    #[test]
    fn labels_tell_where_an_image_comes_from() {
        let commit = Commit::at("0123abcd", 1_700_000_000);
        let labels: BTreeMap<_, _> = Image::Operator.labels(&commit).into_iter().collect();
        let label = |name: &str| labels[&format!("org.opencontainers.image.{name}")].as_str();
        assert_eq!(label("title"), "virt-advisor-operator");
        assert_eq!(label("version"), VERSION);
        assert_eq!(label("revision"), "0123abcd");
        assert_eq!(label("source"), SOURCE);
        assert_eq!(label("licenses"), "Apache-2.0");
        assert_eq!(label("created"), "2023-11-14T22:13:20Z");
        assert_eq!(labels.len(), 6);
    }

    #[test]
    fn the_source_is_the_repository_that_the_plugin_names() {
        let plugin = std::fs::read_to_string(crate::root().join("config/krew/virt-advisor.yaml")).unwrap();
        assert!(plugin.contains(&format!("homepage: {SOURCE}\n")));
    }
}
