//! `sim run`: one run of a scenario.

use std::{io::Write, path::PathBuf};

use anstyle::{AnsiColor, Style};
use balance::Bucket;
use clap::Args;
use serde_json::json;
use sim::{
    Cause, ClusterModel, Move, Run, RunResult, RunSettings,
    report::{bytes, csv, frames::frame, html::Report, nodes::nodes, svg},
    simulate,
    units::Span,
};
use terminal::{Align, CompactTable, Terminal};

use super::{Choice, Output, Result, json, write_file};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    choice: Choice,
    /// The algorithm, such as k3 or max_metric; by default the scenario's
    #[arg(short, long)]
    algorithm: Option<String>,
    /// The seed: the same one gives the same run
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Also list who moved
    #[arg(long)]
    moves: bool,
    /// Also write a plot of the nodes at the end, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a report, as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &RunArgs, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    let (model, settings) = args.choice.load(args.algorithm.as_deref())?;
    let (outcome, run) = simulate(&model, &settings, args.seed);
    if let Some(path) = &args.svg {
        let title = format!("{}, step {}", model.name(), outcome.steps);
        write_file(path, &svg::scatter(&title, &frame(&model, &run, outcome.steps)))?;
    }
    if let Some(path) = &args.html {
        let report = Report::of(&model, &settings, &outcome, run.history(), None);
        write_file(path, &report.render())?;
    }
    let text = match args.output {
        Output::Json => {
            let moves =
                args.moves.then(|| run.history().moves().iter().map(|one| named(&model, one)).collect::<Vec<_>>());
            let buckets = run.buckets();
            json(&json!({
                "outcome": outcome, "average": buckets.average(), "lower": buckets.lower(), "upper": buckets.upper(),
                "nodes": nodes(&model, &run), "samples": run.history().samples(), "moves": moves,
            }))
        }
        Output::Csv => csv::samples(run.history(), model.step_seconds())?,
        Output::Table => {
            let mut text = summary(&outcome, &settings) + "\n" + &node_table(&model, &run, terminal);
            if args.moves {
                text += "\n";
                text += &moves(&model, &run, terminal);
            }
            text
        }
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn named(model: &ClusterModel, moved: &Move) -> serde_json::Value {
    let node = |node: u32| (node != Move::NOWHERE).then(|| model.node_name(node).to_owned());
    json!({
        "step": moved.step, "vm": model.vm_name(moved.vm), "from": node(moved.from), "to": node(moved.to), "cause": moved.cause,
    })
}

fn summary(outcome: &RunResult, settings: &RunSettings) -> String {
    let at = |step: Option<u64>| match step {
        Some(step) => format!("step {step} ({})", Span(step * outcome.step_seconds)),
        None => "never".to_owned(),
    };
    let blocked = outcome.blocked;
    let migrations = &outcome.migrations;
    let balanced = match (outcome.balanced_at_step, outcome.balanced_since_step) {
        (None, _) => "never".to_owned(),
        (Some(first), Some(since)) if since == first => format!("from {} on", at(Some(first))),
        (first, Some(_)) => format!("first at {}, for good from {} on", at(first), at(outcome.balanced_since_step)),
        (first, None) => format!("first at {}, but not at the end", at(first)),
    };
    let facts = [
        (
            "scenario",
            format!(
                "{}: {} nodes, {} VMs, {} steps of {}",
                outcome.scenario,
                outcome.nodes,
                outcome.vms,
                outcome.steps,
                Span(outcome.step_seconds)
            ),
        ),
        ("algorithm", settings.algorithm.name().into_owned()),
        ("rules", settings.describe()),
        ("seed", outcome.seed.to_string()),
        (
            "CPU use",
            format!(
                "σ {:.4} → {:.4}, highest {:.3} → {:.3}",
                outcome.start.cpu.sigma, outcome.end.cpu.sigma, outcome.start.cpu.max, outcome.end.cpu.max
            ),
        ),
        (
            "memory use",
            format!(
                "σ {:.4} → {:.4}, highest {:.3} → {:.3}",
                outcome.start.memory.sigma, outcome.end.memory.sigma, outcome.start.memory.max, outcome.end.memory.max
            ),
        ),
        (
            "CPU pressure",
            format!(
                "σ {:.4} → {:.4}, highest {:.3} → {:.3}",
                outcome.start.cpu_pressure.sigma,
                outcome.end.cpu_pressure.sigma,
                outcome.start.cpu_pressure.max,
                outcome.end.cpu_pressure.max
            ),
        ),
        ("balanced", balanced),
        ("none over", at(outcome.none_over_at_step)),
        (
            "migrations",
            format!(
                "{} of {} VMs, {} moved, {} failed, {} to and fro",
                migrations.total,
                migrations.vms,
                bytes(migrations.bytes),
                migrations.failed,
                migrations.ping_pong
            ),
        ),
        (
            "blocked",
            format!(
                "{} without room, {} not migratable, {} cooling down, {} held back",
                blocked.no_room, blocked.not_migratable, blocked.cooling_down, blocked.held_back
            ),
        ),
        (
            "pressure",
            format!(
                "{:.0} VM-seconds on nodes with a pressure of {} or more",
                outcome.vm_seconds_under_pressure,
                RunResult::UNDER_PRESSURE
            ),
        ),
    ];
    facts.iter().map(|(name, value)| format!("{name:<13} {value}\n")).collect()
}

/// Colors repeat what sign and word say.
pub(super) fn colored(bucket: Bucket) -> Style {
    match bucket {
        Bucket::Under => AnsiColor::Blue.on_default(),
        Bucket::Appropriate => Style::new(),
        Bucket::Over => AnsiColor::Red.on_default().bold(),
    }
}

fn node_table(model: &ClusterModel, run: &Run<'_>, terminal: Terminal) -> String {
    const MOST: usize = 30;
    let mut table = CompactTable::new(&[
        ("NODE", Align::Left),
        ("BUCKET", Align::Left),
        ("SCORE", Align::Right),
        ("CPU", Align::Right),
        ("CPU PSI", Align::Right),
        ("MEMORY", Align::Right),
        ("MEM PSI", Align::Right),
        ("VMS", Align::Right),
    ]);
    let scores = run.scores().values();
    let mut order: Vec<usize> = (0..run.nodes().len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    for slot in order.iter().take(MOST) {
        let node = run.nodes()[*slot];
        let bucket = run.buckets().of()[*slot];
        let mut cells = vec![model.node_name(node).to_owned(), format!("{} {bucket}", bucket.symbol())];
        cells.push(format!("{:.3}", scores[*slot]));
        cells.extend(run.signals().node(*slot).map(|value| format!("{value:.3}")));
        cells.push(run.vms(node).len().to_string());
        table.row(cells);
    }
    let mut text = table.render(terminal.width);
    for bucket in [Bucket::Over, Bucket::Under] {
        let word = format!("{} {bucket}", bucket.symbol());
        let style = colored(bucket);
        text = text.replace(&word, &format!("{style}{word}{style:#}"));
    }
    if order.len() > MOST {
        text += &format!("... and {} more nodes; -o json and --html have all.\n", order.len() - MOST);
    }
    text
}

fn moves(model: &ClusterModel, run: &Run<'_>, terminal: Terminal) -> String {
    let mut table = CompactTable::new(&[
        ("STEP", Align::Right),
        ("VM", Align::Left),
        ("FROM", Align::Left),
        ("TO", Align::Left),
        ("CAUSE", Align::Left),
    ]);
    let node = |node: u32| if node == Move::NOWHERE { "-".to_owned() } else { model.node_name(node).to_owned() };
    for moved in run.history().moves() {
        let cause = match moved.cause {
            Cause::Eviction => "eviction",
            Cause::Drain => "drain",
            Cause::Restart => "restart",
            Cause::Failure => "failure",
        };
        table.row(vec![
            moved.step.to_string(),
            model.vm_name(moved.vm),
            node(moved.from),
            node(moved.to),
            cause.to_owned(),
        ]);
    }
    table.render(terminal.width)
}
