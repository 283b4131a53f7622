//! Comma-separated values as in RFC 4180, with a header line; numbers are written so that they read back exactly.

use crate::{compare::Comparison, history::History};

pub(crate) fn samples(history: &History, step_seconds: u64) -> String {
    let mut text = "step,seconds,nodes,under,over,balanced,heaviest".to_owned();
    for signal in ["cpu", "cpuPressure", "memory", "memoryPressure"] {
        for part in ["Mean", "Sigma", "Min", "Max"] {
            text += &format!(",{signal}{part}");
        }
    }
    text += ",vmsUnderPressure,migrating,pending,moved\n";
    let mut moves = history.moves().iter().peekable();
    for sample in history.samples() {
        let mut moved = 0;
        while moves.next_if(|one| u64::from(one.step) <= sample.step).is_some() {
            moved += 1;
        }
        let (step, nodes, under, over) = (sample.step, sample.nodes, sample.under, sample.over);
        text +=
            &format!("{step},{},{nodes},{under},{over},{},{}", step * step_seconds, sample.balanced, sample.heaviest);
        for spread in [sample.cpu, sample.cpu_pressure, sample.memory, sample.memory_pressure] {
            text += &format!(",{},{},{},{}", spread.mean, spread.sigma, spread.min, spread.max);
        }
        text += &format!(",{},{},{},{moved}\n", sample.vms_under_pressure, sample.migrating, sample.pending);
    }
    text
}

pub(crate) fn comparison(comparison: &Comparison) -> String {
    let columns = [
        "score",
        "spread",
        "endSpread",
        "endMemorySpread",
        "endPressureSpread",
        "steps",
        "migrations",
        "bytes",
        "pingPong",
        "blocked",
        "pressure",
    ];
    let mut text = "rank,tied,algorithm".to_owned();
    for column in columns {
        text += &format!(",{column},{column}Margin");
    }
    text += ",balancedAtEnd,balancedEver,noneOver\n";
    for entry in &comparison.entries {
        text += &format!("{},{},{}", entry.rank, entry.tied, entry.algorithm);
        for estimate in [
            entry.score,
            entry.spread,
            entry.end_spread,
            entry.end_memory_spread,
            entry.end_pressure_spread,
            entry.steps,
            entry.migrations,
            entry.bytes,
            entry.ping_pong,
            entry.blocked,
            entry.pressure,
        ] {
            text += &format!(",{},{}", estimate.mean, estimate.margin);
        }
        text += &format!(",{},{},{}\n", entry.balanced_at_end, entry.balanced_ever, entry.none_over);
    }
    text
}
