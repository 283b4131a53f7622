//! The history for people.

use anstyle::{AnsiColor, Style};
use api::virt_platform_plan_record::Outcome;
use terminal::{
    minute,
    table::{self, Cell},
};

use super::{Entry, History};
use crate::{
    plan,
    prose::{BOLD, hanging},
    unreadable,
};

pub(super) fn render(history: &History, profile: Option<&str>, width: usize) -> String {
    if history.records.is_empty() && !history.unreadable.is_empty() {
        return unreadable::told(&history.unreadable, width).trim_start().to_owned();
    }
    records(history, profile, width) + &unreadable::told(&history.unreadable, width)
}

fn records(history: &History, profile: Option<&str>, width: usize) -> String {
    if let [entry] = history.records.as_slice()
        && let Some(plan) = &entry.plan
    {
        return one(entry, width) + "\n" + &plan::text::render(plan, width);
    }
    let Some(first) = history.records.first() else {
        return match profile {
            Some(profile) => format!("No plan of {profile} was applied.\n"),
            None => "No plan was applied.\n".to_owned(),
        };
    };
    let mut text = String::new();
    let mut current = "";
    for entry in &history.records {
        if entry.profile == current {
            continue;
        }
        current = &entry.profile;
        let blank = if entry.profile == first.profile { "" } else { "\n" };
        let of_profile = history.records.iter().filter(|entry| entry.profile == current);
        let rows: Vec<_> = of_profile.map(row).collect();
        text += &format!("{blank}{BOLD}{current}{BOLD:#}\n");
        text += &table::render(&["NUMBER", "STARTED", "OUTCOME", "ITEMS", "APPROVED BY", "WHY"], &rows, width);
    }
    text
}

fn row(entry: &Entry) -> Vec<Cell> {
    vec![
        entry.number.to_string().into(),
        minute(entry.started_at).into(),
        Cell::styled(entry.outcome.as_str(), style(entry.outcome)),
        items(entry).into(),
        entry.approved_by.as_deref().unwrap_or("-").into(),
        why(entry).into(),
    ]
}

fn items(entry: &Entry) -> String {
    format!("{}/{}", entry.items_applied, entry.items_total)
}

fn why(entry: &Entry) -> String {
    let reason = entry.reason.as_deref().unwrap_or("-");
    match &entry.restore {
        Some(record) => format!("{reason} (puts back to before: {record})"),
        None => reason.to_owned(),
    }
}

/// What a record says beside its plan.
fn one(entry: &Entry, width: usize) -> String {
    let finished = entry.finished_at.map_or_else(|| "-".to_owned(), minute);
    let style = style(entry.outcome);
    let mut text = format!("{BOLD}{}{BOLD:#}: {style}{}{style:#}\n", entry.name, entry.outcome);
    for (label, value) in [
        ("message", entry.message.clone().unwrap_or_else(|| "-".to_owned())),
        ("started", minute(entry.started_at)),
        ("finished", finished),
        ("approved by", entry.approved_by.clone().unwrap_or_else(|| "-".to_owned())),
        ("why", why(entry)),
        ("items", format!("{} applied", items(entry))),
    ] {
        text += &hanging(&format!("   {label}"), &value, 15, width);
    }
    text
}

fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Completed => AnsiColor::Green.on_default(),
        Outcome::Failed | Outcome::CompletedWithErrors => AnsiColor::Red.on_default(),
        Outcome::Running | Outcome::Superseded => Style::new(),
    }
}
