//! `sim compare`: algorithms, threshold modes and limits side by side over many seeds, and how far they are from the
//! optimum.

use std::{io::Write, path::PathBuf};

use balance::{Algorithm, Mode};
use clap::Args;
use sim::{
    Variant,
    compare::{Comparison, Entry, compare},
    report::{bytes, csv, html::Report, tradeoff},
    scenario::Limits,
    simulate,
    stats::Estimate,
};
use terminal::{Align, CompactTable, Terminal, progress_bar};

use super::{Choice, CommandError, Output, Result, choices::Criterion, json, write_file};

/// The number of points of the optimum's curve in the table.
const POINTS: usize = 8;

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    choice: Choice,
    /// The algorithms, separated by commas; by default all 20
    #[arg(short, long, value_delimiter = ',')]
    algorithms: Vec<String>,
    /// The threshold modes, separated by commas; by default the scenario's
    #[arg(long, value_delimiter = ',', conflicts_with = "mode")]
    modes: Vec<String>,
    /// Limits of evictions, in all and from one node, such as 5:2,20:5; by default the scenario's
    #[arg(long, value_name = "TOTAL:PER-NODE", value_delimiter = ',', value_parser = limits,
          conflicts_with_all = ["max_total", "max_per_node"])]
    limits: Vec<Limits>,
    /// How many seeds
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What to rank by; less is better
    #[arg(long, value_enum, default_value_t)]
    by: Criterion,
    /// How many threads; by default as many as there are processors. The result does not depend on it
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Also write a chart of spread against migrations with the optimum, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a report with a run of the first of the ranking, as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Reads `5:2` as 5 evictions in all and 2 from one node.
fn limits(text: &str) -> std::result::Result<Limits, String> {
    let wrong = || format!("{text} is not a pair of numbers such as 5:2");
    let (total, per_node) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().map_err(|_| wrong());
    Ok(Limits { total: number(total)?, per_node: number(per_node)? })
}

