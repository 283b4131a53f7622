//! Which records are kept.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    VirtPlatformPlanRecord, VirtPlatformPlanRecordStatus,
    virt_platform_config::Profile,
    virt_platform_plan_record::{name, number},
};

/// How many records of a profile are kept by default.
pub const KEPT: usize = 20;

/// What the decision to keep a record depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub profile: Profile,
    pub number: u32,
    /// The configuration managed nothing before.
    pub first: bool,
    /// It holds a value from before the configuration managed the field.
    pub original: bool,
    /// At least one item was applied.
    pub applied: bool,
    pub finished: bool,
}

impl Summary {
    /// None if the name is not one of a record.
    pub fn of(record: &VirtPlatformPlanRecord) -> Option<Self> {
        let VirtPlatformPlanRecord { metadata, spec, status } = record;
        let number = number(spec.profile, metadata.name.as_deref()?)?;
        let (applied, finished) = ends(status.as_ref());
        Some(Summary { profile: spec.profile, number, first: spec.first, original: spec.original, applied, finished })
    }
}

/// Whether an item was applied, and whether the plan has ended.
fn ends(status: Option<&VirtPlatformPlanRecordStatus>) -> (bool, bool) {
    let applied = status.into_iter().flat_map(|status| &status.items).any(|item| item.applied);
    (applied, status.is_some_and(|status| status.finished_at.is_some()))
}

/// The number of the next record of a profile.
pub fn next_number(profile: Profile, records: &[Summary]) -> u32 {
    let last = records.iter().filter(|record| record.profile == profile).map(|record| record.number).max();
    last.map_or(1, |last| last.saturating_add(1))
}

/// What a process knows of the records of a profile without listing them: what it listed once, and what it has done since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownRecords {
    /// None until they were listed, and when something does not fit together.
    records: Option<Vec<Summary>>,
}

impl KnownRecords {
    pub fn listed(records: Vec<Summary>) -> Self {
        KnownRecords { records: Some(records) }
    }

    /// A record was created. If its number does not come next, somebody else has created others.
    pub fn created(&mut self, record: &VirtPlatformPlanRecord) {
        let new = Summary::of(record);
        let Some((records, new)) = self.records.as_mut().zip(new) else { return };
        match next_number(new.profile, records) == new.number {
            true => records.push(new),
            false => *self = KnownRecords::default(),
        }
    }

    /// A record was closed.
    pub fn closed(&mut self, name: &str, status: &VirtPlatformPlanRecordStatus) {
        let Some(records) = &mut self.records else { return };
        match records.iter_mut().find(|record| self::name(record.profile, record.number) == name) {
            Some(record) => (record.applied, record.finished) = ends(Some(status)),
            None => *self = KnownRecords::default(),
        }
    }

    pub fn deleted(&mut self, name: &str) {
        let is_other = |record: &Summary| self::name(record.profile, record.number) != name;
        self.records.iter_mut().for_each(|records| records.retain(is_other));
    }

    /// As [`expired`]. None if they have to be listed first.
    pub fn expired(&self, keep: usize) -> Option<Vec<String>> {
        self.records.as_ref().map(|records| expired(records, keep))
    }
}

/// The names of the records that are no longer kept, if this many are kept of each profile.
pub fn expired(records: &[Summary], keep: usize) -> Vec<String> {
    let mut by_profile: BTreeMap<Profile, Vec<&Summary>> = BTreeMap::new();
    for record in records {
        by_profile.entry(record.profile).or_default().push(record);
    }
    let names = by_profile.into_values().map(|mut records| {
        records.sort_by_key(|record| std::cmp::Reverse(record.number));
        let kept = kept(&records, keep);
        records.into_iter().filter(move |record| !kept.contains(&record.number))
    });
    names.flatten().map(|record| name(record.profile, record.number)).collect()
}

