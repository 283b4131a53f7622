//! The result for people. Colors repeat what a word says already; anstream leaves them out where they do not belong.

use advisor::blast_radius::{
    BlastRadius, Capacity, CapacityResult, DrainEffect, GuestOutcome, NamedRisk, NodeRadius, PoolRadius, Unread,
};
use anstyle::{AnsiColor, Style};
use kube_io::Class;
use terminal::table::{self, Cell};

use super::{
    probe::{Answer, ProbeResult},
    report::{ImpactReport, Reviewed},
};
use crate::{
    node_names::NodeNames,
    prose::{BOLD, command, counted, hanging, indented, outdented, section},
    reader::why as why_not,
};

/// So many rows of a table, and so many pieces of evidence, are shown without --all.
const ROWS: usize = 20;
const EVIDENCE: usize = 3;
/// What is told as not read if virtual machines are not.
const INSTANCES: &str = "VirtualMachineInstances";

pub(crate) fn render(report: &ImpactReport<'_>, width: usize, all: bool) -> String {
    let plans: Vec<String> = report.plans.iter().map(|plan| of_plan(plan, width, all)).collect();
    let mut text = plans.join("\n");
    if plans.is_empty() {
        let none = "No configuration has a plan: set spec.action of one to DryRun, and the operator makes one.";
        text += &outdented(none, width);
    }
    text + &format!(
        "\nRead {} with {}.\n",
        counted(report.read.objects, "object"),
        counted(report.read.requests, "request")
    )
}

fn of_plan(plan: &Reviewed<'_>, width: usize, all: bool) -> String {
    let radius = &plan.impact;
    let mut text = outdented(&format!("{BOLD}{}: {}{BOLD:#}", plan.profile, headline(radius)), width);
    text += &plan.plan_digest.map_or_else(String::new, |digest| format!("Plan digest {digest}\n"));
    text += &plan.phase.map_or_else(String::new, |phase| format!("Phase {phase}\n"));
    if radius.reboots {
        text.push('\n');
        text += &summary(radius);
        let nodes = radius.pools.iter().flat_map(|pool| &pool.nodes).map(|node| node.name.as_str());
        let names = NodeNames::of(nodes, width);
        text += &names.legend();
        for pool in &radius.pools {
            text += &of_pool(pool, &names, width, all);
        }
        text += &guests(radius, &names, width, all);
    }
    text += &risks(&radius.risks, width, all);
    if let Some(answers) = &plan.probe {
        text += &probed(answers, width);
    }
    text += &section("Not read", unread(radius), width);
    text += &section("Where the times come from", radius.basis.iter().cloned(), width);
    text += &section("Notes", radius.notes.iter().cloned(), width);
    text += &how_to_stop(plan, width);
    text
}

/// `3 nodes reboot, with 7 virtual machines on them`
pub(crate) fn headline(radius: &BlastRadius) -> String {
    if !radius.reboots {
        return "no node reboots, and no virtual machine notices".into();
    }
    let unknown = has_unknown_nodes(radius);
    let nodes = match (radius.totals.nodes, unknown) {
        (0, true) => "nodes reboot, and which is not known".into(),
        (count, true) => format!("{} and others that are not known reboot", counted(count, "node")),
        (1, false) => "1 node reboots".into(),
        (count, false) => format!("{} reboot", counted(count, "node")),
    };
    let own = radius.namespace.as_ref().map_or_else(String::new, |own| format!(" of namespace {own}"));
    let guests = counted(radius.totals.guests, "virtual machine");
    match Counted::of(radius) {
        Counted::None => format!("{nodes}; the virtual machines on them are not known"),
        Counted::Some => format!("{nodes}, with {guests}{own} on those that are known"),
        Counted::All => format!("{nodes}, with {guests}{own} on them"),
    }
}

/// How many of the virtual machines on the nodes that reboot are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    None,
    /// Those of some of the nodes.
    Some,
    All,
}

impl Counted {
    fn of(radius: &BlastRadius) -> Self {
        let is_unread = radius.unread.iter().any(|unread| unread.what == INSTANCES);
        match (is_unread, has_unknown_nodes(radius), radius.totals.nodes) {
            (true, ..) | (false, true, 0) => Counted::None,
            (false, true, _) => Counted::Some,
            (false, false, _) => Counted::All,
        }
    }

