//! Properties of records: they tell what was there before a plan and after it, and lead back.

use advisor::{
    ObjectRef, Plan, PlannedItem, Verb,
    fields::Path,
    record::{self, Start, plan_record},
    render,
    test_cluster::{TestCluster, arbitrary},
};
use api::{
    VirtPlatformConfig, VirtPlatformConfigSpec, VirtPlatformPlanRecordSpec, virt_platform_config::Profile,
    virt_platform_plan_record::RecordedItem,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use proptest::prelude::*;
use serde_json::Value;

use crate::properties::{cluster, either, higher_density_options, load_aware_options, with_hyper_converged};

fn recorded(plan: &Plan, number: u32) -> VirtPlatformPlanRecordSpec {
    let profile = Profile::ALL.iter().find(|profile| profile.as_str() == plan.profile).unwrap();
    let config = VirtPlatformConfig::new(plan.profile, VirtPlatformConfigSpec::new(*profile));
    let now = Time(Timestamp::UNIX_EPOCH);
    let record = plan_record(&config, plan, &Start { number, first: true, operator_version: "v1", now }).unwrap();
    let written = serde_json::to_string(&record).unwrap();
    assert_eq!(record, serde_json::from_str(&written).unwrap());
    record.spec
}

/// The object as people see it; None if it does not exist.
fn found(cluster: &TestCluster, target: &ObjectRef) -> Option<Value> {
    cluster.find(target.kind, target.namespace, &target.name).map(render::sanitized)
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

/// Restores all items of the records, from the newest to the oldest.
fn restore(cluster: &mut TestCluster, plans: &[(Plan, VirtPlatformPlanRecordSpec)]) {
    let mut targets: Vec<(ObjectRef, &'static str)> = Vec::new();
    for planned in plans.iter().flat_map(|(plan, _)| &plan.items) {
        if !targets.iter().any(|(known, _)| *known == planned.target) {
            targets.push((planned.target.clone(), planned.version));
        }
    }
    for (target, version) in targets {
        let is_its = |item: &&RecordedItem| {
            item.target_ref == target.target(version) && (!item.leaves.is_empty() || !item.existed)
        };
        let items: Vec<&RecordedItem> =
            plans.iter().rev().flat_map(|(_, record)| record.items.iter().filter(is_its)).collect();
        let now = cluster.find(target.kind, target.namespace, &target.name).cloned();
        let Some(change) = record::restored(now.as_ref(), &items).change else { continue };
        cluster.change(&target, version, &change, &items[0].field_manager);
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
        let record = recorded(&plan, 1);
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
        let mut plans: Vec<(Plan, VirtPlatformPlanRecordSpec)> = Vec::new();
        for (number, options) in options.into_iter().enumerate() {
            let plan = cluster.plan(profile, options);
            let record = recorded(&plan, number as u32 + 1);
            for (target, before) in carry_out(&mut cluster, &plan) {
                if !originals.iter().any(|(known, _)| *known == target) {
                    originals.push((target, before));
                }
            }
            plans.push((plan, record));
        }
        match at_once {
            true => restore(&mut cluster, &plans),
            false => plans.chunks(1).rev().for_each(|plan| restore(&mut cluster, plan)),
        }
        for (target, before) in originals {
            prop_assert_eq!(found(&cluster, &target), before, "{}", target);
        }
    }
}
