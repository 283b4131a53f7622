//! `virt-advisor undo`: asks the operator for the plan that takes back what was applied. That plan is reviewed like any other.

use advisor::approving;
use anyhow::{Context, ensure};
use api::{virt_platform_config::ORIGINAL, virt_platform_plan_record};

use super::write::write;
use crate::{
    configs,
    connection::Connection,
    failure::{Failure, failed},
    program,
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  virt-advisor undo load-aware-rebalancing                 # take back the last plan
  virt-advisor undo load-aware-rebalancing --to original   # take back everything that the profile has changed
  virt-advisor plan load-aware-rebalancing --draft --restore original   # only look

It sets spec.restore and action DryRun. The operator makes the plan, and nothing is changed before you approve it.")]
pub(crate) struct Args {
    /// The profile whose changes are taken back
    profile: String,
    /// To the state before this VirtPlatformPlanRecord, or to the original one [default: before the last plan]
    #[arg(long, value_name = "original|RECORD")]
    to: Option<String>,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    let reader = connection.reader("undo").await?;
    let config = configs::get(&reader, &args.profile).await?;
    let last = config.status.as_ref().and_then(|status| status.record.as_ref()).map(|record| record.name.clone());
    let record = match &args.to {
        Some(record) => record.clone(),
        None => {
            last.with_context(|| format!("no plan of {} was applied yet, so there is nothing to undo", args.profile))?
        }
    };
    ensure!(
        record == ORIGINAL || virt_platform_plan_record::number(config.spec.profile, &record).is_some(),
        "--to {record}: must be {ORIGINAL} or the name of a VirtPlatformPlanRecord of this profile, for example {}-7",
        args.profile
    );
    if config.spec.restore.as_ref().is_some_and(|restore| restore.record == record) {
        let text = format!("{0} is set back to {record} already: {1} status {0}", args.profile, program::name());
        return Err(failed(Failure::Other, text));
    }
    write(&reader, config, |config| approving::undo(config, &record)).await?;
    terminal::print(&format!(
        "The operator plans the way back ({record}). Nothing is changed before you approve it.\nWait for it, read it and approve \
         it:\n  {1} wait {0} --for=planned\n  {1} plan {0}\n  {1} approve {0}\n",
        args.profile,
        program::name()
    ))
}
