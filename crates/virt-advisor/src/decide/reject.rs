//! `virt-advisor reject`: turns a plan down, with a reason that everybody can read.

use advisor::approving;

use super::{PlanArgs, undecidable, write::write};
use crate::{configs, connection::Connection};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  virt-advisor reject load-aware-rebalancing --reason 'not before the audit'

A plan that is being applied is stopped: what was written stays, and nothing else is. Once everything is written, only pausing the
pools stops the rollout.")]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArgs,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    let reader = connection.reader("reject").await?;
    let config = configs::get(&reader, &args.plan.profile).await?;
    let digest =
        approving::plan_to_reject(&config, args.plan.digest.as_deref()).map_err(|error| undecidable(&error))?;
    let (digest, reason) = (digest.to_owned(), args.plan.reason.as_deref());
    write(&reader, config, |config| approving::rejection(config, &digest, reason)).await?;
    terminal::print(&format!(
        "Rejected plan {digest} of {profile}. Nothing is applied until another plan replaces it.\n",
        profile = args.plan.profile
    ))
}
