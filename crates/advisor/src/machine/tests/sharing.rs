//! Two profiles on one object: each has its own fields, and neither takes fields of the other.

use api::{
    names::FIELD_MANAGER,
    virt_platform_config::{Action, Phase},
};
use serde_json::{Value, json};

use super::Fixture;
use crate::{
    kind::CONFIG_MAP,
    test_cluster::{
        TestCluster, set_by,
        sharing::{LEFT_MANAGER, Left, RIGHT_MANAGER, Right, config_map, target},
    },
};

/// Both profiles on one cluster. They run in turns until neither has anything to do.
struct Pair {
    left: Fixture,
    right: Fixture,
}

impl Pair {
    fn new() -> Pair {
        let (mut left, mut right) = (Fixture::of(&Left, Action::Ignore), Fixture::of(&Right, Action::Ignore));
        left.cluster = TestCluster::empty();
        right.cluster = TestCluster::empty();
        Pair { left, right }
    }

    /// With an object that exists already.
    fn on(object: Value) -> Pair {
        let mut pair = Pair::new();
        pair.left.cluster.put(object);
        pair
    }

    /// Runs both until they settle. More than a few rounds mean that they overwrite each other.
    fn settle(&mut self) -> &mut Self {
        for _ in 0..4 {
            self.left.settle();
            self.settle_right();
        }
        self
    }

    fn settle_right(&mut self) {
        self.right.cluster = self.left.cluster.clone();
        self.right.settle();
        self.left.cluster = self.right.cluster.clone();
    }

    fn left(&mut self, action: Action, options: Value) -> &mut Self {
        self.left.options(json!({"loadAware": options})).spec.action = action;
        self.settle()
    }

    fn right(&mut self, action: Action, options: Value) -> &mut Self {
        self.right.options(json!({"virtHigherDensity": options})).spec.action = action;
        self.settle()
    }

    fn data(&self) -> Value {
        let object = self.left.cluster.find(&CONFIG_MAP, target().namespace, &target().name);
        object.map_or(Value::Null, |object| object["data"].clone())
    }

    fn phases(&self) -> (Phase, Phase) {
        (self.left.phase(), self.right.phase())
    }

    fn written(&self) -> (usize, usize) {
        (self.left.written.len(), self.right.written.len())
    }

    fn edit(&mut self, manager: &str, name: &str, value: &str) -> &mut Self {
        self.left.cluster.edit(&CONFIG_MAP, &target().name, &["data", name], Some(value.into()));
        let mut edited = self.left.cluster.find(&CONFIG_MAP, target().namespace, &target().name).unwrap().clone();
        let entry =
            json!({"manager": manager, "operation": "Apply", "fieldsV1": {"f:data": {(format!("f:{name}")): {}}}});
        edited["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
        self.left.cluster.put(edited);
        self
    }

    fn bypass(&mut self) -> &mut Self {
        self.left.spec.bypass_optimistic_lock = true;
        self.right.spec.bypass_optimistic_lock = true;
        self
    }
}

const BOTH_COMPLETED: (Phase, Phase) = (Phase::Completed, Phase::Completed);

/// The message of the second profile.
fn conflict(fixture: &Fixture) -> &str {
    let told = fixture.condition(fixture.phase().as_str()).unwrap();
    assert_eq!(told.reason, "ProfileConflict", "{told:?}");
    &told.message
}

#[test]
fn each_applies_its_own_fields_in_either_order_and_the_other_stays_in_effect() {
    for left_first in [true, false] {
        let mut pair = Pair::new();
        for left in [left_first, !left_first] {
            match left {
                true => pair.left(Action::Apply, json!({})),
                false => pair.right(Action::Apply, json!({})),
            };
        }
        assert_eq!(pair.data(), json!({"left": "60", "right": "150"}));
        assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (1, 1)), "once each, and no drift");
        assert_eq!(pair.left.item("share").field_manager.as_deref(), Some(LEFT_MANAGER));
        assert_eq!(pair.right.item("share").field_manager.as_deref(), Some(RIGHT_MANAGER));

        pair.left(Action::Apply, json!({"deschedulingIntervalSeconds": 120}));
        assert_eq!(pair.data(), json!({"left": "120", "right": "150"}));
        assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (2, 1)));
    }
}

#[test]
fn what_one_gives_up_goes_and_what_the_other_has_set_stays() {
    let mut pair = Pair::new();
    pair.left(Action::Apply, json!({"evictionLimitNode": 2})).right(Action::Apply, json!({}));
    assert_eq!(pair.data(), json!({"left": "60", "extra": "2", "right": "150"}));
    pair.left(Action::Apply, json!({}));
    assert_eq!(pair.data(), json!({"left": "60", "right": "150"}), "a field that is no longer wanted");
    pair.left(Action::Apply, json!({"enablePSIMetrics": false}));
    assert_eq!(pair.data(), json!({"right": "150"}), "everything, but not the object");
    assert_eq!(pair.phases(), BOTH_COMPLETED);
    pair.right(Action::Apply, json!({"enableSwap": false}));
    assert_eq!((pair.data(), pair.phases()), (Value::Null, BOTH_COMPLETED), "by then it is the other's alone");
}

