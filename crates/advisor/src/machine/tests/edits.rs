//! Random sequences of edits by people and programs: the rules hold, and the configuration settles.

use proptest::prelude::*;

use super::*;
use crate::test_cluster::arbitrary::cases;

#[derive(Debug, Clone, Copy)]
enum Edit {
    Action(Action),
    Bypass(bool),
    Interval(i64),
    Psi(bool),
    Somebody(i64),
    Migrations(i64),
    RollOut,
    Refuse(bool),
    Upgrade,
    Later,
    Missing,
    Back,
    /// The process ends after this many steps.
    Crash(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => prop_oneof![Just(Action::Apply), Just(Action::DryRun), Just(Action::Ignore)].prop_map(Edit::Action),
        1 => any::<bool>().prop_map(Edit::Bypass),
        1 => prop_oneof![Just(60), Just(300)].prop_map(Edit::Interval),
        1 => any::<bool>().prop_map(Edit::Psi),
        2 => prop_oneof![Just(60), Just(77), Just(300)].prop_map(Edit::Somebody),
        2 => prop_oneof![Just(5), Just(10)].prop_map(Edit::Migrations),
        2 => Just(Edit::RollOut),
        1 => any::<bool>().prop_map(Edit::Refuse),
        1 => Just(Edit::Upgrade),
        2 => Just(Edit::Later),
        1 => Just(Edit::Missing),
        1 => Just(Edit::Back),
        3 => (0..12_usize).prop_map(Edit::Crash),
    ]
}

impl Fixture {
    fn make(&mut self, edit: Edit, there: &TestCluster) {
        match edit {
            Edit::Action(action) => {
                self.edit(|spec| spec.action = action);
            }
            Edit::Bypass(bypass) => {
                self.edit(|spec| spec.bypass_optimistic_lock = bypass);
            }
            Edit::Interval(seconds) => {
                self.options(json!({"loadAware": {"deschedulingIntervalSeconds": seconds}}));
            }
            Edit::Psi(psi) => {
                self.options(json!({"loadAware": {"enablePSIMetrics": psi}}));
            }
            Edit::Somebody(seconds) => {
                self.interval(seconds);
            }
            Edit::Migrations(most) => {
                self.migrations(most);
            }
            Edit::RollOut => {
                let there = self.cluster.find(&crate::kind::MACHINE_CONFIG, None, PSI).is_some();
                self.roll_out(if there { &[PSI] } else { &[] });
            }
            Edit::Refuse(refuses) => self.refuses = refuses,
            Edit::Upgrade => self.version = "v2",
            Edit::Later => {
                self.pass(200);
            }
            Edit::Missing => self.cluster = self.cluster.clone().without(&KUBE_DESCHEDULER),
            Edit::Back => self.cluster = self.cluster.clone().serving(there),
            Edit::Crash(steps) => {
                let mut last = LastResult::None;
                for _ in 0..steps {
                    match self.step(last) {
                        Some(result) => last = result,
                        None => break,
                    }
                }
                return;
            }
        }
        self.settle();
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// W5 (writes in DryRun), W7 (applied unlike reviewed): `write` asserts that nothing is written without an approval, before the
    /// status is stored, or beyond what the status shows.
    #[test]
    fn whatever_is_edited_it_comes_to_rest_and_stays_there(edits in proptest::collection::vec(edit(), 1..14)) {
        let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
        let there = fixture.cluster.clone();
        for edit in edits {
            fixture.make(edit, &there);
        }
        fixture.settle();
        let (status, written) = (fixture.status.clone(), fixture.written.len());
        fixture.settle();
        prop_assert_eq!(&fixture.status, &status, "at rest nothing is recorded");
        prop_assert_eq!(fixture.written.len(), written, "at rest nothing is written");
        prop_assert_eq!(fixture.status.observed_generation, Some(fixture.generation));
        let holding = fixture.status.conditions.iter().filter(|c| c.status == "True");
        let phases = holding.filter(|c| Phase::ALL.iter().any(|phase| phase.as_str() == c.type_)).count();
        prop_assert!(phases <= 2, "{:?}", fixture.status.conditions);
    }
}
