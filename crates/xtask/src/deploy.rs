//! Installs the operator of `config/default`, removes it, and writes it into files to hand out.
//!
//! Removing it leaves the namespace, which is not ours, and the definition with all objects of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use advisor::access::NAMESPACE;
use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{generate, image::reference::ImageReference, install::list, kubectl::Kubectl, managed, packages, root};

const FOLDER: &str = "config/default";

/// Kinds that are not deleted with the operator.
const KEPT: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The image of the operator, instead of the one in config/manager
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageReference>,
}

pub(crate) fn deploy(args: &Args) -> anyhow::Result<()> {
    let kubectl = Kubectl::of_person()?;
    if kubectl.read(&["get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "name"])?.is_empty() {
        kubectl.run(&["create", "-k", "config/namespace"])?;
    }
    let objects = parsed(&rendered(&kubectl, args.image.as_ref())?)?;
    kubectl.run_on(&["apply", "--server-side", "--force-conflicts"], &objects)
}

pub(crate) fn undeploy() -> anyhow::Result<()> {
    let kubectl = Kubectl::of_person()?;
    managed::warn(&list(&kubectl)?);
    let is_kept = |object: &Value| KEPT.iter().any(|kind| object["kind"] == *kind);
    let objects: Vec<Value> = kubectl.kustomize(FOLDER)?.into_iter().filter(|object| !is_kept(object)).collect();
    kubectl.run_on(&["delete", "--ignore-not-found"], &objects)?;
    println!(
        "The definition of VirtPlatformConfig is still there, and so is every object of it: see `make uninstall`."
    );
    Ok(())
}

pub(crate) fn build_installer(args: &Args) -> anyhow::Result<()> {
    let image = args.image.clone().map_or_else(default_image, Ok)?;
    for (path, text) in packages::installers(&image.to_string())? {
        generate::write(&path, &text)?;
    }
    Ok(())
}

/// The manifests, with another image if one is given.
fn rendered(kubectl: &Kubectl, image: Option<&ImageReference>) -> anyhow::Result<String> {
    let Some(image) = image else { return kubectl.read(&["kustomize", FOLDER]) };
    let overlay = tempfile::tempdir().context("creating a temporary folder")?;
    let kustomization = json!({
        "resources": [relative(overlay.path(), &root().join(FOLDER))?],
        "images": [image.kustomize_entry(&default_image()?.name)],
    });
    fs::write(overlay.path().join("kustomization.yaml"), kustomization.to_string())?;
    kubectl.read(&["kustomize", &overlay.path().display().to_string()])
}

/// The relative path from one folder to another. kustomize takes no absolute paths.
fn relative(from: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    let (from, to) = (from.canonicalize()?, to.canonicalize()?);
    let up = std::iter::repeat_n("..", from.components().count() - 1);
    Ok(up.collect::<PathBuf>().join(to.strip_prefix("/")?))
}

/// The image of the operator, unless somebody names another one.
pub(crate) fn default_image() -> anyhow::Result<ImageReference> {
    packages::default_image()
}

fn parsed(text: &str) -> anyhow::Result<Vec<Value>> {
    match serde_saphyr::from_multiple(text) {
        Ok(objects) => Ok(objects),
        Err(error) => bail!("reading what {FOLDER} renders to: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(manifests: &str) -> Vec<ImageReference> {
        let objects = parsed(manifests).unwrap();
        let containers = objects.iter().flat_map(|object| {
            object["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default()
        });
        containers.map(|container| container["image"].as_str().unwrap().parse().unwrap()).collect()
    }

    /// What runs a third-party program, which `make check` leaves out.
    mod third_party {
        use super::*;

        #[test]
        fn an_image_is_put_in_the_place_of_the_one_there_is() {
            let kubectl = Kubectl::pinned().unwrap();
            assert_eq!(images(&rendered(&kubectl, None).unwrap()), [default_image().unwrap()]);
            let image: ImageReference = "quay.io/me/advisor@sha256:0a1b".parse().unwrap();
            assert_eq!(images(&rendered(&kubectl, Some(&image)).unwrap()), [image]);
        }
    }
}