#[test]
fn drift_of_one_is_told_with_who_caused_it_and_leaves_the_other_alone() {
    let mut pair = Pair::new();
    pair.left(Action::Apply, json!({})).right(Action::Apply, json!({}));
    pair.edit("kubectl-edit", "left", "90").settle();
    assert_eq!(pair.phases(), (Phase::Drifted, Phase::Completed));
    assert_eq!(pair.left.item("share").drifted_by.as_ref().unwrap().manager, "kubectl-edit");
    pair.edit("kubectl-edit", "left", "60").settle();
    assert_eq!(pair.phases(), BOTH_COMPLETED);
    pair.edit(RIGHT_MANAGER, "left", "90").settle();
    assert_eq!(pair.left.item("share").drifted_by.as_ref().unwrap().manager, RIGHT_MANAGER);
}

#[test]
fn the_second_to_want_another_value_is_refused_in_words_and_goes_on_when_they_agree() {
    let mut pair = Pair::new();
    pair.left(Action::Apply, json!({"evictionLimitTotal": 100}));
    pair.right(Action::DryRun, json!({"ksmConfiguration": {}}));
    assert_eq!(pair.phases(), (Phase::Completed, Phase::Failed));
    assert_eq!(
        conflict(&pair.right),
        "Failed to generate plan items: ConfigMap openshift-cnv/example-config is left as it is: profile \
         'virt-higher-density' and profile 'load-aware-rebalancing' want different values for data.shared. Change the \
         options of one of them; or set one to Ignore and take its fields back, those of profile 'load-aware-rebalancing' \
         with: kubectl apply --server-side --field-manager=virt-advisor-operator/load-aware-rebalancing and an object that \
         leaves them out"
    );
    assert!(pair.right.item("share").takes_over.is_empty(), "nothing is taken from a profile");
    pair.right(Action::Apply, json!({"ksmConfiguration": {}}));
    assert_eq!((pair.phases(), pair.written()), ((Phase::Completed, Phase::Failed), (1, 0)));

    // The waiting profile gets no event; it checks again.
    pair.left(Action::Apply, json!({}));
    assert_eq!(pair.data(), json!({"left": "60", "right": "150", "shared": "150"}));
    assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (2, 1)));
}

#[test]
fn one_value_may_be_of_both_and_stays_when_one_gives_it_up() {
    let mut pair = Pair::new();
    let agreed = json!({"ksmConfiguration": {}, "memoryToRequestRatio": 100});
    pair.left(Action::Apply, json!({"evictionLimitTotal": 100})).right(Action::Apply, agreed);
    assert_eq!(pair.data(), json!({"left": "60", "right": "100", "shared": "100"}));
    assert_eq!(pair.phases(), BOTH_COMPLETED);

    // The write changes no value, but it is necessary: otherwise the other profile could never change the field.
    pair.left(Action::DryRun, json!({}));
    assert_eq!(pair.phases(), (Phase::ReviewRequired, Phase::Completed));
    let item = pair.left.item("share");
    assert_eq!(
        item.message.as_deref(),
        Some("It will be shared; data.shared is left to profile 'virt-higher-density'")
    );
    pair.left(Action::Apply, json!({}));
    assert_eq!(pair.data(), json!({"left": "60", "right": "100", "shared": "100"}));
    pair.right(Action::Apply, json!({"ksmConfiguration": {}, "memoryToRequestRatio": 110}));
    assert_eq!(pair.data(), json!({"left": "60", "right": "110", "shared": "110"}));
    assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (2, 2)));
}

/// Otherwise the field would be removed together with the first profile.
#[test]
fn what_another_profile_has_set_as_wanted_is_applied_all_the_same() {
    let mut pair = Pair::new();
    pair.left(Action::Apply, json!({"evictionLimitTotal": 150}));
    pair.edit("kubectl", "right", "150");
    pair.right(Action::DryRun, json!({"ksmConfiguration": {}}));
    assert_eq!(pair.phases(), (Phase::Completed, Phase::ReviewRequired));
    let item = pair.right.item("share");
    let message = "It will be shared; data.shared is shared with profile 'load-aware-rebalancing'";
    assert_eq!(item.message.as_deref(), Some(message));
    pair.right(Action::Apply, json!({"ksmConfiguration": {}}));
    pair.left(Action::Apply, json!({}));
    assert_eq!(pair.data(), json!({"left": "60", "right": "150", "shared": "150"}));
    assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (2, 1)));
}