    fn text(self, count: usize) -> String {
        match (self, count) {
            (Counted::None, _) | (Counted::Some, 0) => "?".into(),
            (Counted::Some, count) => format!("at least {count}"),
            (Counted::All, count) => count.to_string(),
        }
    }
}

fn has_unknown_nodes(radius: &BlastRadius) -> bool {
    radius.pools.is_empty() || radius.pools.iter().any(|pool| pool.max_unavailable.is_none())
}

/// What could not be read, and what helps whoever may read one namespace.
fn unread(radius: &BlastRadius) -> Vec<String> {
    let told = |unread: &Unread| format!("{}: {}. Not known: {}", unread.what, unread.why, unread.consequence);
    let mut lines: Vec<String> = radius.unread.iter().map(told).collect();
    let is_refused = |unread: &Unread| unread.what == INSTANCES && unread.why == why_not(&Class::Forbidden);
    if radius.namespace.is_none() && radius.unread.iter().any(is_refused) {
        lines.push("With -n NAMESPACE only the virtual machines of one namespace are read".into());
    }
    lines
}

/// How many virtual machines are in each class, how long it takes, and whether there is room for them.
pub(crate) fn summary(radius: &BlastRadius) -> String {
    let mut text = String::new();
    let known = Counted::of(radius);
    for effect in DrainEffect::ALL {
        let count = radius.totals.count(effect);
        if count > 0 || effect != DrainEffect::Unknown {
            let (style, words) = (style(effect, count), effect.words());
            let blank = " ".repeat(26_usize.saturating_sub(words.len()));
            text += &format!("   {style}{words}{style:#}{blank}{}\n", known.text(count));
        }
    }
    let capacity = capacity(&radius.capacity);
    text + &format!("   {:<26}{}\n   {:<26}{capacity}\n", "takes", radius.duration.text(), "room on other nodes")
}

fn capacity(capacity: &Capacity) -> String {
    let away = counted(capacity.nodes_away, "node");
    let is = if capacity.nodes_away == 1 { "is" } else { "are" };
    match capacity.result {
        CapacityResult::NotNeeded => "not needed: nothing moves".into(),
        CapacityResult::Enough => format!("enough by requests while {away} {is} away"),
        CapacityResult::Short => format!("NOT ENOUGH by requests while {away} {is} away"),
        CapacityResult::Unknown => "?".into(),
    }
}

