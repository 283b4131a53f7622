//! The plan that takes back what a profile has changed: every object is set back to what records say was there before.
//!
//! Records only say what to set back. Whether that is still right is decided by what the cluster says now.

#[cfg(test)]
mod tests;

use api::{
    VirtPlatformConfigSpec, VirtPlatformPlanRecord,
    virt_platform_config::{ORIGINAL, Profile as ProfileName, TargetRef},
    virt_platform_plan_record::{RecordedItem, name as record_name, number},
};
use serde_json::Value;

use crate::{
    Access, Change, Draft, Facts, Intent, InvalidOptions, ObjectRef, Planner, Profile, Query, Requirement,
    autopilot::{self, Asset},
    fields::Path,
    intent::{Restoration, Weight},
    kind::{HYPER_CONVERGED, KUBE_DESCHEDULER, Kind, MACHINE_CONFIG, PLAN_RECORD},
    record::{Restored, restored},
};

const WHY: &str = "to take back what the profile has changed";

/// Plans what the spec asks for: the profile with its options or, with `restore`, the way back.
pub fn planner(
    profile: &'static dyn Profile,
    spec: &VirtPlatformConfigSpec,
) -> Result<Box<dyn Planner>, InvalidOptions> {
    match &spec.restore {
        Some(restore) => Ok(Box::new(Restoring { profile, name: spec.profile, record: restore.record.clone() })),
        None => profile.resolve(spec.options.as_ref()),
    }
}

#[derive(Debug)]
struct Restoring {
    profile: &'static dyn Profile,
    name: ProfileName,
    /// The name of a record, or `original`.
    record: String,
}

impl Planner for Restoring {
    fn requirements(&self, facts: &Facts) -> Vec<Requirement> {
        if facts.answer(&Query::List(&PLAN_RECORD)).is_none() {
            return Vec::new();
        }
        self.records(facts).err().map(Requirement::Unmet).into_iter().collect()
    }

    fn wants(&self, facts: &Facts) -> Vec<Query> {
        // The impact on nodes depends on the same facts as for any plan of the profile.
        let of_profile = self.profile.resolve(None).map(|planner| planner.wants(facts)).unwrap_or_default();
        let targets = self.targets(facts).into_iter().map(|(target, ..)| Query::Object(target));
        let mut wanted = vec![Query::List(&PLAN_RECORD)];
        for query in of_profile.into_iter().chain(targets) {
            if !wanted.contains(&query) {
                wanted.push(query);
            }
        }
        wanted
    }

    fn plan(&self, facts: &Facts) -> Draft {
        let drafts = self.targets(facts).into_iter().map(|(target, version, items)| {
            let items: Vec<&RecordedItem> = items.iter().collect();
            let restored = restored(facts.object(&target), &items);
            if restored.change == Some(Change::Delete)
                && !self.profile.access().contains(&Access::Delete(target.clone()))
            {
                return Draft::note(format!(
                    "{target} did not exist before. The operator may not delete it: delete it by hand"
                ));
            }
            // Nothing is set back by force that the autopilot would only set again.
            let asset = Asset::of(&target, facts);
            let draft = draft(target, version, &items, &restored);
            match asset {
                Some(asset) => autopilot::beside(draft, &asset, facts),
                None => draft,
            }
        });
        autopilot::concluded(drafts.fold(Draft::default(), Draft::and), facts)
    }
}

