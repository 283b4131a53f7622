//! `sim explain`: why a node has its score, term by term, and why it is in its bucket.

use std::io::Write;

use balance::{Bucket, Semantics, Term};
use clap::Args;
use serde_json::{Value, json};
use sim::{
    Run,
    report::{csv, nodes::nodes},
};
use terminal::Terminal;

use super::{Choice, CommandError, Output, Result, json, run::colored};

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    choice: Choice,
    /// The node
    node: String,
    /// The algorithm, such as k3 or max_metric; by default the scenario's
    #[arg(short, long)]
    algorithm: Option<String>,
    /// At which step
    #[arg(long, default_value_t = 0)]
    at: u64,
    /// The seed of the run
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub(super) fn run(args: &ExplainArgs, _: Terminal, out: &mut dyn Write) -> Result<()> {
    let (model, settings) = args.choice.load(args.algorithm.as_deref())?;
    let node = model.node_named(&args.node).ok_or_else(|| {
        let names: Vec<&str> = (0..model.node_count().min(8) as u32).map(|node| model.node_name(node)).collect();
        let more = if model.node_count() > names.len() { ", …" } else { "" };
        CommandError::Usage(format!("there is no node {}; there are {}{more}", args.node, names.join(", ")))
    })?;
    if args.at > model.steps() {
        return Err(CommandError::Usage(format!("step {} is after the end, step {}", args.at, model.steps())));
    }
    let mut run = Run::new(&model, settings, args.seed);
    while run.step_number() < args.at {
        run.step();
    }
    run.observe();
    let Some(slot) = run.nodes().iter().position(|up| *up == node) else {
        return Err(CommandError::Usage(format!("{} is not up at step {}", args.node, args.at)));
    };
    let term = settings.algorithm.explain(run.signals(), slot);
    let (bucket, buckets) = (run.buckets().of()[slot], run.buckets());
    let text = match args.output {
        Output::Json => json(&json!({
            "scenario": model.name(), "node": args.node, "step": args.at, "algorithm": settings.algorithm.slug(),
            "semantics": settings.classifier.semantics.slug(), "mode": settings.classifier.mode.slug(),
            "average": buckets.average(), "lower": buckets.lower(), "upper": buckets.upper(),
            "loads": settings.loads.slug(), "bucket": bucket.to_string(), "score": value(&term),
            "nodes": nodes(&model, &run),
        })),
        Output::Csv => {
            let mut records = Vec::new();
            add_records(&term, 0, &mut records);
            csv::text(["depth", "value", "term"], records)?
        }
        Output::Table => {
            let style = colored(bucket);
            format!(
                "{} of {} at step {} is {style}{} {bucket}{style:#}\n{}\n\n{}, {}: average {:.4}, under up to {:.4}, over from {:.4}\n{}\n",
                args.node,
                model.name(),
                args.at,
                bucket.symbol(),
                because(bucket, &run, slot),
                settings.classifier,
                settings.loads.describe(),
                buckets.average(),
                buckets.lower(),
                buckets.upper(),
                format!("\n{term}").trim_end(),
            )
        }
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// The comparison that decided.
fn because(bucket: Bucket, run: &Run<'_>, slot: usize) -> String {
    let buckets = run.buckets();
    let score = run.scores().values()[slot];
    let whole = buckets.classifier().semantics == Semantics::Descheduler;
    let score = if whole { format!("{} %", (score * 100.0) as u32) } else { format!("{score:.6}") };
    let bound = |value: f64| if whole { format!("{:.2} %", value * 100.0) } else { format!("{value:.6}") };
    let (lower, upper) = (bound(buckets.lower()), bound(buckets.upper()));
    match bucket {
        Bucket::Under => format!("because its score {score} is at most {lower}"),
        Bucket::Over if whole => format!("because its score {score} is more than {upper}"),
        Bucket::Over => format!("because its score {score} is at least {upper}"),
        Bucket::Appropriate if !run.is_open(run.nodes()[slot]) => {
            format!("with score {score}; it is cordoned, so it cannot be under-utilized")
        }
        Bucket::Appropriate => format!("because its score {score} lies between {lower} and {upper}"),
    }
}

fn value(term: &Term) -> Value {
    json!({ "what": term.what, "value": term.value, "parts": term.parts.iter().map(value).collect::<Vec<_>>() })
}

fn add_records(term: &Term, depth: usize, records: &mut Vec<Vec<String>>) {
    records.push(vec![depth.to_string(), term.value.to_string(), term.what.clone()]);
    term.parts.iter().for_each(|part| add_records(part, depth + 1, records));
}
