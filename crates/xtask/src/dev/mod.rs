//! A cluster to develop against: a cluster of kind if that is installed, else a control plane of our own in the
//! background. It gets our definitions, stand-ins for the kinds of others, and a platform at rest.

mod host;
mod kind;
mod platform;

use std::path::PathBuf;

use devcluster::tools;

use crate::{install, kubectl::Kubectl};

/// The context's namespace, so that `kubectl get kubedescheduler cluster` finds it.
const CONTEXT_NAMESPACE: &str = "openshift-kube-descheduler-operator";

const LAB_DEFINITION: &str = "config/crd/simulation.node-classifier.io_virtualmachines.yaml";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Our own control plane, even where there is kind
    #[arg(long)]
    own: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(clap::Args)]
pub(crate) struct Place {
    /// Where our own control plane keeps its kubeconfig and its log [default: `dev` in the cache of third-party programs]
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Place {
    fn folder(&self) -> anyhow::Result<PathBuf> {
        Ok(std::path::absolute(self.folder.clone().unwrap_or_else(|| tools::cache().join("dev")))?)
    }
}

pub(crate) fn setup(args: &Args) -> anyhow::Result<()> {
    let kubectl = Kubectl::current()?;
    match !args.own && kind::is_installed() {
        true => {
            println!("== A cluster of kind, {}", kind::CLUSTER);
            kind::create()?;
            fill(&kubectl.with_flag(format!("--context={}", kind::CONTEXT)))?;
            println!("\nReady. The current context of your kubeconfig is {}.", kind::CONTEXT);
            println!("Run the operator with `make run`; `make kind-delete` removes the cluster.");
        }
        false => {
            println!("== A control plane of our own, in the background");
            let kubeconfig = host::start(&args.place.folder()?)?;
            fill(&kubectl.with_flag(format!("--kubeconfig={}", kubeconfig.display())))?;
            println!("\nReady. In every terminal that shall use it:\n");
            println!("  export KUBECONFIG={}\n", kubeconfig.display());
            println!(
                "Run the operator with `make run`; `make kind-delete` ends the control plane and all that is in it."
            );
        }
    }
    Ok(())
}

fn fill(kubectl: &Kubectl) -> anyhow::Result<()> {
    println!("\n== Our definitions");
    install::install_with(kubectl)?;
    kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", LAB_DEFINITION])?;
    platform::install(kubectl)
}

pub(crate) fn teardown(args: &Args) -> anyhow::Result<()> {
    host::stop(&args.place.folder()?)?;
    if args.own { Ok(()) } else { kind::delete() }
}

/// The process in the background.
pub(crate) async fn host(place: &Place) -> anyhow::Result<()> {
    host::run(&place.folder()?).await
}
