//! `virt-advisor forecast --check`: compares the forecast that was approved with what has happened since.

use std::{path::PathBuf, process::ExitCode};

use api::{
    VirtPlatformPlanRecord,
    virt_platform_config::{ForecastSummary, Phase},
    virt_platform_plan_record::Outcome,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use sim::{
    forecast::{CheckResult, Checked, Observation, check},
    units::Span,
};
use terminal::table::{self, Cell};

use super::{
    document,
    observe::{self, EndedMigration},
    prometheus::{self, Points, Prometheus, PrometheusArgs},
};
use crate::{
    configs,
    connection::Connection,
    decide::forecast_file,
    failure::{Failure, failed},
    history,
    output::{Document, OutputArgs},
    program,
    prose::{BOLD, outdented, section},
    reader::Reader,
};

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// Compare the forecast that was approved with what has happened since the plan was in effect
    #[arg(long, conflicts_with = "scenario")]
    pub(super) check: bool,
    /// The forecast to compare [default: the one in the record of the plan]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    forecast: Option<PathBuf>,
    #[command(flatten)]
    prometheus: PrometheusArgs,
    /// How many times faster than the clock the cluster runs, if it is a lab
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    time_scale: f64,
}

impl CheckArgs {
    /// Whether something is given that only a check needs.
    pub(super) fn is_given(&self) -> bool {
        self.prometheus.prometheus.is_some() || self.forecast.is_some()
    }
}

/// How a forecast compares with what happened.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckReport {
    pub(crate) profile: String,
    pub(crate) plan_digest: String,
    /// When the plan was in effect.
    #[schemars(with = "String")]
    pub(crate) since: Timestamp,
    /// Seconds since then.
    pub(crate) elapsed_seconds: u64,
    pub(crate) horizon_seconds: u64,
    pub(crate) figures: Vec<Checked>,
    /// What could not be read, and why.
    pub(crate) unread: Vec<String>,
}

pub(super) async fn run(
    profile: &str,
    args: &CheckArgs,
    output: &OutputArgs,
    connection: &Connection,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.time_scale > 0.0 && args.time_scale.is_finite(), "--time-scale is not a number above 0");
    let reader = &connection.reader("forecast").await?;
    let record = record(reader, profile).await?;
    let forecast = match &args.forecast {
        Some(file) => forecast_file::read(file, profile, &record.spec.plan_digest)?,
        None => approved(&record)?,
    };
    let since = finished(&record, profile)?;
    let now = Timestamp::now();
    let horizon = u64::try_from(forecast.horizon_seconds).unwrap_or_default();
    let client = match &args.prometheus.prometheus {
        Some(url) => {
            Some(Prometheus::connect(url, &args.prometheus, &connection.selection().config().await?.auth_info)?)
        }
        None => None,
    };
    let (seen, unread) = observation(reader, args, client, (since, now), horizon).await;
    let report = CheckReport {
        profile: profile.to_owned(),
        plan_digest: record.spec.plan_digest.clone(),
        since,
        elapsed_seconds: seen.elapsed,
        horizon_seconds: horizon,
        figures: check(&document::of_summary(&forecast), horizon, &seen),
        unread,
    };
    let document = Document::new("ForecastCheck", report);
    output.print(&document, || render(&document.body, terminal::width()))?;
    Ok(exit_code(&document.body.figures))
}

/// 1 if a figure is out of its interval, 8 if none is known yet.
fn exit_code(figures: &[Checked]) -> ExitCode {
    let has = |result: CheckResult| figures.iter().any(|checked| checked.result == result);
    match () {
        () if has(CheckResult::Out) => ExitCode::from(Failure::Found as u8),
        () if has(CheckResult::In) => ExitCode::SUCCESS,
        () => ExitCode::from(Failure::TimedOut as u8),
    }
}

/// The record of the plan that was applied last.
async fn record(reader: &Reader, profile: &str) -> anyhow::Result<VirtPlatformPlanRecord> {
    let config = configs::get(reader, profile).await?;
    let status = config.status.unwrap_or_default();
    let name = status.record.as_ref().filter(|record| record.created).map(|record| record.name.clone());
    let Some(name) = name else {
        let phase = status.phase.unwrap_or(Phase::Pending);
        let text = format!("no plan of {profile} was applied, so there is nothing to compare: its phase is {phase}");
        return Err(failed(Failure::NotFound, text));
    };
    history::named(reader, &name).await
}

fn approved(record: &VirtPlatformPlanRecord) -> anyhow::Result<ForecastSummary> {
    let forecast = record.spec.approval.as_ref().and_then(|approval| approval.forecast.clone());
    let name = record.metadata.name.clone().unwrap_or_default();
    let none = || {
        let text = format!(
            "the plan of {name} was approved without a forecast: name the file with --forecast, and next time {} approve \
             --forecast",
            program::name()
        );
        failed(Failure::NotFound, text)
    };
    forecast.ok_or_else(none)
}

/// When the plan was in effect.
fn finished(record: &VirtPlatformPlanRecord, profile: &str) -> anyhow::Result<Timestamp> {
    let status = record.status.clone().unwrap_or_default();
    match (status.outcome, status.finished_at) {
        (Some(Outcome::Completed), Some(time)) => Ok(time.0),
        (outcome, _) => {
            let outcome = outcome.unwrap_or(Outcome::Running);
            let failure = if outcome == Outcome::Running { Failure::TimedOut } else { Failure::NotReached };
            let text = format!(
                "the plan of {profile} is not in effect, it is {outcome}: wait for it with `{} wait {profile}`",
                program::name()
            );
            Err(failed(failure, text))
        }
    }
}

