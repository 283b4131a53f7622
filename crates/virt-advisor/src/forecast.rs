//! `virt-advisor forecast`: what the plan would do to a cluster with the load of a scenario; with `--check`, whether it did.

mod check;
mod document;
mod observe;
mod prometheus;
mod settings;
#[cfg(test)]
mod test_server;
mod text;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use advisor::kube_descheduler::Release;
use anyhow::Context;
use api::VirtPlatformConfig;
use jiff::Timestamp;
use serde_json::Value;
use sim::{
    Scenario,
    forecast::{ForecastOptions, Setting, scenario_digest},
    units::Span,
};
use terminal::{Terminal, progress_bar};

use crate::{
    configs,
    connection::Connection,
    failure::{Failure, failed},
    output::{Document, OutputArgs},
    program,
};
#[cfg(test)]
pub(crate) use check::CheckReport;
pub(crate) use document::ForecastReport;
use settings::Planned;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor forecast load-aware-rebalancing --scenario cluster.yaml
  virt-advisor forecast load-aware-rebalancing --scenario cluster.yaml --save forecast.json
  virt-advisor forecast load-aware-rebalancing --check --prometheus http://localhost:9090

`rebalance-lab import` makes a scenario of a cluster with its load; those of `rebalance-lab sim` are taken, too. The settings are those \
                          of the stored plan. `virt-advisor approve --forecast FILE` keeps what was saved with the approval.

--check ends with exit code 1 if a figure is out of its interval, and with 8 if none of them is known yet.")]
pub(crate) struct Args {
    /// The profile whose plan it is about
    profile: String,
    /// The scenario with the cluster and its load; - for standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, required_unless_present = "check")]
    scenario: Option<PathBuf>,
    /// How many runs to simulate
    #[arg(long, value_name = "NUMBER", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// How far to look, for example 12h [default: as far as the scenario, from 2h to 1d]
    #[arg(long, value_name = "TIME")]
    horizon: Option<Span>,
    /// Leave out what other thresholds and limits would do
    #[arg(long)]
    no_alternatives: bool,
    /// Also write the forecast to this file, for approve --forecast
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "check")]
    save: Option<PathBuf>,
    #[command(flatten)]
    check: check::CheckArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<ExitCode> {
    if args.check.check {
        return check::run(&args.profile, &args.check, &args.output, connection).await;
    }
    anyhow::ensure!(!args.check.is_given(), "--prometheus and --forecast are for what has happened: add --check");
    let path = args.scenario.as_deref().context("--scenario names the cluster and its load")?;
    let (scenario, digest) = read(path)?;
    let reader = connection.reader("forecast").await?;
    let config = configs::get(&reader, &args.profile).await?;
    let release = observe::release(&reader).await;
    let live = observe::descheduler(&reader, &config).await;
    let mut planned = planned(&config, live.as_ref().ok().and_then(Option::as_ref), release)?;
    if let Err(why) = live {
        planned
            .assumed
            .push(format!("Nobody has set more in the KubeDescheduler than the plan does: it cannot be read: {why}."));
    }
    let report = forecast(args, &config, &scenario, digest, planned, Terminal::of_this_process())?;
    let document = Document::new("Forecast", report);
    if let Some(file) = &args.save {
        let text = serde_json::to_string_pretty(&document)? + "\n";
        fs::write(file, text).with_context(|| format!("writing the forecast to {}", file.display()))?;
    }
    let next = next(args);
    args.output.print(&document, || text::render(&document.body, terminal::width()) + &next)?;
    Ok(ExitCode::SUCCESS)
}

/// What to do with it.
fn next(args: &Args) -> String {
    let (program, profile) = (program::name(), &args.profile);
    match &args.save {
        Some(file) => {
            format!("\nApprove the plan with it: {program} approve {profile} --forecast {}\n", file.display())
        }
        None => "\nNothing was written. --save FILE keeps it for approve --forecast.\n".to_owned(),
    }
}

fn planned(config: &VirtPlatformConfig, live: Option<&Value>, release: Option<Release>) -> anyhow::Result<Planned> {
    let profile = config.spec.profile.as_str();
    let status = config.status.as_ref().filter(|status| !status.items.is_empty());
    let Some(status) = status else {
        let text = format!("{profile} has no plan: set spec.action to DryRun, and the operator makes one");
        return Err(failed(Failure::NotFound, text));
    };
    settings::planned(status, live, release).map_err(|error| failed(Failure::Other, format!("{profile}: {error}")))
}

