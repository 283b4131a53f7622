//! The result for people. Colors repeat what a word says already; anstream leaves them out where they do not belong.

use advisor::blast_radius::{BlastRadius, Capacity, Fate, NamedRisk, NodeRadius, Outcome, PoolRadius, Verdict};
use anstyle::{AnsiColor, Style};

use super::{
    probe::{self, Answer},
    report::{Report, Reviewed},
};
use crate::table::{self, Cell};

const BOLD: Style = Style::new().bold();
/// So many rows of a table, and so many pieces of evidence, are shown without --all.
const ROWS: usize = 20;
const EVIDENCE: usize = 3;

pub(crate) fn render(report: &Report<'_>, width: usize, all: bool) -> String {
    let plans: Vec<String> = report.plans.iter().map(|plan| of_plan(plan, width, all)).collect();
    let mut text = plans.join("\n");
    if plans.is_empty() {
        text += "No configuration has a plan: set spec.action of one to DryRun, and the operator makes one.\n";
    }
    text + &format!(
        "\nRead {} with {}.\n",
        counted(report.read.objects, "object"),
        counted(report.read.requests, "request")
    )
}

fn of_plan(plan: &Reviewed<'_>, width: usize, all: bool) -> String {
    let radius = &plan.impact;
    let mut text = format!("{BOLD}{}: {}{BOLD:#}\n", plan.profile, headline(radius));
    let phase = plan.phase.map_or("no phase", |phase| phase.as_str());
    text += &format!("Plan {}, {phase}\n", plan.plan_digest.unwrap_or("without a digest"));
    if radius.reboots {
        text.push('\n');
        text += &summary(radius);
        for pool in &radius.pools {
            text += &of_pool(pool, width, all);
        }
        text += &machines(radius, width, all);
    }
    text += &risks(&radius.risks, width, all);
    if let Some(answers) = &plan.probe {
        text += &probed(answers, width);
    }
    text += &paragraphs(
        "Not read",
        radius
            .unread
            .iter()
            .map(|unread| format!("{}: {}. Not known: {}", unread.what, unread.why, unread.consequence)),
        width,
    );
    text += &paragraphs("Where the times come from", radius.basis.iter().cloned(), width);
    text += &paragraphs("Notes", radius.notes.iter().cloned(), width);
    text += &how_to_stop(plan, width);
    text
}

/// `3 nodes reboot, with 7 virtual machines on them`
fn headline(radius: &BlastRadius) -> String {
    if !radius.reboots {
        return "no node reboots, and no virtual machine notices".into();
    }
    let unknown = radius.pools.iter().any(|pool| pool.max_unavailable.is_none()) || radius.pools.is_empty();
    let nodes = match (radius.totals.nodes, unknown) {
        (0, true) => "nodes reboot, and which is not known".into(),
        (count, true) => format!("{} and others that are not known reboot", counted(count, "node")),
        (1, false) => "1 node reboots".into(),
        (count, false) => format!("{} reboot", counted(count, "node")),
    };
    let is_unread = radius.unread.iter().any(|unread| unread.what == "VirtualMachineInstances");
    match is_unread {
        true => format!("{nodes}; the virtual machines on them are not known"),
        false => format!("{nodes}, with {} on them", counted(radius.totals.machines, "virtual machine")),
    }
}

fn summary(radius: &BlastRadius) -> String {
    let mut text = String::new();
    for fate in Fate::ALL {
        let count = radius.totals.count(fate);
        if count > 0 || fate != Fate::Unknown {
            let (style, words) = (style(fate, count), fate.words());
            let blank = " ".repeat(26_usize.saturating_sub(words.len()));
            text += &format!("   {style}{words}{style:#}{blank}{count}\n");
        }
    }
    let capacity = capacity(&radius.capacity);
    text + &format!("   {:<26}{}\n   {:<26}{capacity}\n", "takes", radius.duration.text(), "room on other nodes")
}

