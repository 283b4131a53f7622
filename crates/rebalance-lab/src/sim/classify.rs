//! `sim classify`: the buckets of what a file holds, by all algorithms and threshold modes, without a run.

use std::io::Write;

use balance::{Algorithm, Bucket, Buckets, Classifier, Mode, Scores};
use clap::Args;
use serde_json::{Value, json};
use sim::{ClusterModel, Run, RunSettings, report::csv};
use terminal::{Align, CompactTable, Terminal};

use super::{
    CommandError, Output, Result,
    choices::{Loads, Semantics},
    json,
    source::scenarios,
};

#[derive(Debug, Args)]
pub(super) struct ClassifyArgs {
    /// A scenario that comes with the program, a file (ours, the reference's, or a table of nodes with their four
    /// signals), FILE:NAME for one of several, or - for standard input
    source: String,
    /// The algorithms, separated by commas; by default all 20
    #[arg(short, long, value_delimiter = ',')]
    algorithms: Vec<String>,
    /// The threshold modes, separated by commas; by default all six
    #[arg(short, long, value_delimiter = ',')]
    modes: Vec<String>,
    /// Whose rules say what is over-utilized; by default the scenario's
    #[arg(long, value_enum)]
    semantics: Option<Semantics>,
    /// Where the loads of nodes come from, if the file states them and lists VMs too
    #[arg(long, value_enum)]
    loads: Option<Loads>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// A cluster with the scores and buckets of its nodes.
struct Classified {
    scenario: String,
    settings: RunSettings,
    /// The nodes with their signals.
    nodes: Vec<(String, [f64; 4])>,
    algorithms: Vec<ByAlgorithm>,
}

struct ByAlgorithm {
    algorithm: Algorithm,
    scores: Vec<f64>,
    modes: Vec<(Mode, Buckets)>,
}

pub(super) fn run(args: &ClassifyArgs, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    let algorithms = chosen(&args.algorithms, Algorithm::all().to_vec())?;
    let modes = chosen(&args.modes, Mode::ALL.to_vec())?;
    let mut all = Vec::new();
    for mut scenario in scenarios(&args.source)? {
        let given = &mut scenario.rebalancing;
        given.semantics = args.semantics.map_or(given.semantics, Into::into);
        given.loads = args.loads.map_or(given.loads, Into::into);
        let wrong = |error| CommandError::Scenario(args.source.clone(), error);
        let model = ClusterModel::new(&scenario).map_err(wrong)?;
        all.push(classified(&model, RunSettings::new(&scenario).map_err(wrong)?, &algorithms, &modes));
    }
    let text = match args.output {
        Output::Json => json(&all.iter().map(value).collect::<Vec<Value>>()),
        Output::Csv => {
            let header = [
                "scenario",
                "algorithm",
                "mode",
                "node",
                "cpuUsage",
                "cpuPressure",
                "memoryUsage",
                "memoryPressure",
                "score",
                "average",
                "lower",
                "upper",
                "bucket",
            ];
            csv::text(header, all.iter().flat_map(records))?
        }
        Output::Table => all.iter().map(|cluster| table(cluster, terminal)).collect::<Vec<String>>().join("\n"),
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn chosen<T: std::str::FromStr<Err = balance::Unknown>>(names: &[String], all: Vec<T>) -> Result<Vec<T>> {
    if names.is_empty() {
        return Ok(all);
    }
    names.iter().map(|name| name.parse().map_err(|error: T::Err| CommandError::Usage(error.to_string()))).collect()
}

fn classified(model: &ClusterModel, settings: RunSettings, algorithms: &[Algorithm], modes: &[Mode]) -> Classified {
    let mut run = Run::new(model, settings, 0);
    run.observe();
    let by_algorithm = |algorithm: &Algorithm| {
        let mut scores = Scores::new();
        algorithm.score(run.signals(), &mut scores);
        let by_mode = |mode: &Mode| {
            let mut buckets = Buckets::new();
            Classifier::new(*mode, settings.classifier.semantics).classify(&scores, &mut buckets);
            let closed = run.nodes().iter().enumerate().filter(|(_, node)| !run.is_open(**node));
            closed.for_each(|(slot, _)| buckets.cordon(slot));
            (*mode, buckets)
        };
        let modes = modes.iter().map(by_mode).collect();
        ByAlgorithm { algorithm: *algorithm, scores: scores.values().to_vec(), modes }
    };
    let node = |(slot, node): (usize, &u32)| (model.node_name(*node).to_owned(), run.signals().node(slot));
    Classified {
        scenario: model.name().to_owned(),
        settings,
        nodes: run.nodes().iter().enumerate().map(node).collect(),
        algorithms: algorithms.iter().map(by_algorithm).collect(),
    }
}

fn value(cluster: &Classified) -> Value {
    let node = |(name, [cpu, cpu_pressure, memory, memory_pressure]): &(String, [f64; 4])| {
        json!({
            "node": name, "cpuUsage": cpu, "cpuPressure": cpu_pressure, "memoryUsage": memory,
            "memoryPressure": memory_pressure,
        })
    };
    let mode = |(mode, buckets): &(Mode, Buckets)| {
        json!({
            "mode": mode.slug(), "average": buckets.average(), "lower": buckets.lower(), "upper": buckets.upper(),
            "buckets": buckets.of().iter().map(Bucket::to_string).collect::<Vec<String>>(),
        })
    };
    let algorithm = |of: &ByAlgorithm| {
        json!({
            "algorithm": of.algorithm.slug(), "name": of.algorithm.name(), "scores": of.scores,
            "modes": of.modes.iter().map(mode).collect::<Vec<Value>>(),
        })
    };
    json!({
        "scenario": cluster.scenario, "loads": cluster.settings.loads.slug(),
        "semantics": cluster.settings.classifier.semantics.slug(),
        "nodes": cluster.nodes.iter().map(node).collect::<Vec<Value>>(),
        "algorithms": cluster.algorithms.iter().map(algorithm).collect::<Vec<Value>>(),
    })
}

fn records(cluster: &Classified) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    for of in &cluster.algorithms {
        for (mode, buckets) in &of.modes {
            for (at, (node, signals)) in cluster.nodes.iter().enumerate() {
                let mut record = vec![cluster.scenario.clone(), of.algorithm.slug(), mode.slug().into(), node.clone()];
                record.extend(signals.iter().map(f64::to_string));
                let numbers = [of.scores[at], buckets.average(), buckets.lower(), buckets.upper()];
                record.extend(numbers.map(|number| number.to_string()));
                record.push(buckets.of()[at].to_string());
                records.push(record);
            }
        }
    }
    records
}

/// The signals of all nodes, then for each algorithm the nodes by falling score, with a column per mode.
fn table(cluster: &Classified, terminal: Terminal) -> String {
    let mut signals = CompactTable::new(&[
        ("NODE", Align::Left),
        ("CPU", Align::Right),
        ("CPU PSI", Align::Right),
        ("MEMORY", Align::Right),
        ("MEM PSI", Align::Right),
    ]);
    for (node, values) in &cluster.nodes {
        signals.row([node.clone()].into_iter().chain(values.map(|value| format!("{value:.3}"))).collect());
    }
    let mut text = format!(
        "{}: {} nodes, {}, {}\n\n{}",
        cluster.scenario,
        cluster.nodes.len(),
        cluster.settings.classifier.semantics,
        cluster.settings.loads.describe(),
        signals.render(terminal.width)
    );
    for of in &cluster.algorithms {
        let modes = of.modes.iter().map(|(mode, _)| (heading(*mode), Align::Left));
        let columns: Vec<_> = [("NODE", Align::Left), ("SCORE", Align::Right)].into_iter().chain(modes).collect();
        let mut table = CompactTable::new(&columns);
        let mut order: Vec<usize> = (0..cluster.nodes.len()).collect();
        order.sort_by(|a, b| of.scores[*b].total_cmp(&of.scores[*a]));
        for at in order {
            let mut row = vec![cluster.nodes[at].0.clone(), format!("{:.3}", of.scores[at])];
            row.extend(of.modes.iter().map(|(_, buckets)| word(buckets.of()[at])));
            table.row(row);
        }
        let average = of.modes.first().map_or(0.0, |(_, buckets)| buckets.average());
        text += &format!("\n{}: average {average:.4}\n{}", of.algorithm.name(), table.render(terminal.width));
    }
    text
}

fn heading(mode: Mode) -> &'static str {
    match mode {
        Mode::Low => "LOW",
        Mode::Medium => "MEDIUM",
        Mode::High => "HIGH",
        Mode::AsymmetricLow => "ASYM-LOW",
        Mode::AsymmetricMedium => "ASYM-MEDIUM",
        Mode::AsymmetricHigh => "ASYM-HIGH",
    }
}

/// The bucket in a word, because six columns have to fit.
fn word(bucket: Bucket) -> String {
    let word = match bucket {
        Bucket::Under => "under",
        Bucket::Appropriate => "ok",
        Bucket::Over => "over",
    };
    format!("{} {word}", bucket.symbol())
}
