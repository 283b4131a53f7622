//! A plan that is made just now, for the current cluster: of a profile, or the one that takes it back. Every change is a dry run.

use std::path::PathBuf;

use advisor::{Planner, Profile, profiles, restore};
use anyhow::{Context, bail};
use api::{
    VirtPlatformConfigSpec,
    virt_platform_config::{ORIGINAL, Options, Profile as ProfileName, Restore},
    virt_platform_plan_record::number,
};
use clap::builder::PossibleValuesParser;
use operator::make_plan_by;

use super::view::PlanView;
use crate::{connection::Connection, options};

#[derive(Debug, clap::Args)]
pub(crate) struct DraftArgs {
    /// A file with the options of the profile, as under spec.options; - for standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    options: Option<PathBuf>,
    /// Plan the way back, as spec.restore does: to the state before a VirtPlatformPlanRecord, or to the original one
    #[arg(long, value_name = "original|RECORD", conflicts_with = "options")]
    restore: Option<String>,
}

impl DraftArgs {
    /// Whether one of them is given.
    pub(super) fn is_given(&self) -> bool {
        self.options.is_some() || self.restore.is_some()
    }
}

pub(super) async fn plan(profile: &str, args: &DraftArgs, connection: &Connection) -> anyhow::Result<PlanView> {
    let known = || profiles::PROFILES.iter().map(|profile| profile.about().name).collect::<Vec<_>>().join(", ");
    let profile =
        profiles::find(profile).with_context(|| format!("there is no profile {profile}; there are: {}", known()))?;
    let planner = planner(profile, args)?;
    let api_server = connection.api_server("preview").await?;
    Ok(PlanView::from(&make_plan_by(&api_server, profile.about(), planner.as_ref()).await?))
}

/// Plans what a configuration with these options, or with this restore, would ask for.
fn planner(profile: &'static dyn Profile, args: &DraftArgs) -> anyhow::Result<Box<dyn Planner>> {
    let about = profile.about();
    let name = ProfileName::ALL.iter().find(|name| name.as_str() == about.name);
    let mut spec = VirtPlatformConfigSpec::new(*name.with_context(|| format!("there is no profile {}", about.name))?);
    spec.options = args.options.as_deref().map(options::read).transpose()?;
    if let Some(options) = &spec.options {
        check_members(profile, options)?;
    }
    if let Some(record) = &args.restore {
        if record != ORIGINAL && number(spec.profile, record).is_none() {
            bail!(
                "--restore {record}: must be {ORIGINAL} or the name of a VirtPlatformPlanRecord of this profile, for example {}-7",
                about.name
            );
        }
        spec.restore = Some(Restore { record: record.clone() });
    }
    Ok(restore::planner(profile, &spec)?)
}

/// The names of the profiles, for the command line to offer and to check.
pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(profiles::PROFILES.iter().map(|profile| profile.about().name))
}

/// Refuses options of another profile, as the API server does.
fn check_members(profile: &dyn Profile, options: &Options) -> anyhow::Result<()> {
    let given = serde_json::to_value(options)?;
    for member in given.as_object().into_iter().flatten().map(|(member, _)| member.as_str()) {
        let owner = profiles::PROFILES.iter().find(|owner| owner.about().options_member == Some(member));
        match owner.map(|owner| owner.about().name) {
            Some(owner) if owner == profile.about().name => {}
            Some(owner) => bail!("options.{member} can only be used with profile '{owner}'"),
            None => bail!("options.{member} belongs to no profile"),
        }
    }
    Ok(())
}
