//! `virt-advisor impact`: what a stored plan does to nodes and virtual machines, with the rights of whoever asks.

pub(crate) mod observe;
mod probe;
pub(crate) mod report;
pub(crate) mod text;

use advisor::blast_radius::{PlanContents, blast_radius};
use api::VirtPlatformConfig;

use crate::{
    configs::{self, Listed},
    connection::Connection,
    failure::{Failure, failed},
    output::{Document, OutputArgs},
    reader::Reader,
    unreadable,
};
use report::{ImpactReport, Reviewed};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  virt-advisor impact load-aware-rebalancing
  virt-advisor impact load-aware-rebalancing --probe
  virt-advisor impact load-aware-rebalancing -n shop    only the virtual machines of a namespace

Everything is read with your own rights. What you may not read is said, and nothing is assumed instead.")]
pub(crate) struct Args {
    /// The profile whose plan is looked at [default: all that have a plan]
    profile: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// Ask KubeVirt itself, by a dry run of the eviction of every virtual machine; evicts nothing
    #[arg(long)]
    probe: bool,
    /// List every node and every virtual machine
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    let reader = connection.reader("impact").await?;
    let configs = planned(&reader, args.profile.as_deref()).await?;
    let (observed, read) = observe::observe_in(&reader, connection.namespace.as_deref()).await;
    let may_pause = observe::may_pause(&reader).await;
    let mut plans = Vec::new();
    for config in &configs {
        let Some(status) = &config.status else { continue };
        let radius = blast_radius(PlanContents { items: &status.items, risks: &status.risks }, &observed);
        let probe = match args.probe && radius.reboots {
            true => Some(probe::probe(&reader, &radius, &observed).await),
            false => None,
        };
        plans.push(Reviewed {
            profile: config.spec.profile.as_str(),
            phase: status.phase,
            plan_digest: status.plan_digest.as_deref(),
            impact: radius,
            may_pause,
            probe,
        });
    }
    let document = Document::new("ImpactReport", ImpactReport { plans, read });
    args.output.print(&document, || text::render(&document.body, terminal::width(), args.all))
}

/// The configurations that have a plan.
async fn planned(reader: &Reader, profile: Option<&str>) -> anyhow::Result<Vec<VirtPlatformConfig>> {
    let Listed { configs, unreadable } = configs::chosen(reader, profile).await?;
    unreadable::warn(&unreadable);
    let has_plan = |config: &VirtPlatformConfig| config.status.as_ref().is_some_and(|status| !status.items.is_empty());
    match (configs.into_iter().filter(has_plan).collect::<Vec<_>>(), profile) {
        (planned, Some(profile)) if planned.is_empty() => {
            let text = format!("{profile} has no plan: set spec.action to DryRun, and the operator makes one");
            Err(failed(Failure::NotFound, text))
        }
        (planned, _) => Ok(planned),
    }
}
