//! Runs `decide` against an in-memory cluster, as a session of the operator does.

mod approvals;
mod autopilot;
mod deletions;
mod edits;
mod effects;
mod gitops;
mod health;
mod late_pools;
mod lives;
mod overtaken;
mod restores;
mod rollouts;
mod rules;
mod settling;
mod sharing;
mod strangers;
mod words;

use std::time::Duration;

use api::virt_platform_config::{
    Action, ApprovalMode, Item, Phase, Profile as ProfileName, VirtPlatformConfigSpec, VirtPlatformConfigStatus,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use serde_json::{Value, json};

use super::{
    Input, Intervals, NotWritten, Observed, Outcome, PlanFailure, Request, Step, Written, decide, rollout_queries,
};
use crate::{
    Facts, Plan, Profile, drift,
    kind::{HYPER_CONVERGED, KUBE_DESCHEDULER, MACHINE_CONFIG, MACHINE_CONFIG_POOL},
    profile::missing,
    profiles, restore,
    test_cluster::{TestCluster, options},
};

const LOAD_AWARE: &str = "load-aware-rebalancing";
const DENSITY: &str = "virt-higher-density";
const PSI: &str = "99-worker-psi-karg";

/// A configuration, its cluster, and a clock.
#[derive(Clone)]
struct Fixture {
    cluster: TestCluster,
    profile: &'static dyn Profile,
    spec: VirtPlatformConfigSpec,
    generation: i64,
    status: VirtPlatformConfigStatus,
    version: &'static str,
    approval_mode: ApprovalMode,
    second: i64,
    /// The seconds that each decision takes.
    seconds_per_step: i64,
    /// The items that were written.
    written: Vec<String>,
    /// Every phase that was stored.
    phases: Vec<Phase>,
    /// How often the status was stored.
    records: usize,
    /// The API server refuses writes.
    refuses: bool,
    /// When to look again, according to the last decision.
    requeue_after: Option<Duration>,
}

enum LastResult {
    None,
    Facts(Facts),
    Plan(Result<Plan, PlanFailure>),
    Write(String, Result<Written, NotWritten>, Plan),
}

impl Fixture {
    fn new(profile: &str, action: Action) -> Fixture {
        Fixture::of(profiles::find(profile).unwrap(), action)
    }

    fn of(profile: &'static dyn Profile, action: Action) -> Fixture {
        let name = *ProfileName::ALL.iter().find(|known| known.as_str() == profile.about().name).unwrap();
        let mut spec = VirtPlatformConfigSpec::new(name);
        spec.action = action;
        Fixture {
            profile,
            cluster: TestCluster::with_descheduler("5.1").with(crate::test_cluster::sample("hyperconverged")),
            spec,
            generation: 1,
            status: VirtPlatformConfigStatus::default(),
            version: "v1",
            approval_mode: ApprovalMode::Immediate,
            second: 1_000_000,
            seconds_per_step: 0,
            written: Vec::new(),
            phases: Vec::new(),
            records: 0,
            refuses: false,
            requeue_after: None,
        }
    }

    fn phase(&self) -> Phase {
        self.status.phase.unwrap()
    }

    fn item(&self, name: &str) -> &Item {
        self.status.items.iter().find(|item| item.name == name).unwrap()
    }

    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// Somebody edits the spec.
    fn edit(&mut self, edit: impl FnOnce(&mut VirtPlatformConfigSpec)) -> &mut Self {
        edit(&mut self.spec);
        self.generation += 1;
        self
    }

    fn act(&mut self, action: Action) -> &mut Self {
        self.edit(|spec| spec.action = action).settle()
    }

    fn options(&mut self, given: Value) -> &mut Self {
        self.edit(|spec| spec.options = options(given))
    }

    fn pass(&mut self, seconds: i64) -> &mut Self {
        self.second += seconds;
        self
    }

    /// Runs until nothing is left to do, and panics if that never happens.
    fn settle(&mut self) -> &mut Self {
        let mut last = LastResult::None;
        for _ in 0..100 {
            match self.step(last) {
                Some(result) => last = result,
                None => return self,
            }
        }
        panic!("no rest in sight: {:?}", self.phases);
    }

    /// One decision: stores the status, then performs the step. None when nothing is left to do.
    fn step(&mut self, last: LastResult) -> Option<LastResult> {
        let observed = Observed {
            spec: &self.spec,
            generation: self.generation,
            status: &self.status,
            profile: self.profile,
            version: self.version,
            epoch: None,
            now: Timestamp::from_second(self.second).unwrap(),
            intervals: Intervals::default(),
            approval_mode: self.approval_mode,
        };
        let input = match &last {
            LastResult::None => Input::None,
            LastResult::Facts(facts) => Input::Facts(facts),
            LastResult::Plan(plan) => Input::Plan(plan.as_ref()),
            LastResult::Write(item, result, plan) => Input::Write { item, result, plan },
        };
        let decision = decide(&observed, &input);
        self.second += self.seconds_per_step;
        if decision.status.observed_generation == Some(self.generation) {
            health::assert_sound(&decision.status);
        }
        if decision.status != self.status {
            self.records += 1;
            if decision.status.phase != self.status.phase {
                self.phases.extend(decision.status.phase);
            }
            self.status = decision.status;
        }
        match decision.step {
            Step::Done(Outcome { requeue_after }) => {
                self.requeue_after = requeue_after;
                None
            }
            Step::DecideAgain => Some(last),
            Step::Send(Request::FetchFacts) => Some(LastResult::Facts(self.facts())),
            Step::Send(Request::MakePlan) => Some(LastResult::Plan(self.make_plan())),
            Step::Send(Request::WriteItem { item }) => {
                let (LastResult::Plan(Ok(plan)) | LastResult::Write(_, _, plan)) = last else { panic!("no plan") };
                Some(self.write(item, plan))
            }
        }
    }

    fn facts(&self) -> Facts {
        let mut facts = self.cluster.facts(restore::planner(self.profile, &self.spec).unwrap().as_ref());
        for query in facts.unanswered(rollout_queries(&self.status, &facts)) {
            let answer = self.cluster.answer(&query);
            facts.insert(query, answer);
        }
        facts
    }

    fn make_plan(&self) -> Result<Plan, PlanFailure> {
        let planner = restore::planner(self.profile, &self.spec)?;
        let facts = self.cluster.facts(planner.as_ref());
        match missing(&planner.requirements(&facts), &facts) {
            Some(missing) => Err(PlanFailure::Missing(missing)),
            None => Ok(self.cluster.plan_by(self.profile.about(), planner.as_ref())),
        }
    }

    fn write(&mut self, item: String, plan: Plan) -> LastResult {
        assert_eq!(self.spec.action, Action::Apply, "written without an approval");
        let planned = plan.items.iter().find(|planned| planned.item.name == item).unwrap();
        let recorded = self.item(&item);
        assert_eq!(recorded.desired_state, planned.item.desired_state, "written is what is in the status");
        assert_eq!(recorded.state.as_str(), "InProgress", "recorded before it is written");
        let live = self.cluster.find(planned.target.kind, planned.target.namespace, &planned.target.name);
        let as_found = drift::fingerprint(&planned.item, live) == planned.fingerprint;
        let result = if self.refuses {
            Err(NotWritten::Failed("no".into()))
        } else if let Some(refusal) = planned.conflict(live) {
            Err(NotWritten::Refused(refusal))
        } else if !as_found && !self.spec.bypass_optimistic_lock {
            Err(NotWritten::Stale { target: planned.target.to_string() })
        } else {
            self.written.push(item.clone());
            Ok(self.cluster.carry_out(planned).map_or(Written::Gone, |object| Written::Applied(Box::new(object))))
        };
        LastResult::Write(item, result, plan)
    }

    /// The worker pool has rendered these configs as they are, and all of its nodes run them.
    fn roll_out(&mut self, configs: &[&str]) -> &mut Self {
        let found = configs.iter().filter_map(|name| self.cluster.find(&MACHINE_CONFIG, None, name));
        let rendered = crate::test_cluster::merged(found);
        let target = json!({
            "name": rendered["metadata"]["name"],
            "source": configs.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        });
        self.cluster.put(rendered);
        let mut pool = self.cluster.find(&MACHINE_CONFIG_POOL, None, "worker").unwrap().clone();
        pool["spec"]["configuration"] = target.clone();
        pool["status"]["configuration"] = target;
        pool["status"]["updatedMachineCount"] = 3.into();
        pool["status"]["readyMachineCount"] = 3.into();
        pool["status"]["conditions"] = json!([{"type": "Updated", "status": "True"}]);
        self.cluster.put(pool);
        self
    }

    /// A configuration that is applied and rolled out.
    fn completed(profile: &str) -> Fixture {
        let mut fixture = Fixture::new(profile, Action::Apply);
        let config = if profile == LOAD_AWARE { PSI } else { "90-worker-kubelet-swap" };
        fixture.settle().roll_out(&[config]).settle();
        assert_eq!(fixture.phase(), Phase::Completed, "{:?}", fixture.status.items);
        fixture
    }

    /// Somebody edits the descheduler's interval.
    fn interval(&mut self, seconds: i64) -> &mut Self {
        let path = ["spec", "deschedulingIntervalSeconds"];
        self.cluster.edit(&KUBE_DESCHEDULER, "cluster", &path, Some(seconds.into()));
        self
    }

    fn migrations(&mut self, most: i64) -> &mut Self {
        let path = ["spec", "liveMigrationConfig", "parallelMigrationsPerCluster"];
        self.cluster.edit(&HYPER_CONVERGED, "kubevirt-hyperconverged", &path, Some(most.into()));
        self
    }
}
