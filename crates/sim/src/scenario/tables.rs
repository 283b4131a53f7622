//! Plain tables of nodes and their four signals, as CSV, JSON or YAML, for people who only have numbers.
//!
//! A table becomes a scenario without VMs: what is stated stays.

use serde_json::Value;

use super::{
    Scenario, ScenarioError,
    parse::values,
    reference::{StatedNode, scenario},
};

const COLUMNS: [&str; 5] = ["node", "cpu_usage", "cpu_pressure", "memory_usage", "memory_pressure"];

/// A cell: its column, its name in the file, and its text.
type Cell = (usize, String, String);

/// The scenario of a table, or nothing if the text is no table.
pub(super) fn read(text: &str, json: bool) -> Option<Result<Scenario, ScenarioError>> {
    let text = text.trim_start_matches('\u{feff}');
    if let Some(delimiter) = delimiter(text) {
        return Some(csv_nodes(text, delimiter).and_then(table));
    }
    let starts_like_a_list = text.trim_start().starts_with(['[', '-', '#']);
    match starts_like_a_list.then(|| values(text, json)).flatten()? {
        Value::Array(rows) => Some(listed_nodes(&rows).and_then(table)),
        _ => None,
    }
}

fn table(nodes: Vec<StatedNode>) -> Result<Scenario, ScenarioError> {
    if nodes.is_empty() {
        return Err(ScenarioError::new("", "the table has no nodes: at least one was expected"));
    }
    scenario("table", "From a table of nodes.", nodes)
}

/// The number of a column, by the names that people and programs give it.
fn column(name: &str) -> Option<usize> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let names: [&[&str]; 5] = [
        &["node", "name", "instance"],
        &["cpu", "cpuuse", "cpuusage", "cpuutilization"],
        &["cpupressure", "cpupsi"],
        &["memory", "mem", "memoryuse", "memuse", "memoryusage", "memusage", "memoryutilization"],
        &["memorypressure", "mempressure", "memorypsi", "mempsi"],
    ];
    names.iter().position(|names| names.contains(&plain.as_str()))
}

/// What separates the cells of a CSV, if its first line names a node and a signal.
fn delimiter(text: &str) -> Option<u8> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let delimiter =
        [b',', b';', b'\t'].into_iter().max_by_key(|sign| first.bytes().filter(|byte| byte == sign).count())?;
    let columns: Vec<usize> = first.split(char::from(delimiter)).filter_map(column).collect();
    (columns.contains(&0) && columns.len() > 1).then_some(delimiter)
}

fn csv_nodes(text: &str, delimiter: u8) -> Result<Vec<StatedNode>, ScenarioError> {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).trim(csv::Trim::All).from_reader(text.as_bytes());
    let failed = |error: csv::Error| {
        let place = error.position().map(|position| (position.line() as usize, 1));
        ScenarioError { place, ..ScenarioError::new("", error.to_string()) }
    };
    let header = reader.headers().map_err(failed)?.clone();
    let columns: Vec<Option<usize>> = header.iter().map(column).collect();
    let mut nodes = Vec::new();
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let cell = |(at, text): (usize, &str)| Some((columns[at]?, header[at].to_owned(), text.to_owned()));
        let cells = record.iter().enumerate().filter_map(cell).collect();
        let line = record.position().map_or(1, |position| position.line() as usize);
        nodes.push(node(cells, "").map_err(|error| ScenarioError { place: Some((line, 1)), ..error })?);
    }
    Ok(nodes)
}

fn listed_nodes(rows: &[Value]) -> Result<Vec<StatedNode>, ScenarioError> {
    let row = |(at, row): (usize, &Value)| {
        let place = format!("[{at}]");
        let Value::Object(fields) = row else {
            return Err(ScenarioError::new(
                place,
                format!("{row} is no node: fields such as node and cpu_usage were expected"),
            ));
        };
        let cell = |(name, value): (&String, &Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some((column(name)?, name.clone(), text))
        };
        node(fields.iter().filter_map(cell).collect(), &place)
    };
    rows.iter().enumerate().map(row).collect()
}

/// A node from its cells; `row` names the row in errors.
fn node(cells: Vec<Cell>, row: &str) -> Result<StatedNode, ScenarioError> {
    let field = |name: &str| if row.is_empty() { name.to_owned() } else { format!("{row}.{name}") };
    let only = |wanted: usize| {
        let mut found = cells.iter().filter(|(column, ..)| *column == wanted);
        match (found.next(), found.next()) {
            (Some(cell), None) => Ok(cell),
            (None, _) => Err(ScenarioError::new(
                row,
                format!("{} is missing: a table has the columns {}", COLUMNS[wanted], COLUMNS.join(", ")),
            )),
            (Some((_, one, _)), Some((_, other, _))) => {
                Err(ScenarioError::new(field(other), format!("{one} already states this: keep one of the two")))
            }
        }
    };
    let signal = |wanted: usize| {
        let (_, name, text) = only(wanted)?;
        share(text).ok_or_else(|| {
            let hint = "is not a number from 0 to 1; a percentage needs its sign, such as 45%";
            ScenarioError::new(field(name), format!("{text} {hint}"))
        })
    };
    let (_, name_field, name) = only(0)?;
    Ok(StatedNode {
        name: name.clone(),
        name_field: field(name_field),
        signals: [signal(1)?, signal(2)?, signal(3)?, signal(4)?],
        vms: Vec::new(),
    })
}

fn share(text: &str) -> Option<f64> {
    let (number, divisor) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    number.parse::<f64>().ok().map(|value| value / divisor).filter(|value| (0.0..=1.0).contains(value))
}
