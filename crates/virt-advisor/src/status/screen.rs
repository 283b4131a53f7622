//! The screen. Colors repeat what a word says already; anstream leaves them out where they do not belong.

mod room;

use std::collections::BTreeMap;

use advisor::{
    blast_radius::Unread,
    rollout_view::{ConfigStatus, GuestState, NodePhase, NodeProgress, Notice, PoolProgress},
};
use anstyle::{AnsiColor, Style};
use jiff::{Timestamp, tz::TimeZone};
use terminal::{
    Signs, age,
    table::{self, Cell},
};

use super::StatusReport;
use crate::{
    node_names::NodeNames,
    prose::{BOLD, INDENT, indented, outdented},
};
use room::Room;
pub(super) use room::fitted;

const BAD: Style = AnsiColor::Red.on_default().bold();
const BUSY: Style = AnsiColor::Yellow.on_default();
const ON_ITS_WAY: Style = AnsiColor::Cyan.on_default();
const GOOD: Style = AnsiColor::Green.on_default();

/// The labels of the header.
const LABEL: usize = 11;

/// For whom the screen is made.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) width: usize,
    pub(super) signs: Signs,
    pub(super) all: bool,
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
}

/// All of it, however long.
pub(super) fn render(report: &StatusReport, look: &Look) -> String {
    render_in(report, look, Room::open(look.all))
}

fn render_in(report: &StatusReport, look: &Look, room: Room) -> String {
    let nodes = report.configurations.iter().flat_map(|config| &config.pools).flat_map(|pool| &pool.nodes);
    let page = Page { look, room, names: NodeNames::of(nodes.map(|node| node.name.as_str()), look.width) };
    let text = page.text(report);
    let is_blank = |line: &&str| room.is_dense && line.is_empty();
    text.lines().filter(|line| !is_blank(line)).map(|line| format!("{line}\n")).collect()
}

/// One drawing of the screen.
struct Page<'a> {
    look: &'a Look,
    room: Room,
    names: NodeNames,
}