fn forecast(
    args: &Args,
    config: &VirtPlatformConfig,
    scenario: &Scenario,
    scenario_digest: String,
    planned: Planned,
    terminal: Terminal,
) -> anyhow::Result<ForecastReport> {
    let plan = planned.settings;
    let alternatives = if args.no_alternatives { Vec::new() } else { Setting::usual(&plan) };
    let options = ForecastOptions {
        seeds: 0..args.seeds,
        horizon: args.horizon,
        alternatives,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let forecast = sim::forecast::forecast(scenario, &plan, &options, &progress_bar(terminal, "runs"))?;
    let digest = config.status.as_ref().and_then(|status| status.plan_digest.clone());
    let digest = digest.with_context(|| format!("the plan of {} has no digest", args.profile))?;
    Ok(ForecastReport::new(&args.profile, digest, Timestamp::now(), scenario_digest, planned.assumed, forecast))
}

/// The one scenario of a file, and the digest of its text.
fn read(path: &Path) -> anyhow::Result<(Scenario, String)> {
    let doing = || format!("reading the scenario {}", path.display());
    let file = match path.to_str() {
        Some("-") => {
            let mut file = Vec::new();
            std::io::stdin().read_to_end(&mut file).map(|_| file)
        }
        _ => fs::read(path),
    };
    let text = sim::scenario::text_of(file.with_context(doing)?).with_context(doing)?;
    let mut scenarios = sim::scenario::parse(&text).with_context(doing)?;
    anyhow::ensure!(scenarios.len() == 1, "{} has {} scenarios: a forecast needs one", path.display(), scenarios.len());
    Ok((scenarios.remove(0), scenario_digest(&text)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::Parser;

    use super::*;
    use crate::{Cli, Command, golden};

    const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/scenarios/hotspot.yaml");

    fn args(more: &[&str]) -> Args {
        let words = [
            "virt-advisor",
            "forecast",
            "load-aware-rebalancing",
            "--scenario",
            SCENARIO,
            "--seeds",
            "8",
            "--horizon",
            "1h",
        ];
        match Cli::try_parse_from(words.iter().chain(more)).unwrap().command {
            Command::Forecast(args) => args,
            _ => panic!("another command"),
        }
    }

    fn report(config: &VirtPlatformConfig) -> ForecastReport {
        let args = args(&[]);
        let (scenario, digest) = read(args.scenario.as_deref().unwrap()).unwrap();
        let planned = planned(config, None, Some(Release::V5_1)).unwrap();
        let mut report = forecast(&args, config, &scenario, digest, planned, Terminal::default()).unwrap();
        report.summary.made_at.0 = golden::now();
        report
    }

    #[test]
    fn a_compressed_scenario_is_the_same_scenario() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut encoder = flate2::write::GzEncoder::new(fs::File::create(file.path()).unwrap(), Default::default());
        encoder.write_all(&fs::read(SCENARIO).unwrap()).unwrap();
        encoder.finish().unwrap();
        assert_eq!(read(file.path()).unwrap(), read(Path::new(SCENARIO)).unwrap());
    }

    #[test]
    fn the_forecast_of_a_plan_is_shown_with_intervals_reasons_and_alternatives() {
        let report = report(&golden::configs().remove(2));
        golden::assert("forecast", |width| text::render(&report, width));
    }

    #[test]
    fn what_is_saved_is_what_an_approval_takes_and_what_is_compared() {
        let report = report(&golden::configs().remove(2));
        let (digest, figures) = (report.plan_digest.clone(), document::figures(&report.forecast));
        let (summary, file) = (report.summary.clone(), tempfile::NamedTempFile::new().unwrap());
        let saved = serde_json::to_string_pretty(&Document::new("Forecast", report)).unwrap();
        fs::write(file.path(), saved).unwrap();
        let read = crate::decide::forecast_file::read(file.path(), "load-aware-rebalancing", &digest).unwrap();
        assert_eq!(read, summary);
        let compared = document::of_summary(&read);
        assert_eq!(compared.len(), figures.len());
        for ((name, figure), (known, kept)) in figures.iter().zip(&compared) {
            assert!(name == known && (figure.high - kept.high).abs() <= 1e-4, "{name}: {figure:?} {kept:?}");
        }
    }

    #[test]
    fn a_check_needs_no_scenario_and_a_forecast_does() {
        let parsed = |words: &[&str]| Cli::try_parse_from([&["virt-advisor", "forecast", "p"], words].concat()).is_ok();
        assert!(parsed(&["--check"]) && parsed(&["--check", "--prometheus", "http://p:9090"]));
        assert!(parsed(&["--scenario", "f", "--save", "g"]));
        for wrong in [&[][..], &["--check", "--save", "f"], &["--check", "--scenario", "f"]] {
            assert!(!parsed(wrong), "{wrong:?}");
        }
    }
}
