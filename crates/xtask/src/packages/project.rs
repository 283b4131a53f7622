//! Who publishes the project and where: `config/project.yaml`. The version is that of the workspace, and of nothing else.

use std::fs;

use anyhow::Context;
use serde::Deserialize;

use crate::{codeowners::Owners, image::reference::ImageReference, root};

const FILE: &str = "config/project.yaml";

/// The version of everything in this tree, as people write it: with a `v`.
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Project {
    pub(crate) repository: String,
    pub(crate) images: Images,
    pub(crate) provider: Provider,
    pub(crate) maintainers: Vec<Maintainer>,
    pub(crate) owners: Owners,
}

/// Names of images, without their tags.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Images {
    pub(crate) operator: String,
    pub(crate) must_gather: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) url: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Maintainer {
    pub(crate) name: String,
    pub(crate) email: String,
}

impl Project {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let text = fs::read_to_string(root().join(FILE)).with_context(|| format!("reading {FILE}"))?;
        serde_saphyr::from_str(&text).with_context(|| format!("reading {FILE}"))
    }

    /// The image of the operator in this version.
    pub(crate) fn operator_image(&self) -> anyhow::Result<ImageReference> {
        of_this_version(&self.images.operator)
    }

    pub(crate) fn must_gather_image(&self) -> anyhow::Result<ImageReference> {
        of_this_version(&self.images.must_gather)
    }
}

fn of_this_version(name: &str) -> anyhow::Result<ImageReference> {
    let image = format!("{name}:{VERSION}");
    image.parse().map_err(|error: String| anyhow::anyhow!("{FILE}: {image}: {error}"))
}
