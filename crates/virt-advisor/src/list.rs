//! `virt-advisor list`: all configurations, what each waits for, and first those that need a person.

use advisor::waiting::{self, Whom};
use anstyle::{AnsiColor, Style};
use api::{
    VirtPlatformConfig,
    virt_platform_config::{Action, ItemState, Phase, Severity},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use terminal::{
    age,
    table::{self, Cell},
};

use crate::{
    configs::{self, Listed},
    connection::Connection,
    output::{Document, OutputArgs},
    prose::outdented,
    unreadable::{self, Unreadable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor list
  virt-advisor list -o json")]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
}

/// All configurations. Those that need a person come first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigList {
    pub(crate) items: Vec<Entry>,
    /// Those that this version of the program cannot read.
    pub(crate) unreadable: Vec<Unreadable>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) profile: String,
    pub(crate) action: Action,
    pub(crate) phase: Option<Phase>,
    /// Since when it is in this phase.
    #[schemars(with = "Option<String>")]
    pub(crate) since: Option<Timestamp>,
    pub(crate) impact_severity: Option<Severity>,
    pub(crate) items_total: usize,
    /// How many items are in effect.
    pub(crate) items_completed: usize,
    /// Who has the next step: `person`, `cluster`, `time`, `operator` or `nobody`.
    #[schemars(with = "String")]
    pub(crate) waits_for: Whom,
    /// What is waited for; for a person, what to do.
    pub(crate) waits_for_what: String,
    pub(crate) plan_digest: Option<String>,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    let reader = connection.reader("list").await?;
    let (Listed { configs, unreadable }, now) = (configs::list(&reader).await?, Timestamp::now());
    let document = Document::new("ConfigList", ConfigList { unreadable, ..ConfigList::new(&configs, now) });
    args.output.print(&document, || render(&document.body, terminal::width(), now))
}

impl ConfigList {
    fn new(configs: &[VirtPlatformConfig], now: Timestamp) -> Self {
        let mut items: Vec<Entry> = configs.iter().map(|config| Entry::new(config, now)).collect();
        items.sort_by(|a, b| (a.waits_for, &a.profile).cmp(&(b.waits_for, &b.profile)));
        ConfigList { items, unreadable: Vec::new() }
    }
}

impl Entry {
    fn new(config: &VirtPlatformConfig, now: Timestamp) -> Self {
        let status = config.status.clone().unwrap_or_default();
        let waiting = waiting::waiting(config, now);
        Entry {
            profile: config.spec.profile.to_string(),
            action: config.spec.action,
            phase: status.phase,
            since: waiting::since(&status),
            impact_severity: status.impact_severity,
            items_total: status.items.len(),
            items_completed: status.items.iter().filter(|item| item.state == ItemState::Completed).count(),
            waits_for: waiting.whom,
            waits_for_what: waiting.what,
            plan_digest: status.plan_digest,
        }
    }

    fn waits(&self) -> String {
        match (self.waits_for, self.waits_for_what.as_str()) {
            (Whom::Person, what) => format!("you to {what}"),
            (Whom::Nobody, _) => "-".to_owned(),
            (_, what) => what.to_owned(),
        }
    }
}

/// The room that the last column needs beside the others.
const WIDE: usize = 110;

fn render(list: &ConfigList, width: usize, now: Timestamp) -> String {
    if list.items.is_empty() && !list.unreadable.is_empty() {
        return unreadable::told(&list.unreadable, width).trim_start().to_owned();
    }
    listed(list, width, now) + &unreadable::told(&list.unreadable, width)
}

fn listed(list: &ConfigList, width: usize, now: Timestamp) -> String {
    if list.items.is_empty() {
        let none = "There is no VirtPlatformConfig: the operator creates one for each profile that it offers.";
        return outdented(none, width);
    }
    let is_wide = width >= WIDE;
    let row = |entry: &Entry| row(entry, now).into_iter().chain([waits(entry, is_wide)]).collect();
    let rows: Vec<_> = list.items.iter().map(row).collect();
    let headers = ["PROFILE", "ACTION", "PHASE", "IMPACT", "ITEMS", "SINCE"];
    match is_wide {
        true => table::render(&[&headers[..], &["WAITS FOR"]].concat(), &rows, width),
        false => table::with_text_below(&[&headers[..], &[""]].concat(), &rows, width),
    }
}

/// Below the rest of a row, what is not waited for is left out.
fn waits(entry: &Entry, is_column: bool) -> Cell {
    let style = if entry.waits_for == Whom::Person { AnsiColor::Yellow.on_default() } else { Style::new() };
    match (is_column, entry.waits_for) {
        (true, _) => Cell::styled(entry.waits(), style),
        (false, Whom::Nobody) => "".into(),
        (false, _) => Cell::styled(format!("waits for {}", entry.waits()), style),
    }
}

fn row(entry: &Entry, now: Timestamp) -> Vec<Cell> {
    let items = match entry.items_total {
        0 => "-".to_owned(),
        total => format!("{}/{total}", entry.items_completed),
    };
    vec![
        Cell::styled(entry.profile.clone(), Style::new().bold()),
        entry.action.as_str().into(),
        Cell::styled(entry.phase.map_or("-", Phase::as_str), style(entry.phase)),
        entry.impact_severity.map_or("-", Severity::as_str).into(),
        items.into(),
        entry.since.map_or_else(|| "-".to_owned(), |since| age(since, now)).into(),
    ]
}

fn style(phase: Option<Phase>) -> Style {
    match phase {
        Some(Phase::Failed | Phase::CompletedWithErrors | Phase::PrerequisiteFailed) => AnsiColor::Red.on_default(),
        Some(Phase::Drifted | Phase::ReviewRequired) => AnsiColor::Yellow.on_default(),
        Some(Phase::Completed | Phase::CompletedWithUpgrade) => AnsiColor::Green.on_default(),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn what_needs_a_person_comes_first() {
        let list = ConfigList::new(&golden::configs(), golden::now());
        golden::assert("list", |width| render(&list, width, golden::now()));
    }

    #[test]
    fn an_empty_list_says_so() {
        let text = render(&ConfigList { items: Vec::new(), unreadable: Vec::new() }, 80, golden::now());
        assert!(text.starts_with("There is no VirtPlatformConfig"), "{text}");
    }

    #[test]
    fn what_cannot_be_read_is_told_below_the_others() {
        let unreadable =
            vec![Unreadable { kind: "VirtPlatformConfig".into(), name: "new".into(), why: "unknown variant".into() }];
        let list = ConfigList { unreadable, ..ConfigList::new(&golden::configs(), golden::now()) };
        let text = render(&list, 160, golden::now());
        assert!(text.contains("load-aware-rebalancing"), "{text}");
        assert!(text.contains("VirtPlatformConfig new cannot be read by this version"), "{text}");
    }
}
