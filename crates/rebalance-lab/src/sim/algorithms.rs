//! `sim algorithms`: the 20 algorithms, their parameters and formulas.

use std::io::Write;

use balance::Algorithm;
use clap::Args;
use serde_json::json;
use sim::report::csv;
use terminal::{Align, CompactTable, Terminal};

use super::{Output, Result, json};

#[derive(Debug, Args)]
pub(super) struct AlgorithmsArgs {
    /// How to print the list
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub(super) fn run(args: &AlgorithmsArgs, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    let text = match args.output {
        Output::Json => {
            let list: Vec<_> = Algorithm::all()
                .iter()
                .map(|algorithm| {
                    let parameters: serde_json::Map<String, serde_json::Value> =
                        algorithm.parameters().iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
                    json!({
                        "slug": algorithm.slug(),
                        "name": algorithm.name(),
                        "relative": algorithm.is_relative(),
                        "formula": algorithm.formula().to_string(),
                        "parameters": parameters,
                    })
                })
                .collect();
            json(&list)
        }
        Output::Csv => {
            let records = Algorithm::all().map(|algorithm| {
                let name = algorithm.name().into_owned();
                vec![algorithm.slug(), name, algorithm.is_relative().to_string(), algorithm.formula().to_string()]
            });
            csv::text(["slug", "name", "relative", "formula"], records)?
        }
        Output::Table => {
            let mut table =
                CompactTable::new(&[("ALGORITHM", Align::Left), ("COMPARES", Align::Left), ("FORMULA", Align::Left)]);
            for algorithm in Algorithm::all() {
                let compares = if algorithm.is_relative() { "with the cluster" } else { "node by itself" };
                table.row(vec![algorithm.slug(), compares.to_owned(), algorithm.formula().to_string()]);
            }
            table.render(terminal.width)
        }
    };
    Ok(out.write_all(text.as_bytes())?)
}
