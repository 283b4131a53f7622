//! Which objects a profile still manages, as its records tell.

use api::{
    VirtPlatformConfigStatus, VirtPlatformPlanRecord,
    virt_platform_config::{Operation, TargetRef},
    virt_platform_plan_record::{Outcome, RecordedItem, number},
};

/// The objects with fields that the profile has applied and no restore has taken back. The status alone does not tell them: a plan that
/// waits for a review has replaced the items. It counts besides, because it is all that versions without records have written.
pub fn managed(status: Option<&VirtPlatformConfigStatus>, records: &[VirtPlatformPlanRecord]) -> Vec<TargetRef> {
    let mut records: Vec<&VirtPlatformPlanRecord> = records.iter().collect();
    records.sort_by_key(|record| {
        std::cmp::Reverse(record.metadata.name.as_deref().and_then(|name| number(record.spec.profile, name)))
    });
    let of_status = status
        .filter(|status| status.restore.is_none())
        .into_iter()
        .flat_map(|status| &status.items)
        .filter(|item| item.applied_fingerprint.is_some())
        .map(|item| (&item.target_ref, item.operation));
    let of_records = records
        .into_iter()
        .take_while(|record| !is_finished_restore(record))
        // One that has not finished may have taken back anything, or nothing.
        .filter(|record| record.spec.restore.is_none())
        .flat_map(|record| record.spec.items.iter().filter(|item| is_applied(record, item)))
        .map(|item| (&item.target_ref, item.operation));
    let mut newest: Vec<(&TargetRef, Operation)> = Vec::new();
    for (target, operation) in of_status.chain(of_records) {
        if !newest.iter().any(|(known, _)| *known == target) {
            newest.push((target, operation));
        }
    }
    newest
        .into_iter()
        .filter(|(_, operation)| *operation == Operation::Apply)
        .map(|(target, _)| target.clone())
        .collect()
}

fn is_finished_restore(record: &VirtPlatformPlanRecord) -> bool {
    let outcome = record.status.as_ref().and_then(|status| status.outcome);
    record.spec.restore.is_some() && outcome == Some(Outcome::Completed)
}

/// Whether the item was, or may have been, written.
fn is_applied(record: &VirtPlatformPlanRecord, item: &RecordedItem) -> bool {
    let outcomes = record.status.iter().flat_map(|status| &status.items);
    item.changes_something() && outcomes.filter(|outcome| outcome.name == item.name).all(|outcome| outcome.applied)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn target(kind: char) -> Value {
        json!({"apiVersion": "v1", "kind": kind.to_string(), "name": "cluster"})
    }

    /// A record with one item per letter: capital if the item was applied, after `-` if it deletes, in parentheses if the outcome
    /// does not tell. `<` begins the record of a restore, `?` one that has not ended.
    fn record(number: usize, text: &str) -> VirtPlatformPlanRecord {
        let (mut items, mut outcomes, mut deletes, mut told) = (Vec::new(), Vec::new(), false, true);
        for letter in text.chars().filter(|letter| !"<?".contains(*letter)) {
            match letter {
                '-' => deletes = true,
                '(' | ')' => told = letter == ')',
                letter => {
                    let kind = letter.to_ascii_uppercase();
                    items.push(json!({
                        "name": kind.to_string(), "targetRef": target(kind), "operation": if deletes { "Delete" } else { "Apply" },
                        "fieldManager": "m", "existed": false,
                    }));
                    if told {
                        outcomes
                            .push(json!({"name": kind.to_string(), "state": "Completed", "applied": letter == kind}));
                    }
                    deletes = false;
                }
            }
        }
        let restore = text.starts_with('<').then(|| json!({"record": "original"}));
        let outcome = (!text.contains('?')).then_some("Completed");
        serde_json::from_value(json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord",
            "metadata": {"name": format!("example-profile-{}", number + 1)},
            "spec": {
                "profile": "example-profile", "configUid": "u", "generation": 1, "planDigest": "d", "operatorVersion": "v",
                "startedAt": "2026-01-05T08:00:00Z", "impactSeverity": "Low", "restore": restore, "items": items,
            },
            "status": {"outcome": outcome, "items": outcomes},
        }))
        .unwrap()
    }

    /// A status with one item per letter, capital if it was applied; with `<` in front, of a restore.
    fn status(text: &str) -> VirtPlatformConfigStatus {
        let item = |letter: char| {
            let kind = letter.to_ascii_uppercase();
            let fingerprint = (letter == kind).then_some("f");
            json!({
                "name": kind.to_string(), "targetRef": target(kind), "appliedFingerprint": fingerprint, "operation": "Apply",
                "impactSeverity": "Low", "state": "Pending",
            })
        };
        let restore = text.starts_with('<').then(|| json!({"record": "original"}));
        let items: Vec<Value> = text.chars().filter(|letter| *letter != '<').map(item).collect();
        serde_json::from_value(json!({"restore": restore, "items": items})).unwrap()
    }

    /// What it is about, the status, the records from the oldest to the newest, and the kinds that are managed.
    type Case = (&'static str, &'static str, &'static [&'static str], &'static str);

    #[test]
    fn what_was_applied_is_managed_until_a_restore_has_finished() {
        let cases: [Case; 15] = [
            ("nothing was applied", "ab", &[], ""),
            ("a plan was applied", "AB", &["AB"], "AB"),
            ("options were edited, and the new plan waits", "ab", &["AB"], "AB"),
            ("a restore waits for its review", "<ab", &["AB"], "AB"),
            ("a restore is being applied", "<Ab", &["AB", "<AB?"], "AB"),
            ("a restore has finished", "<AB", &["AB", "<AB"], ""),
            ("a restore has finished, and the profile waits again", "ab", &["AB", "<AB"], ""),
            ("applied again after a restore", "a", &["AB", "<AB", "A"], "A"),
            ("a restore that was given up leaves everything managed", "ab", &["AB", "<AB?", "A"], "AB"),
            ("an item that failed is not managed", "ab", &["Ab"], "A"),
            ("an item of which nothing is told may be managed", "ab", &["A(b)"], "AB"),
            ("what the profile has deleted is not managed", "ab", &["AB", "-B"], "A"),
            ("what it has applied again is", "ab", &["AB", "-B", "B"], "BA"),
            ("several plans changed one object each", "", &["A", "B"], "BA"),
            ("a version without records has applied it", "Ab", &[], "A"),
        ];
        for (case, status_text, records, expected) in cases {
            let mut records: Vec<_> = records.iter().enumerate().map(|(at, text)| record(at, text)).collect();
            records.reverse();
            let kinds: String =
                managed(Some(&status(status_text)), &records).into_iter().map(|target| target.kind).collect();
            assert_eq!(kinds, expected, "{case}");
        }
        assert_eq!(managed(None, &[record(0, "A")]).len(), 1, "a configuration that was just created again");
        assert_eq!(managed(None, &[]), []);
    }

    #[test]
    fn an_item_that_found_everything_as_it_should_be_manages_nothing() {
        let mut found = record(0, "A");
        found.spec.items[0].existed = true;
        assert_eq!(managed(None, &[found]), []);
    }
}