impl Page<'_> {
    fn text(&self, report: &StatusReport) -> String {
        let mut parts = Vec::new();
        if report.configurations.is_empty() {
            parts.push("There is no VirtPlatformConfig.\n".to_owned());
        }
        let is_detailed = |config: &ConfigStatus| report.profile.is_some() || config.is_in_progress();
        if report.profile.is_none() && !report.configurations.is_empty() {
            parts.push(self.overview(&report.configurations, is_detailed));
        }
        let detailed = report.configurations.iter().filter(|config| is_detailed(config));
        parts.extend(detailed.map(|config| self.config(config)));
        if !report.unread.is_empty() {
            parts.push(self.unread(&report.unread));
        }
        parts.join("\n")
    }

    fn unread(&self, unread: &[Unread]) -> String {
        if self.room.is_brief {
            let names: Vec<&str> = unread.iter().map(|unread| unread.what).collect();
            return format!("{BOLD}Not read{BOLD:#} {}\n", names.join(", "));
        }
        let lines = unread.iter().map(|unread| {
            let line = format!("{}: {}. Not known: {}", unread.what, unread.why, unread.consequence);
            indented(&line, INDENT, self.look.width)
        });
        format!("{BOLD}Not read{BOLD:#}\n{}", lines.collect::<String>())
    }

    fn overview(&self, configs: &[ConfigStatus], is_detailed: impl Fn(&ConfigStatus) -> bool) -> String {
        let row = |config: &ConfigStatus| {
            let health = config.health.as_ref().filter(|_| !(self.room.is_brief && is_detailed(config)));
            let message = health.map_or("", |health| health.message.as_str());
            vec![
                Cell::styled(&config.profile, BOLD),
                Cell::styled(phase(config), phase_style(config)),
                self.look.since(config.since).into(),
                config.action.as_str().into(),
                message.into(),
            ]
        };
        let rows: Vec<_> = configs.iter().map(row).collect();
        table::render(&["PROFILE", "PHASE", "SINCE", "ACTION", "WHAT"], &rows, self.look.width)
    }

    fn config(&self, config: &ConfigStatus) -> String {
        let style = phase_style(config);
        let since = config.since.map_or_else(String::new, |since| format!(" for {}", age(since, self.look.now)));
        let mut text = format!("{BOLD}{}{BOLD:#}: {style}{}{style:#}{since}\n", config.profile, phase(config));
        text += &self.facts(config);
        text += &if config.pools.is_empty() { String::new() } else { self.names.legend() };
        let told = config.health.as_ref().map_or("", |health| health.message.as_str());
        for pool in &config.pools {
            text.push('\n');
            text += &self.pool(pool, told);
        }
        text += &self.guests(&config.guests);
        text + &self.events(&config.events)
    }

    fn facts(&self, config: &ConfigStatus) -> String {
        let mut facts: Vec<(&str, String, Style)> = Vec::new();
        let mut plain = |label, value| facts.extend((!self.room.is_brief).then_some((label, value, Style::new())));
        plain("action", config.action.as_str().to_owned());
        if let Some(approved) = &config.approved {
            let by = approved.by.as_deref().unwrap_or("nobody is named");
            let at = approved.at.map_or_else(String::new, |at| format!(", {}", self.look.date(at)));
            let reason = approved.reason.as_ref().map_or_else(String::new, |reason| format!(", {reason}"));
            plain("approved by", format!("{by}{at}{reason}"));
        }
        if let Some(window) = &config.window {
            plain("window", window.clone());
        }
        if let Some(time) = config.not_before {
            plain("not before", self.look.date(time));
        }
        if let Some(time) = config.not_after {
            plain("not after", self.look.date(time));
        }
        if let Some(digest) = &config.plan_digest {
            plain("plan", digest.chars().take(12).collect());
        }
        if let Some(health) = &config.health {
            let (label, style) = match health.is_stalled() {
                true => ("STALLED", BAD),
                false if config.is_in_progress() => ("waits for", Style::new()),
                false => ("says", Style::new()),
            };
            let since =
                if health.is_stalled() { format!("for {}, ", age(health.since, self.look.now)) } else { String::new() };
            facts.push((label, format!("{since}{}: {}", health.reason, health.message), style));
        }
        facts.iter().map(|(label, value, style)| self.fact(label, value, *style)).collect()
    }

    fn fact(&self, label: &str, value: &str, style: Style) -> String {
        let blank = " ".repeat(LABEL + 1 - label.len().min(LABEL));
        let lines = table::wrapped(value, self.look.width.saturating_sub(LABEL + 4).max(30));
        let indent = format!("\n{}", " ".repeat(LABEL + 4));
        format!("   {style}{label}{style:#}{blank}{}\n", lines.join(&indent))
    }

    /// `told` is what was said before, and is not said again where there is little room.
    fn pool(&self, pool: &PoolProgress, told: &str) -> String {
        let style = match pool {
            pool if pool.is_in_trouble() => BAD,
            pool if pool.is_done() => GOOD,
            _ => ON_ITS_WAY,
        };
        let bar = self.bar(pool);
        let since = pool.since.map_or_else(String::new, |since| format!(" for {}", age(since, self.look.now)));
        let left = if pool.is_done() { String::new() } else { format!(", {} left", pool.remaining.text()) };
        let head = format!("{BOLD}Pool {}{BOLD:#} {bar} {style}{}{style:#}{since}{left}", pool.name, pool.state);
        let mut text = outdented(&head, self.look.width);
        if let Some(cause) = pool.cause.as_ref().filter(|cause| !(self.room.is_brief && told.contains(cause.as_str())))
        {
            text += &indented(cause, INDENT, self.look.width);
        }
        let shown = self.shown(&pool.nodes);
        if shown == 0 {
            return text + &left_out(&pool.nodes);
        }
        let row = |node: &NodeProgress| {
            vec![
                self.names.short(&node.name).into(),
                Cell::styled(node.phase.word(), node_style(node.phase)),
                self.look.since(node.since).into(),
                node.reason.as_deref().unwrap_or_default().into(),
            ]
        };
        let rows: Vec<_> = pool.nodes.iter().take(shown).map(row).collect();
        text += &table::render(&["NODE", "PHASE", "SINCE", "WHY"], &rows, self.look.width);
        text + &left_out(&pool.nodes[shown..])
    }

    /// The nodes that are not at rest, and as many others as there is room for.
    fn shown(&self, nodes: &[NodeProgress]) -> usize {
        let busy = nodes.iter().filter(|node| node.phase < NodePhase::Waiting).count();
        busy.min(self.room.busy).max(self.room.nodes).min(nodes.len())
    }

    /// `[#####-----] 3/6`
    fn bar(&self, pool: &PoolProgress) -> String {
        let Some((updated, total)) = pool.updated.zip(pool.total) else { return "[?]".into() };
        let cells = if self.look.width >= 120 { 30 } else { 15 };
        let full = (updated * cells).checked_div(total).unwrap_or(0).min(cells);
        let (on, off) = match self.look.signs {
            Signs::Unicode => ("█", "░"),
            Signs::Ascii => ("#", "-"),
        };
        format!("[{}{}] {updated}/{total}", on.repeat(full), off.repeat(cells - full))
    }

    fn guests(&self, guests: &[GuestState]) -> String {
        if guests.is_empty() {
            return String::new();
        }
        let shown = self.room.guests.min(guests.len());
        let row = |guest: &GuestState| {
            vec![
                format!("{}/{}", guest.namespace, guest.name).into(),
                self.names.short(&guest.node).into(),
                self.look.since(guest.since).into(),
                Cell::styled(&guest.what, if guest.blocks() { BAD } else { Style::new() }),
            ]
        };
        let rows: Vec<_> = guests.iter().take(shown).map(row).collect();
        let more = match guests.len() - shown {
            0 => String::new(),
            more => format!("and {more} more; --all has them\n"),
        };
        format!("\n{}{more}", table::render(&["VIRTUAL MACHINE", "HOLDS NODE", "SINCE", "IT"], &rows, self.look.width))
    }

    fn events(&self, events: &[Notice]) -> String {
        let events = &events[events.len().saturating_sub(self.room.events)..];
        if events.is_empty() {
            return String::new();
        }
        let row = |event: &Notice| {
            let style = if event.warning { BUSY } else { Style::new() };
            vec![
                self.look.since(Some(event.time)).into(),
                Cell::styled(&event.reason, style),
                event.message.as_str().into(),
            ]
        };
        let rows: Vec<_> = events.iter().map(row).collect();
        format!("\n{}", table::render(&["AGO", "EVENT", "MESSAGE"], &rows, self.look.width))
    }
}

