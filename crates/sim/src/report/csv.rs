//! CSV with a header line. Numbers are written so that they read back exactly.

use std::io;

use crate::{compare::Comparison, history::History};

pub fn samples(history: &History, step_seconds: u64) -> io::Result<String> {
    let mut header = strings(["step", "seconds", "nodes", "under", "over", "balanced", "heaviest"]);
    for signal in ["cpu", "cpuPressure", "memory", "memoryPressure"] {
        header.extend(["Mean", "Sigma", "Min", "Max"].map(|part| format!("{signal}{part}")));
    }
    header.extend(strings(["vmsUnderPressure", "migrating", "pending", "moved"]));
    let mut moves = history.moves().iter().peekable();
    let records = history.samples().iter().map(|sample| {
        let mut moved = 0;
        while moves.next_if(|one| u64::from(one.step) <= sample.step).is_some() {
            moved += 1;
        }
        let mut record = strings([sample.step, sample.step * step_seconds]);
        record.extend(strings([sample.nodes, sample.under, sample.over]));
        record.extend([sample.balanced.to_string(), sample.heaviest.to_string()]);
        for spread in [sample.cpu, sample.cpu_pressure, sample.memory, sample.memory_pressure] {
            record.extend(strings([spread.mean, spread.sigma, spread.min, spread.max]));
        }
        record.extend(strings([sample.vms_under_pressure, sample.migrating, sample.pending, moved]));
        record
    });
    text(header, records)
}

pub fn comparison(comparison: &Comparison) -> io::Result<String> {
    let columns = [
        "score",
        "spread",
        "endSpread",
        "endMemorySpread",
        "endPressureSpread",
        "steps",
        "noneOverSteps",
        "migrations",
        "bytes",
        "pingPong",
        "blocked",
        "pressure",
    ];
    let mut header = strings(["rank", "tied", "algorithm"]);
    header.extend(columns.into_iter().flat_map(|column| [column.to_owned(), format!("{column}Margin")]));
    header.extend(strings(["balancedAtEnd", "balancedEver", "noneOver"]));
    header.extend(strings(["mode", "limitTotal", "limitPerNode", "efficient"]));
    header.extend(strings(["possibleSpread", "spreadBound", "possibleMigrations"]));
    let records = comparison.entries.iter().map(|entry| {
        let estimates = [
            entry.score,
            entry.spread,
            entry.end_spread,
            entry.end_memory_spread,
            entry.end_pressure_spread,
            entry.steps,
            entry.none_over_steps,
            entry.migrations,
            entry.bytes,
            entry.ping_pong,
            entry.blocked,
            entry.pressure,
        ];
        let mut record = vec![entry.rank.to_string(), entry.tied.to_string(), entry.algorithm.clone()];
        record.extend(estimates.iter().flat_map(|estimate| strings([estimate.mean, estimate.margin])));
        record.extend(strings([entry.balanced_at_end, entry.balanced_ever, entry.none_over]));
        record.extend([entry.mode.to_owned(), entry.limits.total.to_string(), entry.limits.per_node.to_string()]);
        record.push(entry.efficient.to_string());
        let optimum = entry.optimum;
        record.extend(strings([optimum.spread.mean, optimum.bound.mean, optimum.migrations.mean]));
        record
    });
    text(header, records)
}

/// A header line and records, with quotes where they are needed.
pub fn text(
    header: impl IntoIterator<Item = impl AsRef<[u8]>>,
    records: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header)?;
    for record in records {
        writer.write_record(record)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn strings<T: ToString, const N: usize>(values: [T; N]) -> Vec<String> {
    values.map(|value| value.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_needed_and_numbers_read_back_exactly() {
        let records = [strings([0.1, 1e-7, 1.0 / 3.0]), strings(["plain", "a, b", "say \"no\""])];
        let text = text(["a", "b", "c"], records).unwrap();
        let expected = "a,b,c\n0.1,0.0000001,0.3333333333333333\nplain,\"a, b\",\"say \"\"no\"\"\"\n";
        assert_eq!(text, expected);
    }
}
