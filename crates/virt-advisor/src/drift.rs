//! `virt-advisor drift`: field by field, what somebody changed of what was applied, with the rights of whoever asks.

mod text;

use std::process::ExitCode;

use advisor::{drift, fields::Path, profiles};
use api::{
    VirtPlatformConfig,
    virt_platform_config::{Item, Phase, TargetRef},
};
use jiff::Timestamp;
use kube_io::{Class, RequestError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    configs::{self, Listed},
    connection::Connection,
    failure::Failure,
    gather::scope::{self, Wanted},
    output::{Document, OutputArgs},
    reader::{Reader, why},
    unreadable,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  virt-advisor drift
  virt-advisor drift load-aware-rebalancing --exit-code

The objects are read with your own rights. What you may not read is said, and with --exit-code it is 5 if nothing has drifted.")]
pub(crate) struct Args {
    /// The profile to look at [default: all that were applied]
    profile: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// End with exit code 1 if something has drifted
    #[arg(long)]
    exit_code: bool,
}

/// What is not as it was applied.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DriftReport {
    pub(crate) configs: Vec<ConfigDrift>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigDrift {
    pub(crate) profile: String,
    pub(crate) phase: Option<Phase>,
    /// Whether its plan was applied. If not, a new plan may wait for a review, which shows what it would change.
    pub(crate) applied: bool,
    pub(crate) objects: Vec<ObjectDrift>,
    /// Objects that could not be read, each with the reason.
    pub(crate) unread: Vec<String>,
    #[serde(skip)]
    unread_because: Vec<Failure>,
}

/// Why an object could not be read.
#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) why: String,
    failure: Failure,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectDrift {
    pub(crate) item: String,
    pub(crate) target: TargetRef,
    /// `changed`, `deleted` or `created` (again, after the plan had removed it).
    pub(crate) what: &'static str,
    /// The option that keeps an object as it is as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) option: Option<KeepingOption>,
    pub(crate) fields: Vec<FieldDrift>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldDrift {
    pub(crate) path: String,
    /// What was applied. Absent if the field was taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) applied: Option<Value>,
    /// What is there now. Absent if the field is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<Value>,
    /// The field manager that changed it. Absent if the object does not tell, as when a field was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) at: Option<Timestamp>,
    /// The option of the profile that wants the value that is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) option: Option<KeepingOption>,
}

/// An option with which the profile wants what is there now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeepingOption {
    /// The path in the spec, for example `spec.options.loadAware.mode`.
    pub(crate) path: String,
    pub(crate) value: Value,
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<ExitCode> {
    let reader = connection.reader("drift").await?;
    let mut report = DriftReport { configs: Vec::new() };
    let Listed { configs, unreadable } = configs::chosen(&reader, args.profile.as_deref()).await?;
    unreadable::warn(&unreadable);
    for config in configs {
        let is_applied = items(&config).next().is_some();
        if is_applied || args.profile.is_some() {
            report.configs.push(of_config(&reader, &config).await);
        }
    }
    let found = report.found().or((!unreadable.is_empty()).then_some(Failure::Other));
    let document = Document::new("DriftReport", report);
    args.output.print(&document, || text::render(&document.body, terminal::width(), Timestamp::now()))?;
    Ok(found.filter(|_| args.exit_code).map_or(ExitCode::SUCCESS, |found| ExitCode::from(found as u8)))
}

impl DriftReport {
    /// What a script is told: drift, or else that something could not be read, so that nobody takes that for no drift.
    fn found(&self) -> Option<Failure> {
        let is_drifted = self.configs.iter().any(|config| !config.objects.is_empty());
        let unread = || self.configs.iter().flat_map(|config| &config.unread_because).copied();
        match is_drifted {
            true => Some(Failure::Found),
            false => unread().find(|why| *why == Failure::Forbidden).or(unread().next()),
        }
    }
}

/// The items that were applied, whose targets are watched.
fn items(config: &VirtPlatformConfig) -> impl Iterator<Item = &Item> {
    let items = config.status.iter().flat_map(|status| &status.items);
    items.filter(|item| item.applied_fingerprint.is_some())
}

async fn of_config(reader: &Reader, config: &VirtPlatformConfig) -> ConfigDrift {
    let mut read = Vec::new();
    for item in items(config) {
        read.push((item, target(reader, &item.target_ref).await));
    }
    ConfigDrift::new(config, &read)
}

/// The target of an item as it is. None if it does not exist.
pub(crate) async fn target(reader: &Reader, target: &TargetRef) -> Result<Option<Value>, Unread> {
    let unknown = || Unread { why: "no profile declares this kind".to_owned(), failure: Failure::Other };
    let kind = scope::kind_of(target).ok_or_else(unknown)?;
    let wanted = Wanted { kind, namespace: target.namespace.clone(), name: target.name.clone() };
    let version = target.api_version.rsplit('/').next().unwrap_or_default();
    match reader.get(&wanted.path(version)).await {
        Ok(object) => Ok(Some(object)),
        Err(RequestError { class: Class::NotFound, .. }) => Ok(None),
        Err(error) => Err(Unread::new(&error.class)),
    }
}

impl Unread {
    fn new(class: &Class) -> Self {
        Unread { why: why(class).to_owned(), failure: Failure::of_class(class) }
    }
}

impl ConfigDrift {
    fn new(config: &VirtPlatformConfig, read: &[(&Item, Result<Option<Value>, Unread>)]) -> Self {
        let mut drift = ConfigDrift {
            profile: config.spec.profile.to_string(),
            phase: config.status.as_ref().and_then(|status| status.phase),
            applied: !read.is_empty(),
            objects: Vec::new(),
            unread: Vec::new(),
            unread_because: Vec::new(),
        };
        for (item, live) in read {
            match live {
                Ok(live) => drift.objects.extend(ObjectDrift::new(config, item, live.as_ref())),
                Err(Unread { why, failure }) => {
                    drift.unread.push(format!("{}: {why}", crate::plan::text::object(&item.target_ref)));
                    drift.unread_because.push(*failure);
                }
            }
        }
        drift
    }
}

impl ObjectDrift {
    /// None if it is as it was applied.
    fn new(config: &VirtPlatformConfig, item: &Item, live: Option<&Value>) -> Option<Self> {
        let changed = drift::changed_fields(item, live);
        if changed.as_ref().is_some_and(Vec::is_empty) {
            return None;
        }
        let option = |path: &Path, now: Option<&Value>| {
            let profile = profiles::find(config.spec.profile.as_str())?;
            let (option, value) = drift::option_to_keep(profile, config.spec.options.as_ref(), item, path, now)?;
            Some(KeepingOption { path: format!("spec.options.{option}"), value })
        };
        let field = |field: &drift::ChangedField| FieldDrift {
            path: field.path.to_string(),
            applied: field.applied.clone(),
            now: field.now.clone(),
            by: field.by.as_ref().map(|by| by.manager.clone()),
            at: field.by.as_ref().and_then(|by| by.time.as_ref()).map(|time| time.0),
            option: option(&field.path, field.now.as_ref()),
        };
        let what = match (&changed, live) {
            (Some(_), _) => "changed",
            (None, None) => "deleted",
            (None, Some(_)) => "created",
        };
        Some(ObjectDrift {
            item: item.name.clone(),
            target: item.target_ref.clone(),
            what,
            option: changed.is_none().then(|| option(&Path::default(), live)).flatten(),
            fields: changed.iter().flatten().map(field).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn every_field_is_told_with_who_changed_it_and_what_to_do() {
        let (config, live) = golden::drifted();
        let read: Vec<_> =
            items(&config).zip(live.into_iter().map(Result::unwrap)).map(|(item, live)| (item, Ok(live))).collect();
        let report = DriftReport { configs: vec![ConfigDrift::new(&config, &read)] };
        golden::assert("drift", |width| text::render(&report, width, golden::now()));
    }

    #[test]
    fn what_could_not_be_read_is_not_taken_for_no_drift() {
        let (config, live) = golden::drifted();
        let found = |read: Vec<Result<Option<Value>, Unread>>| {
            let read: Vec<_> = items(&config).zip(read).collect();
            DriftReport { configs: vec![ConfigDrift::new(&config, &read)] }.found()
        };
        let unread = |class| Err(Unread::new(&class));
        let changed = || live.iter().cloned().map(|live| Ok(live.unwrap())).next().unwrap();
        assert_eq!(found(Vec::new()), None);
        assert_eq!(found(vec![unread(Class::Unknown), unread(Class::Forbidden)]), Some(Failure::Forbidden));
        assert_eq!(found(vec![unread(Class::Unknown), unread(Class::Busy)]), Some(Failure::ServerAway));
        assert_eq!(found(vec![changed(), unread(Class::Forbidden)]), Some(Failure::Found));
    }

    #[test]
    fn a_plan_that_was_not_applied_has_nothing_to_compare_with() {
        let config = golden::configs().remove(0);
        let report = DriftReport { configs: vec![ConfigDrift::new(&config, &[])] };
        let text = text::render(&report, 80, golden::now());
        assert!(text.contains("was not applied"), "{text}");
    }
}