impl Restoring {
    /// The records to take back, from the newest to the oldest. An error says why there are none.
    fn records(&self, facts: &Facts) -> Result<Vec<VirtPlatformPlanRecord>, String> {
        let number = |record: &VirtPlatformPlanRecord| number(self.name, record.metadata.name.as_deref()?);
        let own = facts.list(&PLAN_RECORD).iter().filter(|record| self.is_own(record));
        let mut records: Vec<VirtPlatformPlanRecord> =
            own.filter_map(|record| serde_json::from_value(record.clone()).ok()).collect();
        records.sort_by_key(|record| std::cmp::Reverse(number(record)));
        let oldest = match self.record.as_str() {
            ORIGINAL => records.iter().find(|record| record.spec.first),
            name => records.iter().find(|record| record.metadata.name.as_deref() == Some(name)),
        };
        let Some(oldest) = oldest else { return Err(self.missing(&records)) };
        let numbers: Vec<u32> = records.iter().filter_map(number).collect();
        let Some(from) = number(oldest) else { return Err(self.missing(&records)) };
        // What was there before the configuration managed anything is always kept.
        if let Some(gap) = gap(&numbers, from).filter(|_| !oldest.spec.first) {
            let has_original = records.iter().any(|record| record.spec.first);
            return Err(self.incomplete(&gap, &numbers, has_original));
        }
        records.retain(|record| number(record) >= Some(from));
        Ok(records)
    }

    /// Whether a record is of this profile, by its name.
    fn is_own(&self, record: &Value) -> bool {
        record["metadata"]["name"].as_str().is_some_and(|name| number(self.name, name).is_some())
    }

    fn missing(&self, records: &[VirtPlatformPlanRecord]) -> String {
        let names: Vec<&str> = records.iter().filter_map(|record| record.metadata.name.as_deref()).collect();
        let instead = match names.is_empty() {
            true => format!("There is no record of {} to restore instead: set the objects back by hand", self.name),
            false => instead(&names),
        };
        match self.record.as_str() {
            ORIGINAL => format!(
                "No record tells what was there before {} managed anything: nothing was applied, or it was applied by a version \
                 without records, or the record was deleted. {instead}",
                self.name
            ),
            name => format!("VirtPlatformPlanRecord {name} does not exist. {instead}"),
        }
    }

    fn incomplete(&self, gap: &Gap, numbers: &[u32], has_original: bool) -> String {
        let names = has_original.then(|| ORIGINAL.to_owned()).into_iter().chain(
            numbers.iter().take_while(|number| **number > gap.last).map(|number| record_name(self.name, *number)),
        );
        let (first, last) = (record_name(self.name, gap.first), record_name(self.name, gap.last));
        let gone = match gap.first == gap.last {
            true => format!("VirtPlatformPlanRecord {first}, which came later, is"),
            false => {
                let some = if gap.is_interrupted { "some of the " } else { "" };
                format!("{some}VirtPlatformPlanRecords from {first} to {last}, which came later, are")
            }
        };
        let names: Vec<String> = names.collect();
        format!(
            "The state before {} cannot be restored as a whole: {gone} not kept any longer, and what was changed then is not known. {}",
            self.record,
            instead(&names.iter().map(String::as_str).collect::<Vec<_>>())
        )
    }

