//! The images of the operator and of the lab: what is in them, how an engine builds them, and how they are written without one.
//! `contents` says what an image is, `static_build` builds its program. From there, `engine` hands files to podman, buildah or
//! docker, and `write` makes a file of `layer`, `oci` and `archive`, with its bill of materials and where it comes from.

pub(crate) mod arch;
mod archive;
mod cargo_packages;
mod commit;
pub(crate) mod contents;
pub(crate) mod digest;
pub(crate) mod engine;
mod go_build_info;
mod layer;
mod oci;
mod provenance;
pub(crate) mod reference;
mod runtime;
mod sbom;
pub(crate) mod static_build;
pub(crate) mod write;

use std::path::PathBuf;

use arch::Arch;
use contents::Image;
use reference::ImageReference;

/// Which image, and what it is called.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The name of the image, instead of the one in config/manager, or in config/lab for the lab
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageReference>,
    /// The image of the lab instead of that of the operator
    #[arg(long)]
    lab: bool,
}

impl Which {
    fn image(&self) -> Image {
        if self.lab { Image::Lab } else { Image::Operator }
    }

    fn reference(&self) -> anyhow::Result<ImageReference> {
        match &self.image {
            Some(image) => Ok(image.clone()),
            None => self.image().default_reference(),
        }
    }
}

/// Where the program of an image comes from.
#[derive(Debug, clap::Args)]
pub(crate) struct ProgramSource {
    /// The profile of Cargo with which it is built
    #[arg(long, default_value = "release")]
    profile: String,
    /// This file instead: a program that was built before, for the same architecture
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

impl ProgramSource {
    fn path(&self, image: Image, arch: Arch) -> anyhow::Result<PathBuf> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => static_build::build(image, arch, &self.profile),
        }
    }
}

/// As people read it.
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