fn capacity(capacity: &Capacity) -> String {
    let away = counted(capacity.nodes_away, "node");
    let is = if capacity.nodes_away == 1 { "is" } else { "are" };
    match capacity.verdict {
        Verdict::NotNeeded => "not needed: nothing moves".into(),
        Verdict::Enough => format!("enough by requests while {away} {is} away"),
        Verdict::Short => format!("NOT ENOUGH by requests while {away} {is} away"),
        Verdict::Unknown => "?".into(),
    }
}

fn of_pool(pool: &PoolRadius, width: usize, all: bool) -> String {
    let mut head = vec![counted(pool.nodes.len(), "node")];
    match (pool.max_unavailable, pool.expected_nodes) {
        (None, Some(expected)) => head = vec![format!("{expected} nodes by the plan, whose names are not known")],
        (None, None) => head = vec!["its nodes are not known".into()],
        (Some(_), _) => head.push(format!("{} at a time", pool.at_a_time)),
    }
    if pool.done > 0 {
        head.push(format!("{} done", pool.done));
    }
    if pool.paused {
        head.push("PAUSED".into());
    }
    head.push(format!("takes {}", pool.duration.text()));
    let mut text = format!("\n{BOLD}Pool {}{BOLD:#}: {}\n", pool.name, head.join(", "));
    if pool.nodes.is_empty() {
        return text;
    }
    let shown = if all { pool.nodes.len() } else { ROWS };
    let rows: Vec<Vec<Cell>> = pool.nodes.iter().take(shown).map(of_node).collect();
    text += &table::render(
        &["NODE", "ZONE", "WAVE", "MOVE", "RESTART", "DOWN", "BLOCK", "?", "DRAIN", "UNTIL READY"],
        &rows,
        width,
    );
    text + &more(pool.nodes.len(), shown, "nodes")
}

fn of_node(node: &NodeRadius) -> Vec<Cell> {
    let totals = node.totals();
    let number = |fate: Fate| {
        let count = totals.count(fate);
        Cell::styled(count.to_string(), style(fate, count))
    };
    vec![
        node.name.as_str().into(),
        node.zone.as_deref().unwrap_or("-").into(),
        node.wave.map_or_else(|| node.held_back.unwrap_or("-").to_owned(), |wave| wave.to_string()).into(),
        number(Fate::MovesLive),
        number(Fate::Restarts),
        number(Fate::StaysDown),
        number(Fate::BlocksDrain),
        number(Fate::Unknown),
        node.drain.text().into(),
        node.total.text().into(),
    ]
}

/// Class by class, the worst first.
fn machines(radius: &BlastRadius, width: usize, all: bool) -> String {
    let listed = || radius.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.machines);
    if listed().next().is_none() {
        return String::new();
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut hidden = String::new();
    for fate in Fate::ALL {
        let of_class: Vec<&Outcome> = listed().filter(|outcome| outcome.fate == fate).collect();
        let shown = if all { of_class.len() } else { ROWS };
        rows.extend(of_class.iter().take(shown).map(|outcome| {
            vec![
                format!("{}/{}", outcome.namespace, outcome.name).into(),
                outcome.node.as_str().into(),
                Cell::styled(fate.words(), style(fate, 1)),
                why(outcome).into(),
            ]
        }));
        hidden += &more(of_class.len(), shown, &format!("that {}", plural(fate)));
    }
    format!("\n{}{hidden}", table::render(&["VIRTUAL MACHINE", "NODE", "WHAT HAPPENS", "WHY"], &rows, width))
}

/// The cause, and KubeVirt's own words where they say more.
fn why(outcome: &Outcome) -> String {
    match &outcome.message {
        Some(message) if outcome.fate != Fate::MovesLive && !outcome.cause.contains(message.as_str()) => {
            format!("{} ({message})", outcome.cause)
        }
        _ => outcome.cause.clone(),
    }
}

