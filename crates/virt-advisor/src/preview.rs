//! `virt-advisor preview`: the plan of a profile for the current cluster, or the one that takes it back, without an operator and
//! without a write.

use std::{
    io::{ErrorKind, Write},
    path::PathBuf,
    time::Duration,
};

use advisor::{Planner, Profile, profiles, restore};
use anyhow::{Context, bail};
use api::{
    VirtPlatformConfigSpec,
    virt_platform_config::{ORIGINAL, Options, Profile as ProfileName, Restore},
    virt_platform_plan_record::number,
};
use clap::{ValueEnum, builder::PossibleValuesParser};
use operator::{ApiServer, make_plan_by};
use process::cluster;

use crate::{options, report::Report, text};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The profile to plan
    #[arg(value_parser = names())]
    profile: String,
    /// A file with the options of the profile, as under spec.options; - for standard input
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,
    /// Plan the way back, as spec.restore does: to the state before a VirtPlatformPlanRecord, or to the original one
    #[arg(long, value_name = "original|RECORD", conflicts_with = "options")]
    restore: Option<String>,
    /// How to print the plan
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// The context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// How many seconds a request may take [default: 10 for reads, 30 for dry runs]
    #[arg(long, value_name = "SECONDS")]
    request_timeout: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Yaml,
    Json,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let profile = profiles::find(&args.profile).with_context(|| format!("there is no profile {}", args.profile))?;
    let planner = planner(profile, args)?;
    let mut kubernetes = ApiServer::new(cluster::config(args.context.as_deref()).await?, "preview")?;
    if let Some(seconds) = args.request_timeout {
        kubernetes = kubernetes.with_deadline(Duration::from_secs(seconds));
    }
    let plan = make_plan_by(&kubernetes, profile.about(), planner.as_ref()).await?;
    let text = match args.output {
        Output::Text => text::render(&plan),
        Output::Yaml => serde_saphyr::to_string(&Report::new(&plan))?,
        Output::Json => serde_json::to_string_pretty(&Report::new(&plan))? + "\n",
    };
    match anstream::stdout().write_all(text.as_bytes()) {
        // A pipe that was closed is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("printing the plan"),
    }
}

/// Plans what a configuration with these options, or with this restore, would ask for.
fn planner(profile: &'static dyn Profile, args: &Args) -> anyhow::Result<Box<dyn Planner>> {
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
fn names() -> PossibleValuesParser {
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