#[test]
fn two_that_may_write_over_anything_do_not_fight() {
    for left_is_faster in [true, false] {
        let mut pair = Pair::new();
        pair.bypass().left(Action::Apply, json!({"evictionLimitTotal": 100}));
        pair.right(Action::Apply, json!({"ksmConfiguration": {}}));
        assert_eq!((pair.phases(), pair.written()), ((Phase::Completed, Phase::Failed), (1, 0)));
        conflict(&pair.right);

        // Somebody takes the field from the first profile. Then the faster profile applies it, and the other one reports a conflict.
        pair.edit("kubectl-edit", "shared", "7");
        if !left_is_faster {
            pair.settle_right();
        }
        for _ in 0..20 {
            pair.left.pass(60);
            pair.right.pass(60);
            pair.settle();
        }
        let (phases, written, shared) = match left_is_faster {
            true => ((Phase::Completed, Phase::Failed), (2, 0), "100"),
            false => ((Phase::Drifted, Phase::Completed), (1, 1), "150"),
        };
        assert_eq!((pair.phases(), pair.written()), (phases, written));
        assert_eq!(pair.data()["shared"], shared);
        conflict(if left_is_faster { &pair.right } else { &pair.left });
    }
}

#[test]
fn drift_by_another_profile_is_not_reverted() {
    let mut pair = Pair::new();
    pair.bypass().left(Action::Apply, json!({})).right(Action::Apply, json!({}));
    pair.edit(RIGHT_MANAGER, "left", "90").settle();
    assert_eq!(pair.phases(), (Phase::Drifted, Phase::Completed));
    assert!(conflict(&pair.left).contains("'load-aware-rebalancing' and profile 'virt-higher-density'"));
    assert_eq!((pair.written(), &pair.data()["left"]), ((1, 1), &json!("90")));
    pair.edit("kubectl-edit", "left", "91").settle();
    assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (2, 1)), "of others it is");
}

#[test]
fn a_plan_in_review_is_refused_when_the_other_one_was_faster() {
    for bypass in [false, true] {
        let mut pair = Pair::new();
        if bypass {
            pair.bypass();
        }
        pair.right(Action::DryRun, json!({"ksmConfiguration": {}}));
        pair.left(Action::Apply, json!({"evictionLimitTotal": 100}));
        assert_eq!(pair.phases(), (Phase::Completed, Phase::ReviewRequired));
        pair.right.edit(|spec| spec.action = Action::Apply);
        pair.settle();
        assert_eq!((pair.phases(), pair.written()), ((Phase::Completed, Phase::Failed), (1, 0)), "{bypass}");
        conflict(&pair.right);
    }
}

/// An object as an earlier version applied it, when all profiles shared one field manager.
fn left_by_the_version_before() -> Pair {
    let object = set_by(FIELD_MANAGER, "Apply", config_map(json!({"left": "60", "extra": "2"})));
    let mut pair = Pair::on(object);
    pair.left(Action::Apply, json!({"evictionLimitNode": 2}));
    for item in &mut pair.left.status.items {
        item.field_manager = None;
    }
    pair
}

#[test]
fn what_was_applied_under_the_shared_name_goes_on_under_it() {
    let mut pair = left_by_the_version_before();
    pair.left.version = "v2";
    pair.settle();
    assert_eq!((pair.left.phase(), pair.written()), (Phase::Completed, (0, 0)), "nothing to do");
    pair.right(Action::Apply, json!({}));
    assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (0, 1)));
    pair.left(Action::Apply, json!({}));
    assert_eq!(pair.data(), json!({"left": "60", "right": "150"}), "what is given up goes");
    assert_eq!((pair.phases(), pair.written()), (BOTH_COMPLETED, (1, 1)));
    assert_eq!(pair.left.item("share").field_manager.as_deref(), Some(FIELD_MANAGER));

    // When no field is left under the former manager, the profile uses its own.
    pair.edit("kubectl-edit", "left", "90").settle();
    assert_eq!(pair.phases(), (Phase::Drifted, Phase::Completed));
    pair.left(Action::Apply, json!({"deschedulingIntervalSeconds": 120}));
    assert_eq!(pair.data(), json!({"left": "120", "right": "150"}));
    assert_eq!(pair.left.item("share").field_manager.as_deref(), Some(LEFT_MANAGER));
}

#[test]
fn what_was_applied_under_the_shared_name_is_not_taken_either() {
    let mut pair = Pair::on(set_by(FIELD_MANAGER, "Apply", config_map(json!({"left": "60", "shared": "1"}))));
    pair.right(Action::Apply, json!({"ksmConfiguration": {}}));
    assert_eq!(pair.written(), (0, 0));
    let told = conflict(&pair.right);
    assert!(
        told.contains("and a profile that an earlier version applied want different values for data.shared"),
        "{told}"
    );
}