fn risks(risks: &[NamedRisk], width: usize, all: bool) -> String {
    if risks.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{BOLD}Risks{BOLD:#}\n");
    for risk in risks {
        text += &indented(&format!("{}: {}", risk.name, risk.message), 3, width);
        let shown = if all { risk.evidence.len() } else { EVIDENCE };
        for evidence in risk.evidence.iter().take(shown) {
            text += &indented(&format!("- {evidence}"), 6, width);
        }
        if risk.evidence.len() > shown {
            text += &format!("      - and {} more\n", risk.evidence.len() - shown);
        }
    }
    text
}

fn probed(answers: &[Answer], width: usize) -> String {
    let count = |wanted: Option<bool>| {
        answers.iter().filter(|answer| answer.agrees == wanted && answer.verdict != probe::Verdict::NotAsked).count()
    };
    let unasked: Vec<&Answer> = answers.iter().filter(|answer| answer.verdict == probe::Verdict::NotAsked).collect();
    let mut lines = vec![format!(
        "{} of KubeVirt agree with this, {} do not",
        counted(count(Some(true)), "answer"),
        count(Some(false))
    )];
    lines.extend(answers.iter().filter(|answer| answer.agrees == Some(false)).map(|answer| {
        let verdict = match answer.verdict {
            probe::Verdict::ShutDown => "it would be shut down",
            probe::Verdict::Evacuated => "it would be evacuated",
            probe::Verdict::Refused | probe::Verdict::NotAsked => "its eviction would be refused",
        };
        let message = answer.message.as_deref().map_or_else(String::new, |message| format!(" ({message})"));
        format!("{}/{}, which {}: {verdict}{message}", answer.namespace, answer.name, answer.fate.words())
    }));
    if let Some(first) = unasked.first() {
        lines.push(format!(
            "{} without an answer, for example {}/{}: {}",
            unasked.len(),
            first.namespace,
            first.name,
            first.message.as_deref().unwrap_or_default()
        ));
    }
    paragraphs("Probe: dry runs of evictions", lines.into_iter(), width)
}

fn how_to_stop(plan: &Reviewed<'_>, width: usize) -> String {
    let rights = match plan.may_pause {
        Some(true) => "You may do that",
        Some(false) => "You may not do that: it takes the right to patch machineconfigpools",
        None => "Whether you may do that could not be asked",
    };
    let command = |pool: &PoolRadius| {
        let name = &pool.name;
        format!("kubectl patch machineconfigpool {name} --type=merge -p '{{\"spec\":{{\"paused\":true}}}}'")
    };
    let commands: Vec<String> = plan.impact.pools.iter().map(command).collect();
    if commands.is_empty() {
        return String::new();
    }
    let rule = format!("Pause the pool: nodes that have begun are finished, and no other one begins. {rights}");
    paragraphs("To stop it once it has begun", [rule].into_iter().chain(commands), width)
}

fn paragraphs(title: &str, lines: impl Iterator<Item = String>, width: usize) -> String {
    let lines: String = lines.map(|line| indented(&line, 3, width)).collect();
    if lines.is_empty() { lines } else { format!("\n{BOLD}{title}{BOLD:#}\n{lines}") }
}

fn indented(text: &str, indent: usize, width: usize) -> String {
    let blank = " ".repeat(indent);
    table::wrapped(text, width.saturating_sub(indent).max(30)).iter().map(|line| format!("{blank}{line}\n")).collect()
}

fn more(total: usize, shown: usize, what: &str) -> String {
    if total <= shown {
        String::new()
    } else {
        format!("and {} more {what}; --all or -o json has them\n", total - shown)
    }
}

fn style(fate: Fate, count: usize) -> Style {
    match fate {
        _ if count == 0 => Style::new(),
        Fate::BlocksDrain | Fate::StaysDown => AnsiColor::Red.on_default().bold(),
        Fate::Restarts | Fate::Unknown => AnsiColor::Yellow.on_default(),
        Fate::MovesLive => AnsiColor::Green.on_default(),
    }
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// What several of a class do.
fn plural(fate: Fate) -> &'static str {
    match fate {
        Fate::BlocksDrain => "block the drain",
        Fate::StaysDown => "go down and stay down",
        Fate::Unknown => "nothing is known about",
        Fate::Restarts => "restart",
        Fate::MovesLive => "move live",
    }
}
