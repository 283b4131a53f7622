//! The stand-in for the machine config operator in a cluster that runs pods.

use std::env;

use super::kind;
use crate::{image, kubectl::Kubectl};

const MANIFESTS: &str = "config/dev/machine-config-operator.yaml";

pub(super) fn install(kubectl: &Kubectl) -> anyhow::Result<()> {
    println!("\n== A stand-in for the machine config operator, and machines for it");
    kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", MANIFESTS])
}

/// Builds the image of the lab, in which the stand-in is, and hands it to kind. `SKIP_IMAGE_BUILD=true`: it is there.
pub(super) fn load_into_kind() -> anyhow::Result<()> {
    if env::var("SKIP_IMAGE_BUILD").is_ok_and(|value| value == "true") {
        println!("SKIP_IMAGE_BUILD is true: it is taken as it is");
        return Ok(());
    }
    let archive = image::write::lab("dev")?;
    kind::load(&archive)
}
