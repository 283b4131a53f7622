//! `sim compare`: algorithms side by side over many seeds.

use std::{io::Write, path::PathBuf};

use balance::Algorithm;
use clap::Args;
use sim::{
    RunSettings,
    compare::{Comparison, compare},
    report::{
        bytes, csv,
        html::Report,
        svg,
        table::{Align, Table},
    },
    simulate,
    stats::Estimate,
};

use super::{Choice, CommandError, Output, Result, bar, choices::Criterion, json, write_file};
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    choice: Choice,
    /// The algorithms, separated by commas; by default all 19
    #[arg(short, long, value_delimiter = ',')]
    algorithms: Vec<String>,
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
    /// Also write the ranking with its intervals, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a report with a run of the best algorithm, as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &CompareArgs, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    let (model, settings) = args.choice.load(None)?;
    let parse = |name: &String| name.parse().map_err(|error: balance::Unknown| CommandError::Usage(error.to_string()));
    let algorithms: Vec<Algorithm> = match args.algorithms.as_slice() {
        [] => Algorithm::all().to_vec(),
        names => names.iter().map(parse).collect::<Result<_>>()?,
    };
    let last = args
        .seed
        .checked_add(args.seeds)
        .ok_or_else(|| CommandError::Usage(format!("there are no {} seeds from {} on", args.seeds, args.seed)))?;
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let progress = bar(terminal, "runs");
    let comparison = compare(&model, &settings, &algorithms, args.seed..last, args.by.into(), threads, &progress);
    if let Some(path) = &args.svg {
        write_file(path, &svg::ranking(&comparison))?;
    }
    if let Some(path) = &args.html {
        let best = comparison.entries.first().and_then(|entry| entry.algorithm.parse().ok());
        let settings = RunSettings { algorithm: best.unwrap_or(settings.algorithm), ..settings };
        let (outcome, run) = simulate(&model, &settings, args.seed);
        let report = Report::of(&model, &settings, &outcome, run.history(), Some(&comparison));
        write_file(path, &report.render())?;
    }
    let text = match args.output {
        Output::Json => json(&comparison),
        Output::Csv => csv::comparison(&comparison)?,
        Output::Table => table(&comparison, &settings, terminal),
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn table(comparison: &Comparison, settings: &RunSettings, terminal: Terminal) -> String {
    let mut table = Table::new(&[
        ("RANK", Align::Right),
        ("ALGORITHM", Align::Left),
        ("SPREAD", Align::Right),
        ("AT END", Align::Right),
        ("STEPS", Align::Right),
        ("BALANCED", Align::Right),
        ("MIGRATIONS", Align::Right),
        ("TO AND FRO", Align::Right),
        ("BYTES", Align::Right),
        ("VM-S PRESSURE", Align::Right),
    ]);
    let shown = |estimate: Estimate, digits: usize| format!("{:.digits$} ±{:.digits$}", estimate.mean, estimate.margin);
    for entry in &comparison.entries {
        table.row(vec![
            format!("{}{}", entry.rank, if entry.tied { "=" } else { " " }),
            entry.name.clone(),
            shown(entry.spread, 4),
            shown(entry.end_spread, 4),
            shown(entry.steps, 1),
            format!("{:.0} %", entry.balanced_at_end * 100.0),
            shown(entry.migrations, 1),
            shown(entry.ping_pong, 1),
            bytes(entry.bytes.mean),
            format!("{:.0}", entry.pressure.mean),
        ]);
    }
    let (seeds, first) = (comparison.seeds, comparison.first_seed);
    format!(
        "{}: {} algorithms, {seeds} seeds from {first} on, ranked by {}\n{}\n\n{}\n\
         SPREAD is the mean over time of the standard deviation of CPU use, ± the 95 % interval of the mean over seeds.\n\
         STEPS until balanced count {} where it never was. Ranks with = cannot be told apart with {seeds} seeds.\n",
        comparison.scenario,
        comparison.entries.len(),
        comparison.criterion.describe(),
        settings.describe(),
        table.render(terminal.width),
        "all steps and one more",
    )
}
