//! `sim search`: how near the optimum each algorithm comes in generated scenarios, the search for a score that comes nearer, and what
//! in the descheduler stands in its way.

use std::io::Write;

use clap::Args;
use sim::search::{Family, Found, Tally, search};
use terminal::{Align, CompactTable, Terminal, progress_bar};

use super::{CommandError, Output, Result, json};

#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// How many scenarios are generated; the search uses the first half, and the figures are those of the second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(14..=100_000))]
    scenarios: u64,
    /// The seed of the scenarios
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Do not search: only judge the algorithms as they are shipped, each with its best mode and limits
    #[arg(long)]
    shipped_only: bool,
    /// How many threads; by default as many as there are processors. The result does not depend on it
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub(super) fn run(args: &SearchArgs, terminal: Terminal, out: &mut dyn Write) -> Result<()> {
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let bar = |what: &'static str| -> Box<dyn Fn(usize, usize) + Sync> { Box::new(progress_bar(terminal, what)) };
    let found = search(args.seed, args.scenarios, !args.shipped_only, threads, &bar)
        .map_err(|error| CommandError::Scenario("generated".to_owned(), error))?;
    let text = match args.output {
        Output::Json => json(&found),
        Output::Csv => return Err(CommandError::Usage("sim search prints a table or JSON".to_owned())),
        Output::Table => table(&found, terminal),
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn table(found: &Found, terminal: Terminal) -> String {
    let mut text = format!(
        "{} scenarios of seed {} were searched; the figures are those of {} others.\n\n",
        found.searched, found.seed, found.held_out
    );
    let by_algorithm = |tally: &Tally| {
        let of = &tally.candidate;
        let parameters: Vec<String> = of.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        vec![
            format!("{} {}", of.algorithm, parameters.join(", ")).trim_end().to_owned(),
            of.mode.to_owned(),
            format!("{}:{}", of.limits.total, of.limits.per_node),
        ]
    };
    let columns = [("ALGORITHM", Align::Left), ("MODE", Align::Left), ("LIMITS", Align::Right)];
    let found_as_it_is = found.found.iter().take(1);
    text += &rows(&columns, found_as_it_is.chain(&found.shipped), by_algorithm, terminal);
    if let Some(first) = found.found.first() {
        text += &format!("\nWhat stands in the way of {}:\n", first.candidate.algorithm);
        let by_lift = |tally: &Tally| vec![tally.lift.name().to_owned()];
        text += &rows(&[("IF", Align::Left)], found.found.iter(), by_lift, terminal);
    }
    text + "\nNEAR: all four demands are met. EVEN: at most 1.1 times the spread of the optimum. FEW: at most 1.3 times its\n\
            migrations. NONE BACK: no VM comes to a node that it had left. STOPS: no eviction in the last quarter of the time.\n\
            MIGRATIONS: as a multiple of those of the optimum. The rest: NEAR by family of scenarios. All but MIGRATIONS in\n\
            percent.\n"
}

fn rows<'t>(
    first: &[(&'static str, Align)],
    tallies: impl Iterator<Item = &'t Tally>,
    heads: impl Fn(&Tally) -> Vec<String>,
    terminal: Terminal,
) -> String {
    let mut columns = first.to_vec();
    columns.extend(["NEAR", "EVEN", "FEW", "NONE BACK", "STOPS", "MIGRATIONS"].map(|name| (name, Align::Right)));
    columns.extend(Family::ALL.map(|family| (family.name(), Align::Right)));
    let mut table = CompactTable::new(&columns);
    let percent = |number: usize, of: usize| format!("{:.0}", 100.0 * number as f64 / of.max(1) as f64);
    for tally in tallies {
        let all = tally.all;
        let (_, low, high) = all.share();
        let mut row = heads(tally);
        row.push(format!("{} ({:.0}–{:.0})", percent(all.near, all.of), 100.0 * low, 100.0 * high));
        row.extend([all.even, all.few_migrations, all.none_back, all.stops].map(|number| percent(number, all.of)));
        row.push(format!("{:.2}", tally.migrations as f64 / tally.needed.max(1) as f64));
        row.extend(tally.by_family.iter().map(|(_, count)| percent(count.near, count.of)));
        table.row(row);
    }
    table.render(terminal.width)
}
