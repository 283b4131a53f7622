//! `virt-advisor impact`: what a stored plan does to nodes and virtual machines, with the rights of whoever asks.

mod observe;
mod probe;
mod report;
mod text;

use std::io::{ErrorKind, Write};

use advisor::blast_radius::{PlanView, blast_radius};
use anyhow::{Context, bail};
use api::VirtPlatformConfig;
use clap::ValueEnum;
use operator::Class;
use serde_json::Value;

use crate::{gather::collect::CONFIG, reader::Reader, terminal};
use report::{Report, Reviewed};

#[derive(clap::Args)]
#[command(
    after_help = "Everything is read with your own rights. What you may not read is said, and nothing is assumed instead."
)]
pub(crate) struct Args {
    /// The profile whose plan is looked at [default: all that have a plan]
    profile: Option<String>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Ask KubeVirt itself, by a dry run of the eviction of every virtual machine; evicts nothing
    #[arg(long)]
    probe: bool,
    /// List every node and every virtual machine
    #[arg(long)]
    all: bool,
    /// The context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// How many seconds a request may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    request_timeout: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::connect(args.context.as_deref(), "impact", Some(args.request_timeout)).await?;
    let configs = configs(&reader, args.profile.as_deref()).await?;
    let (observed, read) = observe::observe(&reader).await;
    let may_pause = observe::may_pause(&reader).await;
    let mut plans = Vec::new();
    for config in &configs {
        let Some(status) = &config.status else { continue };
        let radius = blast_radius(PlanView { items: &status.items, risks: &status.risks }, &observed);
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
    let report = Report::new(plans, read);
    let text = match args.output {
        Output::Text => text::render(&report, terminal::width(), args.all),
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    match anstream::stdout().write_all(text.as_bytes()) {
        // A pipe that was closed is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("printing the result"),
    }
}

/// The configurations that have a plan.
async fn configs(reader: &Reader, profile: Option<&str>) -> anyhow::Result<Vec<VirtPlatformConfig>> {
    let path = format!("/apis/{}/{}/{}", CONFIG.group, CONFIG.versions[0], CONFIG.plural);
    let objects = match profile {
        Some(profile) => match reader.get(&format!("{path}/{profile}")).await {
            Err(error) if error.class == Class::NotFound => bail!("there is no VirtPlatformConfig {profile}"),
            answer => vec![answer?],
        },
        None => reader.list(&path).await?,
    };
    let parse = |object: Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        serde_json::from_value(object).with_context(|| format!("VirtPlatformConfig {name} cannot be read"))
    };
    let configs: Vec<VirtPlatformConfig> = objects.into_iter().map(parse).collect::<anyhow::Result<_>>()?;
    let has_plan = |config: &VirtPlatformConfig| config.status.as_ref().is_some_and(|status| !status.items.is_empty());
    match (configs.into_iter().filter(has_plan).collect::<Vec<_>>(), profile) {
        (planned, Some(profile)) if planned.is_empty() => {
            bail!("{profile} has no plan: set spec.action to DryRun, and the operator makes one")
        }
        (planned, _) => Ok(planned),
    }
}