/// The numbers that are kept, of records from the newest to the oldest.
fn kept(records: &[&Summary], keep: usize) -> BTreeSet<u32> {
    let newest = records.iter().find(|record| record.applied).map(|record| record.number);
    let since = records.iter().find(|record| record.first && record.applied).map_or(0, |record| record.number);
    // Originals since the configuration last managed nothing tell what was there before it. By number 1, a configuration that was
    // deleted and created again notices that numbers are taken.
    let is_needed = |record: &&&Summary| {
        let is_original = record.original && record.number >= since;
        Some(record.number) == newest || !record.finished || is_original || record.number == 1
    };
    let mut kept: BTreeSet<u32> = records.iter().filter(is_needed).map(|record| record.number).collect();
    for record in records {
        if kept.len() >= keep {
            break;
        }
        kept.insert(record.number);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record by number and letters: `f`irst, `o`riginal, `a`pplied, `r`unning.
    fn record(number: u32, letters: &str) -> Summary {
        let has = |letter| letters.contains(letter);
        Summary {
            profile: Profile::Example,
            number,
            first: has('f'),
            original: has('o'),
            applied: has('a'),
            finished: !has('r'),
        }
    }

    /// What it is about, the records, how many are kept, and which are deleted.
    type Case = (&'static str, &'static [(u32, &'static str)], usize, &'static [u32]);

    fn deleted(records: &[(u32, &str)], keep: usize) -> Vec<u32> {
        let records: Vec<_> = records.iter().map(|(number, letters)| record(*number, letters)).collect();
        let names = expired(&records, keep);
        let mut numbers: Vec<u32> = names.iter().map(|name| number(Profile::Example, name).unwrap()).collect();
        numbers.sort();
        numbers
    }

    #[test]
    fn the_newest_records_are_kept_and_those_that_a_restore_needs() {
        let cases: [Case; 10] = [
            ("number 1 stays", &[(1, ""), (2, ""), (3, "a"), (4, "a")], 2, &[2, 3]),
            ("nothing to delete", &[(1, "foa"), (2, "a")], 2, &[]),
            ("the first stays", &[(1, "foa"), (2, "a"), (3, "a"), (4, "a")], 2, &[2, 3]),
            ("one that set a field more stays", &[(1, "foa"), (2, "a"), (3, "oa"), (4, "a")], 2, &[2]),
            ("after a restore the first is another", &[(1, "foa"), (2, "a"), (3, "foa"), (4, "a")], 2, &[2]),
            ("a first that applied nothing is none", &[(1, "foa"), (2, "a"), (3, "fo"), (4, "a")], 2, &[2]),
            ("the newest applied stays", &[(1, "foa"), (2, "a"), (3, ""), (4, ""), (5, "")], 2, &[3, 4, 5]),
            ("one that runs stays", &[(1, "foa"), (2, "ar"), (3, "a")], 2, &[]),
            ("without a first, all values from before stay", &[(4, "oa"), (5, "a"), (6, "a")], 1, &[5]),
            ("the order does not count", &[(3, "a"), (1, "foa"), (2, "a")], 2, &[2]),
        ];
        for (case, records, keep, expected) in cases {
            assert_eq!(deleted(records, keep), expected, "{case}");
        }
    }

    /// A record as it is created.
    fn created(number: u32) -> VirtPlatformPlanRecord {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord",
            "metadata": {"name": name(Profile::Example, number)},
            "spec": {
                "profile": "example-profile", "configUid": "u", "generation": 1, "planDigest": "d", "operatorVersion": "v",
                "startedAt": "2026-01-05T08:00:00Z", "impactSeverity": "Low",
            },
        }))
        .unwrap()
    }

    #[test]
    fn records_are_listed_once_and_then_followed() {
        let finished: VirtPlatformPlanRecordStatus = serde_json::from_value(serde_json::json!({
            "finishedAt": "2026-01-05T09:00:00Z", "items": [{"name": "a", "state": "Completed", "applied": true}],
        }))
        .unwrap();
        let mut known_records = KnownRecords::default();
        known_records.created(&created(1));
        known_records.closed("example-profile-1", &finished);
        assert_eq!(known_records.expired(1), None, "nothing was listed yet");

        let mut known_records = KnownRecords::listed(vec![record(1, "foa"), record(2, "a")]);
        for (number, expired) in [(3, "example-profile-2"), (4, "example-profile-3")] {
            assert_eq!(known_records.expired(1), Some(vec![]), "only number 1 and the newest are there");
            known_records.created(&created(number));
            assert_eq!(
                known_records.expired(1),
                Some(vec![]),
                "{number} runs, and the one before it is the newest applied"
            );
            known_records.closed(&name(Profile::Example, number), &finished);
            assert_eq!(known_records.expired(1), Some(vec![expired.to_owned()]));
            known_records.deleted(expired);
        }

        let mut skipped = known_records.clone();
        skipped.created(&created(6));
        assert_eq!(skipped.expired(1), None, "another process has created number 5");
        known_records.closed("example-profile-5", &finished);
        assert_eq!(known_records.expired(1), None, "another process has created it");
    }

    #[test]
    fn profiles_are_counted_apart() {
        let other = |number| Summary { profile: Profile::VirtHigherDensity, ..record(number, "a") };
        let records = [record(2, "a"), other(2), record(3, "a"), other(3)];
        assert_eq!(expired(&records, 2), [""; 0]);
        assert_eq!(expired(&records, 1), ["virt-higher-density-2", "example-profile-2"]);
        assert_eq!(next_number(Profile::Example, &records), 4);
        assert_eq!(next_number(Profile::LoadAwareRebalancing, &records), 1);
    }
}