fn of_pool(pool: &PoolRadius, names: &NodeNames, width: usize, all: bool) -> String {
    let mut head = vec![counted(pool.nodes.len(), "node")];
    match (pool.max_unavailable, pool.expected_nodes) {
        (None, Some(1)) => head = vec!["1 node by the plan, whose name is not known".into()],
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
    let head = format!("{BOLD}Pool {}{BOLD:#}: {}", pool.name, head.join(", "));
    let mut text = format!("\n{}", outdented(&head, width));
    if pool.nodes.is_empty() {
        return text;
    }
    let shown = if all { pool.nodes.len() } else { ROWS };
    let rows: Vec<Vec<Cell>> = pool.nodes.iter().take(shown).map(|node| of_node(node, names)).collect();
    text += &table::render(
        &["NODE", "ZONE", "WAVE", "MOVE", "RESTART", "DOWN", "BLOCK", "?", "DRAIN", "UNTIL READY"],
        &rows,
        width,
    );
    text + &more(pool.nodes.len(), shown, "nodes")
}

fn of_node(node: &NodeRadius, names: &NodeNames) -> Vec<Cell> {
    let totals = node.totals();
    let number = |effect: DrainEffect| {
        let count = totals.count(effect);
        Cell::styled(count.to_string(), style(effect, count))
    };
    vec![
        names.short(&node.name).into(),
        node.zone.as_deref().unwrap_or("-").into(),
        node.wave.map_or_else(|| node.held_back.unwrap_or("-").to_owned(), |wave| wave.to_string()).into(),
        number(DrainEffect::MovesLive),
        number(DrainEffect::Restarts),
        number(DrainEffect::StaysDown),
        number(DrainEffect::BlocksDrain),
        number(DrainEffect::Unknown),
        node.drain.text().into(),
        node.total.text().into(),
    ]
}

/// Class by class, the worst first.
fn guests(radius: &BlastRadius, names: &NodeNames, width: usize, all: bool) -> String {
    let listed = || radius.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.guests);
    if listed().next().is_none() {
        return String::new();
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut hidden = String::new();
    for effect in DrainEffect::ALL {
        let of_class: Vec<&GuestOutcome> = listed().filter(|outcome| outcome.effect == effect).collect();
        let shown = if all { of_class.len() } else { ROWS };
        rows.extend(of_class.iter().take(shown).map(|outcome| {
            vec![
                format!("{}/{}", outcome.namespace, outcome.name).into(),
                names.short(&outcome.node).into(),
                Cell::styled(effect.words(), style(effect, 1)),
                why(outcome).into(),
            ]
        }));
        hidden += &more(of_class.len(), shown, &format!("that {}", plural(effect)));
    }
    format!("\n{}{hidden}", table::render(&["VIRTUAL MACHINE", "NODE", "WHAT HAPPENS", "WHY"], &rows, width))
}

/// The cause, and KubeVirt's own words where they say more.
fn why(outcome: &GuestOutcome) -> String {
    match &outcome.message {
        Some(message) if outcome.effect != DrainEffect::MovesLive && !outcome.cause.contains(message.as_str()) => {
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
            text += &hanging("      -", evidence, 8, width);
        }
        if risk.evidence.len() > shown {
            text += &format!("      - and {} more\n", risk.evidence.len() - shown);
        }
    }
    text
}

fn probed(answers: &[Answer], width: usize) -> String {
    let count = |wanted: Option<bool>| {
        answers.iter().filter(|answer| answer.agrees == wanted && answer.result != ProbeResult::NotAsked).count()
    };
    let unasked: Vec<&Answer> = answers.iter().filter(|answer| answer.result == ProbeResult::NotAsked).collect();
    let mut lines = vec![format!(
        "{} of KubeVirt agree with this, {} do not",
        counted(count(Some(true)), "answer"),
        count(Some(false))
    )];
    lines.extend(answers.iter().filter(|answer| answer.agrees == Some(false)).map(|answer| {
        let result = match answer.result {
            ProbeResult::ShutDown => "it would be shut down",
            ProbeResult::Evacuated => "it would be evacuated",
            ProbeResult::Refused | ProbeResult::NotAsked => "its eviction would be refused",
        };
        let message = answer.message.as_deref().map_or_else(String::new, |message| format!(" ({message})"));
        format!("{}/{}, which {}: {result}{message}", answer.namespace, answer.name, answer.effect.words())
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
    section("Probe: dry runs of evictions", lines, width)
}

fn how_to_stop(plan: &Reviewed<'_>, width: usize) -> String {
    let rights = match plan.may_pause {
        Some(true) => "You may do that",
        Some(false) => "You may not do that: it takes the right to patch machineconfigpools",
        None => "Whether you may do that could not be asked",
    };
    let patch = |pool: &PoolRadius| {
        let name = &pool.name;
        let text = format!("kubectl patch machineconfigpool {name} --type=merge -p '{{\"spec\":{{\"paused\":true}}}}'");
        command(&text, 3, width)
    };
    if plan.impact.pools.is_empty() {
        return String::new();
    }
    let rule = format!("Pause the pool: nodes that have begun are finished, and no other one begins. {rights}");
    section("To stop it once it has begun", [rule], width) + &plan.impact.pools.iter().map(patch).collect::<String>()
}

fn more(total: usize, shown: usize, what: &str) -> String {
    if total <= shown {
        String::new()
    } else {
        format!("and {} more {what}; --all or -o json has them\n", total - shown)
    }
}

fn style(effect: DrainEffect, count: usize) -> Style {
    match effect {
        _ if count == 0 => Style::new(),
        DrainEffect::BlocksDrain | DrainEffect::StaysDown => AnsiColor::Red.on_default().bold(),
        DrainEffect::Restarts | DrainEffect::Unknown => AnsiColor::Yellow.on_default(),
        DrainEffect::MovesLive => AnsiColor::Green.on_default(),
    }
}

/// What several of a class do.
fn plural(effect: DrainEffect) -> &'static str {
    match effect {
        DrainEffect::BlocksDrain => "block the drain",
        DrainEffect::StaysDown => "go down and stay down",
        DrainEffect::Unknown => "nothing is known about",
        DrainEffect::Restarts => "restart",
        DrainEffect::MovesLive => "move live",
    }
}

#[cfg(test)]
mod tests;