/// What was seen since the plan was in effect, and what could not be read.
async fn observation(
    reader: &Reader,
    args: &CheckArgs,
    client: Option<Prometheus>,
    (since, now): (Timestamp, Timestamp),
    horizon: u64,
) -> (Observation, Vec<String>) {
    let seconds = |time: Timestamp| {
        let passed = time.duration_since(since).as_secs_f64() * args.time_scale;
        (passed >= 0.0).then_some(passed as u64)
    };
    let mut unread = Vec::new();
    let spread = match &client {
        Some(client) => spread(reader, client, (since, now), &mut unread).await,
        None => kept(Err("the spread of load: --prometheus names who knows it".to_owned()), &mut unread),
    };
    let found = kept(observe::migrations(reader).await, &mut unread).flatten();
    let bytes = match (&found, &client) {
        (Some(found), Some(client)) => {
            let counts = |migration: &&EndedMigration| seconds(migration.end).is_some_and(|end| end < horizon);
            let counted: Vec<EndedMigration> = found.iter().filter(counts).cloned().collect();
            kept(client.bytes(&counted, since, now).await, &mut unread)
        }
        (Some(_), None) => kept(Err("memory moved: --prometheus names who knows it".to_owned()), &mut unread),
        (None, _) => kept(Err("memory moved: migrations of KubeVirt are not known".to_owned()), &mut unread),
    };
    let migrations = match (found, &client) {
        (Some(found), _) => {
            Some(found.iter().filter(|migration| migration.is_done).map(|migration| migration.end).collect())
        }
        (None, Some(client)) => {
            kept(client.evictions(since, now).await, &mut unread).map(|points| prometheus::increases(&points))
        }
        (None, None) => {
            kept(Err("migrations: --prometheus names who knows evictions without KubeVirt".to_owned()), &mut unread)
        }
    };
    let in_seconds =
        |points: Points| points.into_iter().filter_map(|(time, value)| Some((seconds(time)?, value))).collect();
    let seen = Observation {
        elapsed: seconds(now).unwrap_or_default(),
        migrations: migrations.map(|times: Vec<Timestamp>| times.into_iter().filter_map(seconds).collect()),
        spread: spread.map(in_seconds),
        bytes: bytes.map(in_seconds),
    };
    (seen, unread)
}

/// The spread over the nodes that take virtual machines. Others are no part of a forecast.
async fn spread(
    reader: &Reader,
    client: &Prometheus,
    (since, now): (Timestamp, Timestamp),
    unread: &mut Vec<String>,
) -> Option<Points> {
    let nodes = kept(observe::nodes(reader).await, unread)?;
    let spread = kept(client.spread(&nodes, since, now).await, unread)?;
    if spread.nodes < nodes.len() {
        unread.push(format!(
            "the load of {} of {} nodes: Prometheus has none",
            nodes.len() - spread.nodes,
            nodes.len()
        ));
    }
    Some(spread.points)
}

fn kept<T>(result: Result<T, String>, unread: &mut Vec<String>) -> Option<T> {
    result.map_err(|why| unread.push(why)).ok()
}

fn render(report: &CheckReport, width: usize) -> String {
    let title = format!(
        "Forecast of {} against what happened in {} since {:.0}",
        report.profile,
        Span(report.elapsed_seconds),
        report.since
    );
    let cells = |checked: &Checked| {
        let number = |value: f64| checked.figure.text(value);
        let result = match checked.result {
            CheckResult::In => "in",
            CheckResult::Out => "OUT",
            CheckResult::Early => "not over yet",
            CheckResult::Unknown => "not known",
        };
        let figure = checked.forecast;
        let happened = checked.happened.map_or_else(|| "-".to_owned(), number);
        [
            checked.figure.describe().to_owned(),
            number(figure.expected),
            format!("{} to {}", number(figure.low), number(figure.high)),
            happened,
            result.to_owned(),
        ]
        .map(Cell::from)
        .to_vec()
    };
    let rows: Vec<Vec<Cell>> = report.figures.iter().map(cells).collect();
    let headers = ["FIGURE", "EXPECTED", "INTERVAL", "HAPPENED", "RESULT"];
    let head = outdented(&format!("{BOLD}{title}{BOLD:#}"), width);
    head + "\n" + &table::render(&headers, &rows, width) + &section("Not read", report.unread.iter().cloned(), width)
}

#[cfg(test)]
mod tests {
    use sim::forecast::{Figure, FigureName};

    use super::*;

    #[test]
    fn one_figure_out_of_its_interval_decides_and_one_that_is_known_is_enough() {
        let code = |results: &[CheckResult]| {
            let figure = Figure { expected: 1.0, low: 0.0, high: 2.0 };
            let checked = |result: &CheckResult| Checked {
                figure: FigureName::Migrations,
                forecast: figure,
                happened: None,
                result: *result,
            };
            exit_code(&results.iter().map(checked).collect::<Vec<_>>())
        };
        use CheckResult::{Early, In, Out, Unknown};
        assert_eq!(code(&[In, Out, Early]), ExitCode::from(1));
        assert_eq!(code(&[Early, In, Unknown]), ExitCode::SUCCESS);
        assert_eq!(code(&[Early, Unknown]), ExitCode::from(8));
    }
}
