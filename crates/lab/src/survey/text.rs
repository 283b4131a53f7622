//! A survey as text. Colors only repeat what symbols and words say; the caller removes them if the output has none.

use anstyle::{AnsiColor, Style};
use balance::Bucket;
use terminal::{Align, CompactTable, age};

use super::{NodeState, PartState, Scoring, Survey};
use crate::up::JournalEntry;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const LOW: Style = AnsiColor::Blue.on_default();
const NONE: &str = "-";

/// The text, in lines of at most `width` columns if it is given.
pub fn text(survey: &Survey, width: Option<usize>) -> String {
    let speed = match survey.time_scale {
        1.0 => String::new(),
        scale => format!(", {scale} times as fast as the clock"),
    };
    let mut text = format!("Lab {}{speed}\n\n", survey.lab);
    text += &parts(&survey.parts, width);
    text.push('\n');
    text += &nodes(&survey.nodes, width);
    text.push('\n');
    text += &summary(survey);
    text.push('\n');
    text += &migrations(survey, width);
    for problem in &survey.problems {
        text += &format!("{BAD}! {problem}{BAD:#}\n");
    }
    text
}

fn parts(parts: &[PartState], width: Option<usize>) -> String {
    let mut table = CompactTable::new(&[("PART", Align::Left), ("STATE", Align::Left), ("WHERE", Align::Left)]);
    for part in parts {
        let sign = if part.ready { '✔' } else { '✘' };
        table.row(vec![part.name.clone(), format!("{sign} {}", part.state), part.place.clone()]);
    }
    table.render(width).replace('✔', &format!("{GOOD}✔{GOOD:#}")).replace('✘', &format!("{BAD}✘{BAD:#}"))
}

fn nodes(nodes: &[NodeState], width: Option<usize>) -> String {
    let mut table = CompactTable::new(&[
        ("NODE", Align::Left),
        ("CPU", Align::Right),
        ("PRESSURE", Align::Right),
        ("MEMORY", Align::Right),
        ("PRESSURE", Align::Right),
        ("SCORE", Align::Right),
        ("BUCKET", Align::Left),
        ("VMS", Align::Right),
        ("SOFT TAINTS", Align::Left),
    ]);
    for node in nodes {
        let share = |value: Option<f64>| value.map_or(NONE.to_owned(), |value| format!("{:.0}%", value * 100.0));
        let mut bucket = node.bucket.as_deref().map_or(NONE.to_owned(), sign);
        if !node.takes_vms {
            bucket += " (closed)";
        }
        let taints = if node.soft_taints.is_empty() { NONE.to_owned() } else { node.soft_taints.join(", ") };
        table.row(vec![
            node.name.clone(),
            share(node.cpu_use),
            share(node.cpu_pressure),
            share(node.memory_use),
            share(node.memory_pressure),
            node.score.map_or(NONE.to_owned(), |score| format!("{score:.3}")),
            bucket,
            node.vms.to_string(),
            taints,
        ]);
    }
    let mut text = table.render(width);
    for (bucket, style) in [(Bucket::Over, BAD), (Bucket::Under, LOW), (Bucket::Appropriate, GOOD)] {
        let symbol = bucket.symbol();
        text = text.replace(symbol, &format!("{style}{symbol}{style:#}"));
    }
    text
}

/// The symbol of a bucket and a short word.
fn sign(bucket: &str) -> String {
    let known = Bucket::ALL.into_iter().find(|known| known.to_string() == bucket);
    let word = bucket.split('-').next().unwrap_or(bucket);
    known.map_or_else(|| bucket.to_owned(), |known| format!("{} {word}", known.symbol()))
}

fn summary(survey: &Survey) -> String {
    let mut text = match survey.spread {
        Some(spread) => format!(
            "Spread of CPU use: {:.3} (average {:.0}%, from {:.0}% to {:.0}%)\n",
            spread.sigma,
            spread.mean * 100.0,
            spread.min * 100.0,
            spread.max * 100.0
        ),
        None => "Spread of CPU use: not known yet; Prometheus has no samples\n".to_owned(),
    };
    text += &match &survey.scoring {
        Some(Scoring { query, under, over, deviation: true }) => {
            format!("Score: {query}\n  ▼ up to the average − {under}%, ▲ above the average + {over}%\n")
        }
        Some(Scoring { query, under, over, deviation: false }) => {
            format!("Score: {query}\n  ▼ up to {under}%, ▲ above {over}%\n")
        }
        None => "Score: none; no descheduler has run yet\n".to_owned(),
    };
    let vms = survey.vms;
    text += &format!("VMs: {}, {} running, {} migrating\n", vms.all, vms.running, vms.migrating);
    text
}