    /// The objects that the records have changed, the last one first, each with its recorded changes, the newest first.
    fn targets(&self, facts: &Facts) -> Vec<(ObjectRef, &'static str, Vec<RecordedItem>)> {
        let mut targets: Vec<(ObjectRef, &'static str, Vec<RecordedItem>)> = Vec::new();
        for record in self.records(facts).unwrap_or_default() {
            for item in record.spec.items.into_iter().rev().filter(RecordedItem::changes_something) {
                let Some((target, version)) = self.target(&item.target_ref) else { continue };
                match targets.iter_mut().find(|(known, ..)| *known == target) {
                    Some((.., items)) => items.push(item),
                    None => targets.push((target, version, vec![item])),
                }
            }
        }
        targets
    }

    /// The object, if it is one that the profile may change: a record gives no right to change anything else.
    fn target(&self, target: &TargetRef) -> Option<(ObjectRef, &'static str)> {
        self.profile.access().into_iter().find_map(|access| {
            let (Access::Change(object) | Access::Create(object) | Access::Delete(object)) = access else {
                return None;
            };
            let version = object.kind.versions.iter().find(|version| object.target(version) == *target)?;
            Some((object, *version))
        })
    }
}

fn instead(names: &[&str]) -> String {
    format!("Restore one of these instead: {}; or set the objects back by hand", names.join(", "))
}

/// Numbers of records that came later and are not kept.
struct Gap {
    first: u32,
    last: u32,
    /// Whether records in between are kept.
    is_interrupted: bool,
}

/// What is missing behind this number, of numbers from the highest to the lowest.
fn gap(numbers: &[u32], from: u32) -> Option<Gap> {
    let holes = numbers.windows(2).filter(|pair| pair[1] >= from && pair[0] > pair[1].saturating_add(1));
    let holes = holes.map(|pair| Gap { first: pair[1] + 1, last: pair[0] - 1, is_interrupted: false });
    holes.reduce(|newer, older| Gap { first: older.first, last: newer.last, is_interrupted: true })
}

/// The way back of one object, and what a reviewer has to know about it.
fn draft(target: ObjectRef, version: &'static str, items: &[&RecordedItem], restored: &Restored) -> Draft {
    let Some(newest) = items.first() else { return Draft::default() };
    let mut draft = Draft::default();
    let listed = |paths: &[Path]| paths.iter().map(Path::to_string).collect::<Vec<_>>().join(", ");
    if !restored.not_recorded.is_empty() {
        let fields = listed(&restored.not_recorded);
        draft
            .notes
            .push(format!("{target}: secret values are not recorded, so these fields stay as they are: {fields}"));
    }
    if !restored.shared.is_empty() {
        let fields = listed(&restored.shared);
        draft.notes.push(format!("{target}: these fields stay, because others have applied them too: {fields}"));
    }
    if restored.created_again {
        let note = "was deleted by somebody and created again by a later plan. What it was before that is not known as a whole: only \
                    what was applied since then is taken back";
        draft.notes.push(format!("{target} {note}"));
    }
    let Some(change) = restored.change.clone() else {
        if restored.replaced {
            let note = "does not exist any more, and only some of its fields are recorded. It is not created again";
            draft.notes.push(format!("{target} {note}"));
        }
        return draft;
    };
    let mut changed_since: Vec<String> = restored.changed_since.iter().map(Path::to_string).collect();
    if restored.replaced {
        changed_since.push("metadata.uid".to_owned());
    }
    draft.intents.push(Intent {
        name: newest.name.clone().into(),
        message: message(&target, &change, items),
        weight: weight(target.kind),
        target,
        version,
        managed: managed(items).into_iter().map(Into::into).collect(),
        change,
        why: WHY,
        inputs: Vec::new(),
        restores: Some(Restoration { field_manager: newest.field_manager.clone(), changed_since }),
    });
    draft
}

fn message(target: &ObjectRef, change: &Change, items: &[&RecordedItem]) -> String {
    let mut owners: Vec<&str> =
        items.iter().flat_map(|item| &item.leaves).flat_map(|leaf| &leaf.former_owners).map(String::as_str).collect();
    owners.sort_unstable();
    owners.dedup();
    owners.retain(|owner| !items.iter().any(|item| item.field_manager == *owner));
    let owners = match owners.is_empty() {
        true => String::new(),
        false => format!("; its fields were set by {} before", owners.join(", ")),
    };
    let name = format!("{} '{}'", target.kind.kind, target.name);
    match change {
        Change::Delete => format!("{name} will be deleted: it did not exist before"),
        Change::Apply { .. } => format!("{name} will be set back to what it was before{owners}"),
    }
}

/// The outermost fields that hold everything that the items have changed.
fn managed(items: &[&RecordedItem]) -> Vec<String> {
    let paths = items.iter().flat_map(|item| &item.leaves).filter_map(|leaf| Path::from_keys(&leaf.path));
    let mut managed: Vec<String> = paths.map(|path| path.outermost(2).to_string()).collect();
    managed.sort();
    managed.dedup();
    managed
}

fn weight(kind: &Kind) -> Weight {
    match kind {
        kind if *kind == MACHINE_CONFIG => Weight::Nodes,
        kind if *kind == HYPER_CONVERGED => Weight::Platform,
        kind if *kind == KUBE_DESCHEDULER => Weight::Component,
        _ => Weight::Negligible,
    }
}
