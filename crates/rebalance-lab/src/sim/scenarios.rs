//! `sim scenarios`: what comes with the program, one of them as a file, or a new one of any size.

use std::io::Write;

use clap::Args;
use serde_json::json;
use sim::{
    ClusterModel,
    report::csv,
    scenario::{generate::generate, shipped},
};
use terminal::{Align, CompactTable, Terminal};

use super::{CommandError, Output, Result, json};

#[derive(Debug, Args)]
pub(super) struct ScenariosArgs {
    /// Print this one as a file instead of the list
    name: Option<String>,
    /// Print a new one with this many nodes and VMs
    #[arg(long, value_names = ["NODES", "VMS"], num_args = 2, conflicts_with = "name")]
    generate: Option<Vec<u32>>,
    /// The seed of the new one
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How to print the list
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub(super) fn run(args: &ScenariosArgs, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    let text = match (&args.name, &args.generate) {
        (Some(name), _) => match shipped::FILES.iter().find(|(known, _)| known == name) {
            Some((_, text)) => (*text).to_owned(),
            None => {
                let names: Vec<&str> = shipped::FILES.iter().map(|(name, _)| *name).collect();
                return Err(CommandError::Usage(format!(
                    "there is no scenario {name}; there are {}",
                    names.join(", ")
                )));
            }
        },
        (None, Some(sizes)) => {
            let (nodes, vms) = (sizes.first().copied().unwrap_or(0), sizes.get(1).copied().unwrap_or(0));
            let scenario = generate(nodes, vms, args.seed, false)
                .map_err(|error| CommandError::Scenario("--generate".to_owned(), error))?;
            scenario.to_yaml()
        }
        (None, None) => list(args.output, terminal)?,
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn list(output: Output, terminal: Terminal) -> Result<String> {
    let mut table = CompactTable::new(&[
        ("SCENARIO", Align::Left),
        ("NODES", Align::Right),
        ("VMS", Align::Right),
        ("DURATION", Align::Right),
        ("STEP", Align::Right),
        ("SEMANTICS", Align::Left),
        ("WHAT IT SHOWS", Align::Left),
    ]);
    let mut values = Vec::new();
    let mut records = Vec::new();
    for scenario in shipped::all() {
        let Ok(model) = ClusterModel::new(&scenario) else { continue };
        let (nodes, vms) = (model.node_count(), model.vm_count());
        let semantics = balance::Semantics::from(scenario.rebalancing.semantics).slug();
        values.push(json!({
            "name": scenario.name, "nodes": nodes, "vms": vms, "durationSeconds": scenario.duration.0,
            "stepSeconds": scenario.step.0, "semantics": semantics, "description": scenario.description,
        }));
        records.push(vec![
            scenario.name.clone(),
            nodes.to_string(),
            vms.to_string(),
            scenario.duration.0.to_string(),
            scenario.step.0.to_string(),
            scenario.description.clone(),
        ]);
        table.row(vec![
            scenario.name.clone(),
            nodes.to_string(),
            vms.to_string(),
            scenario.duration.to_string(),
            scenario.step.to_string(),
            semantics.to_owned(),
            scenario.description.clone(),
        ]);
    }
    Ok(match output {
        Output::Json => json(&values),
        Output::Csv => csv::text(["name", "nodes", "vms", "durationSeconds", "stepSeconds", "description"], records)?,
        Output::Table => table.render(terminal.width),
    })
}
