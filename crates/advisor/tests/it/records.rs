//! Properties of records: they tell what was there before a plan and after it, and lead back.

use advisor::{
    ObjectRef, Plan, PlannedItem, Verb, field_manager,
    fields::{self, Path},
    object_text, record,
    test_cluster::{TestCluster, arbitrary, records::recorded},
};
use api::virt_platform_plan_record::RecordedItem;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::properties::{cluster, either, higher_density_options, load_aware_options, with_hyper_converged};

/// The object as people see it; None if it does not exist.
fn found(cluster: &TestCluster, target: &ObjectRef) -> Option<Value> {
    cluster.find(target.kind, target.namespace, &target.name).map(object_text::sanitized)
}

/// What the item says of the object, before or after.
fn told(
    object: Option<Value>,
    item: &RecordedItem,
    side: impl Fn(&RecordedItem, usize) -> Option<String>,
) -> Option<Value> {
    let mut object = object?;
    for (at, leaf) in item.leaves.iter().enumerate() {
        let path = Path::from_keys(&leaf.path).unwrap();
        match side(item, at) {
            Some(value) => path.set(&mut object, serde_json::from_str(&value).unwrap()),
            None => path.remove(&mut object),
        }
    }
    Some(object)
}

/// Applies a whole plan, and returns what each target was before.
fn carry_out(cluster: &mut TestCluster, plan: &Plan) -> Vec<(ObjectRef, Option<Value>)> {
    let written: Vec<&PlannedItem> =
        plan.items.iter().filter(|planned| !matches!(planned.verb, Verb::Unchanged | Verb::Refused)).collect();
    written
        .into_iter()
        .map(|planned| {
            let before = found(cluster, &planned.target);
            cluster.carry_out(planned);
            (planned.target.clone(), before)
        })
        .collect()
}

/// Restores the state before a record, and checks that nothing is left to do and nothing is owned afterwards.
fn restore(cluster: &mut TestCluster, profile: &str, record: &str, number: u32) {
    let plan = cluster.restore_plan(profile, record);
    assert_eq!(
        plan.items.iter().flat_map(|planned| &planned.item.changed_since).next(),
        None,
        "nobody changed anything"
    );
    cluster.apply_recorded(&plan, number);
    let again = cluster.restore_plan(profile, record);
    let left: Vec<_> = again.items.iter().filter(|planned| planned.verb != Verb::Unchanged).collect();
    assert!(left.is_empty(), "{left:#?}");
    let managers = again.items.iter().filter_map(|planned| Some((planned, cluster.found(&planned.target)?)));
    for (planned, object) in managers {
        assert!(!fields::owns_anything(object, field_manager::of_item(&planned.item)), "{}", planned.target);
    }
}

/// A profile, and several options for it, one after the other.
fn changes_of_mind() -> impl Strategy<Value = (&'static str, Vec<Value>)> {
    prop_oneof![
        proptest::collection::vec(load_aware_options(), 1..4).prop_map(|options| ("load-aware-rebalancing", options)),
        proptest::collection::vec(higher_density_options(), 1..4).prop_map(|options| ("virt-higher-density", options)),
    ]
}

proptest! {
    #![proptest_config(arbitrary::cases(48))]

    #[test]
    fn a_record_tells_the_object_before_and_after((_, cluster) in cluster(), (profile, options) in either()) {
        let mut cluster = with_hyper_converged(cluster).with_defaults();
        let plan = cluster.plan(profile, options);
        let record = recorded(&plan, 1).spec;
        for (planned, item) in plan.items.iter().zip(&record.items) {
            if matches!(planned.verb, Verb::Unchanged | Verb::Refused) {
                prop_assert!(item.leaves.is_empty());
                continue;
            }
            let before = found(&cluster, &planned.target);
            cluster.carry_out(planned);
            let after = found(&cluster, &planned.target);
            prop_assert_eq!(item.existed, before.is_some());
            if let (Some(before), Some(after)) = (before, after) {
                let forward = told(Some(before.clone()), item, |item, at| item.leaves[at].after.clone());
                prop_assert_eq!(forward, Some(after.clone()), "{:#?}", item.leaves);
                let back = record::restored(Some(&after), &[item]);
                prop_assert_eq!(&back.changed_since, &Vec::<Path>::new());
                prop_assert!(!back.replaced && back.not_recorded.is_empty());
            }
        }
    }

    /// After one, two or three plans, all at once or one after the other.
    #[test]
    fn applying_and_restoring_leaves_everything_as_it_was(
        (_, cluster) in cluster(),
        (profile, options) in changes_of_mind(),
        at_once in any::<bool>(),
    ) {
        let mut cluster = with_hyper_converged(cluster).with_defaults();
        let mut originals: Vec<(ObjectRef, Option<Value>)> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (number, options) in options.into_iter().enumerate() {
            let plan = cluster.plan(profile, options);
            let record = recorded(&plan, number as u32 + 1);
            names.push(record.metadata.name.clone().unwrap());
            cluster.put(json!(record));
            for (target, before) in carry_out(&mut cluster, &plan) {
                if !originals.iter().any(|(known, _)| *known == target) {
                    originals.push((target, before));
                }
            }
        }
        let next = names.len() as u32 + 1;
        match at_once {
            true => restore(&mut cluster, profile, &names[0], next),
            false => names.iter().rev().zip(next..).for_each(|(name, number)| restore(&mut cluster, profile, name, number)),
        }
        for (target, before) in originals {
            prop_assert_eq!(found(&cluster, &target), before, "{}", target);
        }
    }
}
