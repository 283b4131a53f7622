//! A generated scenario with its yardstick, and what a candidate makes of it.

use super::{
    candidate::Candidate,
    family::{Family, scenario},
    judge::{Done, Judgement, Yardstick, judge, moved_back},
};
use crate::{
    compare::{Progress, in_parallel},
    engine::Run,
    history::Cause,
    measure::sigma,
    model::ClusterModel,
    optimum::{Optimum, problem},
    scenario::{Scenario, ScenarioError},
    settings::RunSettings,
};

/// How many placements the search for the optimum of a small cluster looks at.
const BUDGET: u64 = 200_000;

/// A scenario, ready to run.
#[derive(Debug)]
pub struct Case {
    pub family: Family,
    pub number: u64,
    pub scenario: Scenario,
    pub model: ClusterModel,
    pub settings: RunSettings,
    pub yardstick: Yardstick,
    /// By VM: the cores that it uses at the end.
    pub used: Vec<f64>,
    /// The greatest share of a node that a VM uses at the end.
    pub heaviest: f64,
}

impl Case {
    pub fn new(seed: u64, number: u64) -> Result<Self, ScenarioError> {
        Self::of(scenario(seed, number), number)
    }

    fn of(scenario: Scenario, number: u64) -> Result<Self, ScenarioError> {
        let model = ClusterModel::new(&scenario)?;
        let settings = RunSettings::new(&scenario)?;
        let problem = problem(&model, &settings, number);
        let share = |vm: &crate::optimum::ProblemVm| vm.node.map_or(0.0, |node| vm.cores / problem.nodes[node].cores);
        let heaviest = problem.vms.iter().map(share).fold(0.0, |most, share| if share > most { share } else { most });
        let yardstick = Yardstick::of(&Optimum::of(&problem, BUDGET));
        let used = problem.vms.iter().map(|vm| vm.cores).collect();
        Ok(Self { family: Family::of(number), number, scenario, model, settings, yardstick, used, heaviest })
    }

    /// The same case with another scenario, which is judged by the same yardstick.
    pub(super) fn with(&self, scenario: Scenario) -> Result<Self, ScenarioError> {
        let (model, settings) = (ClusterModel::new(&scenario)?, RunSettings::new(&scenario)?);
        let Self { family, number, yardstick, heaviest, .. } = *self;
        Ok(Self { family, number, scenario, model, settings, yardstick, used: self.used.clone(), heaviest })
    }

    pub fn judge(&self, candidate: &Candidate) -> (Done, Judgement) {
        let done = self.run(&candidate.in_settings(&self.settings), false);
        (done, judge(&done, &self.yardstick))
    }

    /// Whether the candidate meets all demands. The run ends as soon as it cannot.
    pub fn is_near(&self, candidate: &Candidate) -> bool {
        let done = self.run(&candidate.in_settings(&self.settings), true);
        judge(&done, &self.yardstick).is_near()
    }

    /// Runs to the end, or until nothing can happen any more. `may_give_up` also ends it once it has too many migrations.
    pub(super) fn run(&self, settings: &RunSettings, may_give_up: bool) -> Done {
        let mut run = Run::new(&self.model, *settings, self.number);
        let steps = self.model.steps();
        // An average over the window does not change after that many steps without a move.
        let enough = 2 * settings.interval + settings.window + settings.lag;
        let mut busy = 0;
        while run.step_number() < steps {
            let before = run.totals().evictions;
            run.step();
            let is_idle = run.migrating().next().is_none() && run.waiting().next().is_none();
            if !is_idle || run.totals().evictions > before {
                busy = run.step_number();
            }
            if self.model.is_steady() && run.step_number() - busy > enough {
                break;
            }
            if may_give_up && run.totals().evictions > self.yardstick.most_migrations() {
                busy = steps;
                break;
            }
        }
        run.observe();
        let moves = run.history().moves();
        Done {
            migrations: moves.iter().filter(|moved| moved.cause == Cause::Eviction).count() as u64,
            spread: sigma(&run.signals().cpu_usage),
            back: moved_back(moves),
            busy_until: busy as f64 / steps as f64,
        }
    }
}

/// The cases with these numbers.
pub fn cases(
    seed: u64,
    numbers: std::ops::Range<u64>,
    threads: usize,
    progress: &Progress<'_>,
) -> Result<Vec<Case>, ScenarioError> {
    let count = (numbers.end - numbers.start) as usize;
    in_parallel(count, threads, progress, |at| Case::new(seed, numbers.start + at as u64)).into_iter().collect()
}