fn migrations(survey: &Survey, width: Option<usize>) -> String {
    if survey.migrations.is_empty() {
        return "No migrations yet.\n".to_owned();
    }
    let mut table = CompactTable::new(&[
        ("MIGRATED", Align::Left),
        ("FROM", Align::Left),
        ("TO", Align::Left),
        ("WHY", Align::Left),
        ("OUTCOME", Align::Left),
        ("AGE", Align::Right),
    ]);
    for migration in &survey.migrations {
        let sign = match migration.outcome.as_str() {
            JournalEntry::SUCCEEDED => '✔',
            JournalEntry::RUNNING => '…',
            _ => '✘',
        };
        table.row(vec![
            migration.vm.clone(),
            migration.from.clone(),
            migration.to.clone().unwrap_or_else(|| NONE.to_owned()),
            migration.why.clone(),
            format!("{sign} {}", migration.outcome),
            age(migration.ended.unwrap_or(migration.began), survey.taken),
        ]);
    }
    let mut text = table.render(width);
    if survey.migration_count > survey.migrations.len() {
        text += &format!("and {} before\n", survey.migration_count - survey.migrations.len());
    }
    text.replace('✔', &format!("{GOOD}✔{GOOD:#}")).replace('✘', &format!("{BAD}✘{BAD:#}"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sim::Spread;

    use super::*;
    use crate::survey::Vms;

    fn survey() -> Survey {
        let part = |name: &str, problem: Option<&str>, place: &str| PartState {
            name: name.into(),
            ready: problem.is_none(),
            state: problem.unwrap_or("ready").into(),
            place: place.into(),
        };
        let node = |name: &str, cpu, score, bucket: &str, vms| NodeState {
            name: name.into(),
            takes_vms: true,
            cpu_use: Some(cpu),
            cpu_pressure: Some(0.0),
            memory_use: Some(0.31),
            memory_pressure: Some(0.0),
            score: Some(score),
            bucket: Some(bucket.into()),
            vms,
            soft_taints: Vec::new(),
        };
        let migration = |vm: &str, to: Option<&str>, outcome: &str, ended: Option<i64>| JournalEntry {
            vm: vm.into(),
            from: "kwok-node-1".into(),
            to: to.map(Into::into),
            why: "Descheduler".into(),
            outcome: outcome.into(),
            began: Timestamp::from_second(40).unwrap(),
            ended: ended.map(|at| Timestamp::from_second(at).unwrap()),
        };
        Survey {
            lab: "lab".into(),
            taken: Timestamp::from_second(100).unwrap(),
            time_scale: 20.0,
            parts: vec![
                part("kube-apiserver", None, "https://127.0.0.1:1"),
                part("descheduler", Some("not ready"), ""),
            ],
            nodes: vec![
                NodeState {
                    soft_taints: vec!["appropriate".into(), "overutilized".into()],
                    ..node("kwok-node-1", 0.754, 0.5, "over-utilized", 15)
                },
                node("kwok-node-2", 0.1, 0.0, "under-utilized", 7),
                NodeState { takes_vms: false, ..node("kwok-node-3", 0.12, 0.0, "appropriately-utilized", 7) },
                NodeState { name: "kwok-node-4".into(), takes_vms: true, ..NodeState::default() },
            ],
            scoring: Some(Scoring { query: "score".into(), under: 10, over: 10, deviation: true }),
            spread: Some(Spread { mean: 0.42, sigma: 0.3214, min: 0.1, max: 0.754 }),
            vms: Vms { all: 50, running: 50, migrating: 1 },
            migrations: vec![
                migration("vm-001", None, "Migrating", None),
                migration("vm-002", Some("kwok-node-2"), "Succeeded", Some(90)),
                migration("vm-003", None, "NotConverging", Some(70)),
            ],
            migration_count: 5,
            problems: vec!["asking: no answer".into()],
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_survey_is_aligned_tables_with_signs() {
        let expected = "\
Lab lab, 20 times as fast as the clock

PART            STATE        WHERE
kube-apiserver  ✔ ready      https://127.0.0.1:1
descheduler     ✘ not ready

NODE         CPU  PRESSURE  MEMORY  PRESSURE  SCORE  BUCKET                    VMS  SOFT TAINTS
kwok-node-1  75%        0%     31%        0%  0.500  ▲ over                     15  appropriate, overutilized
kwok-node-2  10%        0%     31%        0%  0.000  ▼ under                     7  -
kwok-node-3  12%        0%     31%        0%  0.000  ■ appropriately (closed)    7  -
kwok-node-4    -         -       -         -      -  -                           0  -

Spread of CPU use: 0.321 (average 42%, from 10% to 75%)
Score: score
  ▼ up to the average − 10%, ▲ above the average + 10%
VMs: 50, 50 running, 1 migrating

MIGRATED  FROM         TO           WHY          OUTCOME          AGE
vm-001    kwok-node-1  -            Descheduler  … Migrating      60s
vm-002    kwok-node-1  kwok-node-2  Descheduler  ✔ Succeeded      10s
vm-003    kwok-node-1  -            Descheduler  ✘ NotConverging  30s
and 2 before
! asking: no answer
";
        assert_eq!(plain(&text(&survey(), None)), expected);
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_tables() {
        let text = plain(&text(&survey(), Some(60)));
        let tables = text.lines().filter(|line| line.starts_with("kwok-node") || line.starts_with("vm-"));
        assert!(tables.clone().count() > 5);
        assert!(tables.clone().all(|line| terminal::table::columns(line) <= 60), "{text}");
    }

    #[test]
    fn an_empty_lab_says_so() {
        let empty = Survey {
            time_scale: 1.0,
            parts: vec![],
            nodes: vec![],
            scoring: None,
            spread: None,
            migrations: vec![],
            problems: vec![],
            ..survey()
        };
        let text = plain(&text(&empty, None));
        assert!(text.starts_with("Lab lab\n"), "{text}");
        assert!(text.contains("not known yet") && text.contains("no descheduler has run yet"), "{text}");
        assert!(text.ends_with("No migrations yet.\n"), "{text}");
    }
}