impl Look {
    fn since(&self, since: Option<Timestamp>) -> String {
        since.map_or_else(|| "-".into(), |since| age(since, self.now))
    }

    fn date(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string()
    }

    /// The time of day.
    pub(super) fn clock(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string()
    }
}

fn phase(config: &ConfigStatus) -> &'static str {
    config.phase.map_or("no phase yet", |phase| phase.as_str())
}

fn phase_style(config: &ConfigStatus) -> Style {
    match config.urgency() {
        0 => BAD,
        1 => BUSY,
        2 | 3 => ON_ITS_WAY,
        5 => GOOD,
        _ => Style::new(),
    }
}

fn node_style(phase: NodePhase) -> Style {
    match phase {
        NodePhase::Degraded => BAD,
        NodePhase::Draining | NodePhase::Cordoned | NodePhase::Unknown => BUSY,
        NodePhase::Updating | NodePhase::Rebooting => ON_ITS_WAY,
        NodePhase::Waiting => Style::new(),
        NodePhase::Updated => GOOD,
    }
}

/// `and 40 more: 3 waiting, 37 updated`
fn left_out(nodes: &[NodeProgress]) -> String {
    let mut counts: BTreeMap<NodePhase, usize> = BTreeMap::new();
    nodes.iter().for_each(|node| *counts.entry(node.phase).or_default() += 1);
    let counts: Vec<String> = counts.iter().map(|(phase, count)| format!("{count} {}", phase.word())).collect();
    if nodes.is_empty() { String::new() } else { format!("and {} more: {}\n", nodes.len(), counts.join(", ")) }
}

#[cfg(test)]
mod tests;
