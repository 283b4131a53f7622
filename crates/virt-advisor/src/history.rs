//! `virt-advisor history`: the records of applied plans, newest first, or one of them with its diffs.

mod text;

use advisor::kind::PLAN_RECORD;
use api::{
    VirtPlatformPlanRecord,
    virt_platform_config::Severity,
    virt_platform_plan_record::{Outcome, number},
};
use jiff::Timestamp;
use kube_io::Class;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    configs,
    connection::Connection,
    failure::{Failure, failed},
    output::{Document, OutputArgs},
    plan::view::PlanView,
    program,
    reader::Reader,
    unreadable::{self, Unreadable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor history
  virt-advisor history load-aware-rebalancing
  virt-advisor history load-aware-rebalancing 3")]
pub(crate) struct Args {
    /// The profile whose plans are listed [default: all]
    profile: Option<String>,
    /// The number of one record, which is shown with its diffs
    #[arg(requires = "profile")]
    number: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The records of applied plans, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct History {
    pub(crate) records: Vec<Entry>,
    /// Those that this version of the program cannot read.
    pub(crate) unreadable: Vec<Unreadable>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// The name of the VirtPlatformPlanRecord.
    pub(crate) name: String,
    pub(crate) profile: String,
    pub(crate) number: u32,
    #[schemars(with = "String")]
    pub(crate) started_at: Timestamp,
    #[schemars(with = "Option<String>")]
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) outcome: Outcome,
    /// The outcome in words.
    pub(crate) message: Option<String>,
    /// The record or `original` that the plan put back. Absent when it applied the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restore: Option<String>,
    pub(crate) approved_by: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) impact_severity: Severity,
    pub(crate) items_total: usize,
    /// How many items were written, or found as they should be.
    pub(crate) items_applied: usize,
    pub(crate) plan_digest: String,
    /// The plan, if one record was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PlanView>,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    let reader = connection.reader("history").await?;
    let (records, unreadable) = match (&args.profile, args.number) {
        (Some(profile), Some(number)) => (vec![one(&reader, profile, number).await?], Vec::new()),
        (profile, _) => of_profile(reader.list(&path()).await?, profile.as_deref()),
    };
    let is_one = args.number.is_some();
    let document = Document::new("History", History { unreadable, ..History::new(&records, is_one) });
    args.output.print(&document, || text::render(&document.body, args.profile.as_deref(), terminal::width()))
}

fn path() -> String {
    format!("/apis/{}/{}/{}", PLAN_RECORD.group, PLAN_RECORD.versions[0], PLAN_RECORD.plural)
}

async fn one(reader: &Reader, profile: &str, number: u32) -> anyhow::Result<VirtPlatformPlanRecord> {
    let name = format!("{profile}-{number}");
    let missing = || {
        let command = program::name();
        let text =
            format!("there is no VirtPlatformPlanRecord {name}; `{command} history {profile}` lists those there are");
        failed(Failure::NotFound, text)
    };
    if !configs::is_name(&name) {
        return Err(missing());
    }
    match reader.get(&format!("{}/{name}", path())).await {
        Err(error) if error.class == Class::NotFound => Err(missing()),
        answer => Ok(unreadable::parse(answer?)?),
    }
}

/// The record of this name.
#[cfg(feature = "forecast")]
pub(crate) async fn named(reader: &Reader, name: &str) -> anyhow::Result<VirtPlatformPlanRecord> {
    Ok(unreadable::parse(reader.get(&format!("{}/{name}", path())).await?)?)
}

/// The records of a profile, or all of them, and those that this version cannot read.
fn of_profile(objects: Vec<Value>, profile: Option<&str>) -> (Vec<VirtPlatformPlanRecord>, Vec<Unreadable>) {
    let is_wanted = |object: &Value| profile.is_none_or(|profile| object["spec"]["profile"] == profile);
    unreadable::parse_all(objects.into_iter().filter(is_wanted).collect())
}

impl History {
    fn new(records: &[VirtPlatformPlanRecord], with_plan: bool) -> Self {
        let mut records: Vec<Entry> = records.iter().map(|record| Entry::new(record, with_plan)).collect();
        records.sort_by(|a, b| a.profile.cmp(&b.profile).then(b.number.cmp(&a.number)));
        History { records, unreadable: Vec::new() }
    }
}

impl Entry {
    fn new(record: &VirtPlatformPlanRecord, with_plan: bool) -> Self {
        let (spec, status) = (&record.spec, record.status.clone().unwrap_or_default());
        let name = record.metadata.name.clone().unwrap_or_default();
        let granted = spec.approval.as_ref().map(|approval| &approval.granted);
        Entry {
            profile: spec.profile.to_string(),
            number: number(spec.profile, &name).unwrap_or_default(),
            name,
            started_at: spec.started_at.0,
            finished_at: status.finished_at.map(|time| time.0),
            outcome: status.outcome.unwrap_or(Outcome::Running),
            message: status.message,
            restore: spec.restore.as_ref().map(|restore| restore.record.clone()),
            approved_by: granted.and_then(|granted| granted.approved_by.clone()),
            reason: granted.and_then(|granted| granted.reason.clone()),
            impact_severity: spec.impact_severity,
            items_total: spec.items.len(),
            items_applied: status.items.iter().filter(|item| item.applied).count(),
            plan_digest: spec.plan_digest.clone(),
            plan: with_plan.then(|| PlanView::recorded(record)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn records_are_listed_newest_first_with_who_agreed_and_how_they_ended() {
        let history = History::new(&golden::records(), false);
        golden::assert("history", |width| text::render(&history, None, width));
    }

    #[test]
    fn a_record_that_cannot_be_read_hides_no_other_one() {
        let mut objects: Vec<Value> =
            golden::records().iter().map(|record| serde_json::to_value(record).unwrap()).collect();
        objects[1]["spec"]["impactSeverity"] = "Enormous".into();
        let (records, unreadable) = of_profile(objects, Some("load-aware-rebalancing"));
        assert_eq!(records.len(), 1);
        let history = History { unreadable, ..History::new(&records, false) };
        let text = text::render(&history, None, 160);
        assert!(
            text.contains("CHG-4711") && text.contains("load-aware-rebalancing-8 cannot be read by this version"),
            "{text}"
        );
    }

    #[test]
    fn one_record_is_shown_with_its_diffs() {
        let history = History::new(&golden::records()[..1], true);
        golden::assert("history_one", |width| text::render(&history, Some("load-aware-rebalancing"), width));
    }
}