pub(super) fn run(args: &CompareArgs, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    let (model, settings) = args.choice.load(None)?;
    let unknown = |error: balance::Unknown| CommandError::Usage(error.to_string());
    let algorithms: Vec<Algorithm> = match args.algorithms.as_slice() {
        [] => Algorithm::all().to_vec(),
        names => names.iter().map(|name| name.parse().map_err(unknown)).collect::<Result<_>>()?,
    };
    let modes: Vec<Mode> = args.modes.iter().map(|name| name.parse().map_err(unknown)).collect::<Result<_>>()?;
    let variants = Variant::all(&settings, &algorithms, &modes, &args.limits);
    let last = args
        .seed
        .checked_add(args.seeds)
        .ok_or_else(|| CommandError::Usage(format!("there are no {} seeds from {} on", args.seeds, args.seed)))?;
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let progress = progress_bar(terminal, "runs");
    let comparison = compare(&model, &settings, &variants, args.seed..last, args.by.into(), threads, &progress);
    if let Some(path) = &args.svg {
        write_file(path, &tradeoff::of_comparison(&comparison))?;
    }
    if let Some(path) = &args.html {
        let best = comparison.entries.first().map(|entry| entry.variant.in_settings(&settings));
        let settings = best.unwrap_or(settings);
        let (outcome, run) = simulate(&model, &settings, args.seed);
        let report = Report::of(&model, &settings, &outcome, run.history(), Some(&comparison));
        write_file(path, &report.render())?;
    }
    let text = match args.output {
        Output::Json => json(&comparison),
        Output::Csv => csv::comparison(&comparison)?,
        Output::Table => {
            let (seeds, first) = (comparison.seeds, comparison.first_seed);
            format!(
                "{}: {}, {seeds} seeds from {first} on\n{}\n\n{}\n{}",
                comparison.scenario,
                counted(&comparison),
                settings.describe(),
                optimum(&comparison, terminal),
                table(&comparison, terminal)
            )
        }
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// How many things are compared, and of what kind.
fn counted(comparison: &Comparison) -> String {
    let entries = &comparison.entries;
    match varies(entries, |entry| entry.mode) || varies(entries, |entry| entry.limits) {
        true => format!("{} combinations of algorithms, modes and limits", entries.len()),
        false => format!("{} algorithms", entries.len()),
    }
}

fn varies<T: PartialEq>(entries: &[Entry], of: impl Fn(&Entry) -> T) -> bool {
    entries.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
}

/// What is known of the optimum.
fn optimum(comparison: &Comparison, terminal: Terminal) -> String {
    let curve = &comparison.optimum;
    let mut table =
        CompactTable::new(&[("MIGRATIONS", Align::Right), ("LEAST SPREAD", Align::Right), ("BOUND", Align::Right)]);
    for point in curve.some_points(POINTS) {
        let spread = |value: f64| format!("{value:.4}");
        table.row(vec![point.migrations.to_string(), spread(point.spread), spread(point.bound)]);
    }
    let doubt = curve.doubt.map(|doubt| format!("These are estimates, because {doubt}.\n"));
    format!(
        "The optimum: {}\n{}LEAST SPREAD is the least that is known, and nothing can be below BOUND.\n{}",
        curve.describe(),
        table.render(terminal.width),
        doubt.unwrap_or_default()
    )
}

fn table(comparison: &Comparison, terminal: Terminal) -> String {
    let entries = &comparison.entries;
    let (modes, limits) = (varies(entries, |entry| entry.mode), varies(entries, |entry| entry.limits));
    let mut columns = vec![("", Align::Left), ("ALGORITHM", Align::Left)];
    columns.extend(modes.then_some(("MODE", Align::Left)));
    columns.extend(limits.then_some(("LIMITS", Align::Right)));
    let right = ["MIGRATIONS", "NEEDED", "AT END", "POSSIBLE", "BALANCED", "STEPS", "NONE OVER", "SPREAD", "RANK"];
    columns.extend(right.map(|header| (header, Align::Right)));
    columns.extend(["TO AND FRO", "BYTES", "VM-S PRESSURE"].map(|header| (header, Align::Right)));
    let mut table = CompactTable::new(&columns);
    let shown = |estimate: Estimate, digits: usize| format!("{:.digits$} ±{:.digits$}", estimate.mean, estimate.margin);
    for entry in in_order(entries) {
        let mut row = vec![if entry.efficient { "*" } else { "" }.to_owned(), entry.name.clone()];
        row.extend(modes.then(|| entry.mode.to_owned()));
        row.extend(limits.then(|| format!("{}:{}", entry.limits.total, entry.limits.per_node)));
        row.extend([
            shown(entry.migrations, 1),
            format!("{:.1}", entry.optimum.migrations.mean),
            shown(entry.end_spread, 4),
            format!("{:.4}", entry.optimum.spread.mean),
            format!("{:.0} %", entry.balanced_at_end * 100.0),
            shown(entry.steps, 1),
            shown(entry.none_over_steps, 1),
            shown(entry.spread, 4),
            format!("{}{}", entry.rank, if entry.tied { "=" } else { " " }),
            shown(entry.ping_pong, 1),
            bytes(entry.bytes.mean),
            format!("{:.0}", entry.pressure.mean),
        ]);
        table.row(row);
    }
    format!(
        "{}\n* marks what no other one beats in both migrations and spread at the end; these come first.\n\
         NEEDED is the least known number of migrations for the spread AT END.\n\
         POSSIBLE is the least known spread at the end with as many MIGRATIONS.\n\
         SPREAD is the mean over time of the standard deviation of CPU use, ± the 95 % interval of the mean over seeds.\n\
         STEPS until balanced and until NONE is OVER count all steps and one more where it never was.\n\
         RANK is by {}. Ranks with = cannot be told apart with {} seeds.\n",
        table.render(terminal.width),
        comparison.criterion.describe(),
        comparison.seeds,
    )
}

/// The entries that no other beats, by migrations; then the others by rank.
fn in_order(entries: &[Entry]) -> Vec<&Entry> {
    let mut first: Vec<&Entry> = entries.iter().filter(|entry| entry.efficient).collect();
    first.sort_by(|one, other| one.migrations.mean.total_cmp(&other.migrations.mean));
    first.extend(entries.iter().filter(|entry| !entry.efficient));
    first
}
