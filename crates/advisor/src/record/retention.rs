//! Which records are kept.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    VirtPlatformPlanRecord,
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
        let applied = status.iter().flat_map(|status| &status.items).any(|item| item.applied);
        let finished = status.as_ref().is_some_and(|status| status.finished_at.is_some());
        Some(Summary { profile: spec.profile, number, first: spec.first, original: spec.original, applied, finished })
    }
}

/// The number of the next record of a profile.
pub fn next_number(profile: Profile, records: &[Summary]) -> u32 {
    let last = records.iter().filter(|record| record.profile == profile).map(|record| record.number).max();
    last.map_or(1, |last| last.saturating_add(1))
}

/// The names of the records that are no longer kept, if this many are kept of each profile.
///
/// Never the newest that was applied, nor one that is not finished. Nor those that tell what was there originally: since the
/// configuration last managed nothing, every record with a value from before it managed the field. Nor number 1: by it, a configuration
/// that was deleted and created again notices that numbers are taken.
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
