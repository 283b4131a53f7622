//! A cluster to develop against: a cluster of kind if that is installed, else a control plane of our own in the
//! background. It gets our definitions, stand-ins for the kinds of others, a platform at rest, and a stand-in that rolls
//! MachineConfigs out: in a pod, or in the process in the background.

mod host;
mod kind;
mod machines;
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
    /// The cluster of your kubeconfig instead, whose nodes have the image of the lab
    #[arg(long, conflicts_with = "own")]
    current: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(clap::Args)]
pub(crate) struct Place {
    /// Where our own control plane keeps its kubeconfig and its log [default: `dev` in the cache of third-party programs]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// End our own control plane when the process with this id ends, for tests
    #[arg(long, hide = true)]
    end_with: Option<u32>,
}

impl Place {
    fn folder(&self) -> anyhow::Result<PathBuf> {
        Ok(std::path::absolute(self.folder.clone().unwrap_or_else(|| tools::cache().join("dev")))?)
    }
}

pub(crate) fn setup(args: &Args) -> anyhow::Result<()> {
    if args.current {
        println!("== The cluster of your kubeconfig");
        let kubectl = Kubectl::of_person()?;
        if fill(&kubectl)? == Pools::Ours {
            machines::install(&kubectl)?;
        }
        println!("\nReady.");
        return Ok(());
    }
    let kubectl = Kubectl::pinned()?;
    match !args.own && kind::is_installed() {
        true => {
            println!("== A cluster of kind, {}", kind::CLUSTER);
            kind::create()?;
            let kubectl = kubectl.with_flag(format!("--context={}", kind::CONTEXT));
            if fill(&kubectl)? == Pools::Ours {
                println!("\n== The image of the lab");
                machines::load_into_kind()?;
                machines::install(&kubectl)?;
            }
            println!("\nReady. The current context of your kubeconfig is {}.", kind::CONTEXT);
            println!("Run the operator with `make run`; `make kind-delete` removes the cluster.");
        }
        false => {
            println!("== A control plane of our own, in the background");
            let kubeconfig = host::start(&args.place.folder()?, args.place.end_with)?;
            let _ = fill(&kubectl.with_flag(format!("--kubeconfig={}", kubeconfig.display())))?;
            println!("\nReady. In every terminal that shall use it:\n");
            println!("  export KUBECONFIG={}\n", kubeconfig.display());
            println!(
                "Run the operator with `make run`; `make kind-delete` ends the control plane and all that is in it."
            );
        }
    }
    Ok(())
}

/// Who looks after MachineConfigPools.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pools {
    /// Their definition is a stand-in.
    Ours,
    /// A real machine config operator.
    OfOthers,
}

fn fill(kubectl: &Kubectl) -> anyhow::Result<Pools> {
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
    host::run(&place.folder()?, place.end_with).await
}
