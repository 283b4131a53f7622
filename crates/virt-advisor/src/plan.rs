//! `virt-advisor plan`: the plan that the operator stored, or with `--draft` one that is made just now. `preview` is the second alone.
//! Neither writes anything.

pub(crate) mod diff_text;
mod draft;
mod forecast;
pub(crate) mod text;
pub(crate) mod view;

use std::{path::PathBuf, process::ExitCode};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    configs::{self, Listed},
    connection::Connection,
    failure::{Failure, failed},
    output::{Document, OutputArgs},
    program, unreadable,
};
use draft::DraftArgs;
use forecast::PlanForecast;
use view::PlanView;

/// The plans that were asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanReport {
    pub(crate) plans: Vec<PlanView>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor plan
  virt-advisor plan load-aware-rebalancing
  virt-advisor plan load-aware-rebalancing --draft --options options.yaml
  virt-advisor plan load-aware-rebalancing --forecast forecast.json

The stored plan needs the right to read VirtPlatformConfigs. A fresh one needs the rights of its changes, because it is made by dry \
                          runs; it writes nothing and needs no operator.")]
pub(crate) struct Args {
    /// The profile whose plan is shown [default: all that have a plan]
    profile: Option<String>,
    /// Make a fresh plan instead of showing the stored one
    #[arg(long, requires = "profile")]
    draft: bool,
    #[command(flatten)]
    options: DraftArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Also show the forecast in this file, as `forecast --save` wrote it, if it is about this plan
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "profile")]
    forecast: Option<PathBuf>,
    /// End with exit code 1 if the plan changes anything
    #[arg(long)]
    exit_code: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor preview load-aware-rebalancing
  virt-advisor preview virt-higher-density --options options.yaml
  virt-advisor preview load-aware-rebalancing --restore original")]
pub(crate) struct PreviewArgs {
    /// The profile to plan
    #[arg(value_parser = draft::names())]
    profile: String,
    #[command(flatten)]
    options: DraftArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.draft || !args.options.is_given(),
        "--options and --restore are for a fresh plan: add --draft"
    );
    let mut plans = match &args.profile {
        Some(profile) if args.draft => vec![draft::plan(profile, &args.options, connection).await?],
        profile => stored(profile.as_deref(), connection).await?,
    };
    if let Some(file) = &args.forecast {
        for plan in &mut plans {
            plan.forecast = Some(PlanForecast::read(file, plan)?);
        }
    }
    let changes = plans.iter().any(|plan| plan.has_changes);
    print(plans, &args.output)?;
    Ok(if args.exit_code && changes { ExitCode::from(Failure::Found as u8) } else { ExitCode::SUCCESS })
}

pub(crate) async fn preview(args: &PreviewArgs, connection: &Connection) -> anyhow::Result<()> {
    print(vec![draft::plan(&args.profile, &args.options, connection).await?], &args.output)
}

async fn stored(profile: Option<&str>, connection: &Connection) -> anyhow::Result<Vec<PlanView>> {
    let reader = connection.reader("plan").await?;
    let Listed { configs, unreadable } = configs::chosen(&reader, profile).await?;
    unreadable::warn(&unreadable);
    let plans: Vec<_> = configs.iter().filter_map(|config| PlanView::stored(config, Timestamp::now())).collect();
    match profile {
        Some(profile) if plans.is_empty() => Err(failed(
            Failure::NotFound,
            format!(
                "{profile} has no plan: set spec.action to DryRun, and the operator makes one; or make one here: {} plan {profile} \
                 --draft",
                program::name()
            ),
        )),
        _ => Ok(plans),
    }
}

fn print(plans: Vec<PlanView>, output: &OutputArgs) -> anyhow::Result<()> {
    let document = Document::new("PlanReport", PlanReport { plans });
    output.print(&document, || render(&document.body, terminal::width()))
}

fn render(report: &PlanReport, width: usize) -> String {
    if report.plans.is_empty() {
        return "No configuration has a plan: set spec.action of one to DryRun, and the operator makes one.\n"
            .to_owned();
    }
    report.plans.iter().map(|plan| text::render(plan, width)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn a_stored_plan_is_shown_decoded_with_what_it_waits_for() {
        let now = golden::now();
        let plans: Vec<_> = golden::configs().iter().filter_map(|config| PlanView::stored(config, now)).collect();
        let report = PlanReport { plans };
        golden::assert("plan", |width| render(&report, width));
    }

    #[test]
    fn a_stored_plan_and_the_draft_that_it_came_from_show_the_same_changes() {
        let config = golden::configs().remove(2);
        let stored = PlanView::stored(&config, golden::now()).unwrap();
        let draft = PlanView::from(&golden::plan());
        assert_eq!(stored.plan_digest, draft.plan_digest);
        let shown = |plan: &PlanView| plan.items.iter().map(|item| (item.verb, item.item.clone())).collect::<Vec<_>>();
        assert_eq!(shown(&stored), shown(&draft));
        assert_eq!(stored.has_changes, draft.has_changes);
    }

    #[test]
    fn nobody_is_told_to_approve_a_plan_that_is_out_of_date() {
        let mut config = golden::configs().remove(2);
        let shown =
            |config: &api::VirtPlatformConfig| text::render(&PlanView::stored(config, golden::now()).unwrap(), 80);
        assert!(shown(&config).ends_with("Approve it with: virt-advisor approve load-aware-rebalancing\n"));
        config.status.as_mut().unwrap().conditions[0].reason = advisor::machine::PLAN_STALE.into();
        let text = shown(&config);
        assert!(!text.contains("Approve it with"), "{text}");
        assert!(text.contains("will not be applied: have the plan made again"), "{text}");
    }

    #[test]
    fn without_a_plan_it_says_so() {
        assert!(render(&PlanReport { plans: Vec::new() }, 80).starts_with("No configuration has a plan"));
    }
}
