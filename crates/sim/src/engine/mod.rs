//! The loop: load, signals, scores, buckets, evictions, migrations, placement, and again. A step has a fixed order: node events and
//! load; migrations advance by the length of a step, and VMs without a node are started; nodes are scored, classified and measured;
//! evictions are decided. The measures of a step are those that its decisions are based on.

mod averages;
mod aware;
mod demand;
mod evict;
mod guard;
mod inspect;
mod lifecycle;
mod migrations;
mod place;
pub(crate) mod state;
mod totals;

use balance::{Buckets, Scores, Signals, descheduler::Cycle};

use crate::{
    history::{Cause, History, Move},
    load::Tasks,
    measure::{Sample, sample},
    model::{ClusterModel, NodeEvent},
    scenario::MigrationModel,
    settings::RunSettings,
};
use averages::Averages;
use guard::Guard;
pub(crate) use inspect::Destination;
use migrations::Migrations;
use place::Placer;
use state::{ClusterState, NOWHERE, Request};
pub use totals::{Blocked, Totals};

/// One run of a model with a seed.
#[derive(Debug)]
pub struct Run<'m> {
    model: &'m ClusterModel,
    settings: RunSettings,
    seed: u64,
    step: u64,
    state: ClusterState<'m>,
    tasks: Tasks,
    migrations: Migrations,
    guard: Guard,
    placer: Placer,
    averages: Option<Averages>,
    scores: Scores,
    buckets: Buckets,
    sources: Vec<usize>,
    cycle: Cycle,
    /// VMs without a node, in order of priority and number.
    pending: Vec<u32>,
    draining: Vec<u32>,
    next_event: usize,
    shape_values: Vec<f64>,
    changed: Vec<u32>,
    history: History,
    totals: Totals,
    /// In a replay: the moves to repeat, and how many of them were made.
    replay: Option<(&'m [Move], usize)>,
}

impl<'m> Run<'m> {
    pub fn new(model: &'m ClusterModel, settings: RunSettings, seed: u64) -> Self {
        let mut run = Self {
            model,
            settings,
            seed,
            step: 0,
            state: ClusterState::new(model, &settings),
            tasks: Tasks::default(),
            migrations: Migrations::default(),
            guard: Guard::new(settings.guards, model),
            placer: Placer::default(),
            averages: Averages::over(settings.window, settings.lag),
            scores: Scores::new(),
            buckets: Buckets::new(),
            sources: Vec::new(),
            cycle: Cycle::new(),
            pending: Vec::new(),
            draining: Vec::new(),
            next_event: 0,
            shape_values: vec![1.0; model.shapes.len()],
            changed: Vec::new(),
            history: History::default(),
            totals: Totals::default(),
            replay: None,
        };
        run.pending = (0..model.vms.len() as u32).filter(|vm| run.state.node_of(*vm) == NOWHERE).collect();
        run.order_pending();
        run.set_shape_values();
        run.set_own_loads();
        for vm in 0..model.vms.len() as u32 {
            run.set_load(&model.load_of(vm));
        }
        run
    }

    /// A run that repeats the moves of a history step by step and decides nothing.
    pub fn replay(model: &'m ClusterModel, settings: RunSettings, seed: u64, history: &'m History) -> Self {
        Self { replay: Some((history.moves(), 0)), ..Self::new(model, settings, seed) }
    }

    /// The number of the next step.
    pub fn step_number(&self) -> u64 {
        self.step
    }

    /// The signals of the nodes that are up, in the order of [`Run::nodes`], as of the last step or observation.
    pub fn signals(&self) -> &Signals {
        self.state.signals()
    }

    /// The numbers of the nodes that are up.
    pub fn nodes(&self) -> &[u32] {
        self.state.slots()
    }

    pub fn scores(&self) -> &Scores {
        &self.scores
    }

    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// The VMs on a node.
    pub fn vms(&self, node: u32) -> &[u32] {
        self.state.vms(node)
    }

    /// Whether a node takes VMs.
    pub fn is_open(&self, node: u32) -> bool {
        self.state.is_open(node)
    }

    /// The VMs without a node.
    pub fn pending(&self) -> &[u32] {
        &self.pending
    }

    /// The running migrations: VM, source, destination.
    pub fn migrating(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        self.migrations.running.iter().map(|running| (running.vm, running.from, running.to))
    }

    /// What a VM requests of a node.
    pub(crate) fn request(&self, vm: u32) -> Request {
        self.state.request(vm)
    }

    /// Bytes of memory that VMs request on a node, those that will arrive included.
    pub fn memory_requested(&self, node: u32) -> u64 {
        self.state.requested(node).memory
    }

    /// Cores and bytes in use on a node.
    pub(crate) fn used(&self, node: u32) -> [f64; 2] {
        self.state.used(node)
    }

    /// Bytes of memory in use on a node.
    pub fn memory_used(&self, node: u32) -> f64 {
        self.state.memory_used(node)
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How often each VM was migrated by an eviction or a drain.
    pub fn moves_per_vm(&self) -> &[u16] {
        self.guard.moves()
    }

    /// Makes all steps of the scenario, and observes the end.
    pub fn finish(&mut self) {
        while self.step < self.model.steps {
            self.step();
        }
        self.observe();
    }

    /// Makes one step. It always ends: every loop in it is bounded.
    pub fn step(&mut self) {
        self.step_and_inspect(|_| {});
    }

    /// Makes one step. `inspect` gets the run as it is measured, before evictions are decided.
    pub fn step_and_inspect(&mut self, inspect: impl FnOnce(&Self)) {
        self.apply_events_and_load();
        self.advance_moves();
        let replays = self.replay.is_some();
        let is_due = self.step.is_multiple_of(self.settings.interval);
        if is_due || self.settings.measure || replays {
            self.classify();
        }
        if self.settings.measure && !replays {
            self.record();
        }
        inspect(self);
        if replays {
            self.repeat_moves(true);
        } else if is_due {
            self.evict();
        }
        if self.step == 0 {
            self.state.end_first_step();
        }
        self.state.refresh();
        self.step += 1;
    }

    /// Measures and records the state at the beginning of the next step. A run ends with it.
    pub fn observe(&mut self) {
        self.apply_events_and_load();
        self.advance_moves();
        self.classify();
        if self.settings.measure && self.replay.is_none() {
            self.record();
        }
    }

    /// Makes the moves that come before nodes are scored, and updates the signals.
    fn advance_moves(&mut self) {
        if self.replay.is_some() {
            self.repeat_moves(false);
        } else {
            self.advance_migrations();
            self.drain();
            self.restart();
        }
        self.state.refresh();
        if let Some(averages) = &mut self.averages {
            averages.sample(self.model.nodes.len(), self.state.slots(), self.state.signals());
        }
    }

    /// Scores and classifies the nodes.
    pub fn classify(&mut self) {
        let (signals, means) = match &mut self.averages {
            Some(averages) => averages.of(self.state.slots()),
            None => (self.state.signals(), self.state.means()),
        };
        self.settings.algorithm.score_with(signals, means, &mut self.scores);
        self.settings.classifier.classify(&self.scores, &mut self.buckets);
        if self.state.cordons() > 0 {
            for (slot, node) in self.state.slots().iter().enumerate() {
                if !self.state.is_open(*node) {
                    self.buckets.cordon(slot);
                }
            }
        }
    }

    fn record(&mut self) {
        let sample = Sample {
            migrating: self.migrations.running.len() as u32,
            pending: self.pending.len() as u32,
            ..sample(self.step, &self.state, &self.buckets)
        };
        self.history.samples.push(sample);
    }

    fn now(&self) -> f64 {
        (self.step * self.model.step) as f64
    }

    /// Applies the events of the step, then its load.
    fn apply_events_and_load(&mut self) {
        let mut renumbered = false;
        while let Some((step, event)) = self.model.events.get(self.next_event).copied() {
            if step > self.step {
                break;
            }
            self.next_event += 1;
            self.apply_event(event);
            renumbered |= !matches!(event, NodeEvent::Cordon(_) | NodeEvent::Uncordon(_) | NodeEvent::Drain(_));
        }
        if renumbered {
            // Slots belong to other nodes now, and waiting migrations use the buckets, which are by slot.
            self.state.refresh();
            self.classify();
        }
        if !self.model.varying.is_empty() || !self.model.varying_nodes.is_empty() {
            self.set_shape_values();
            self.set_own_loads();
            for varying in &self.model.varying {
                self.set_load(varying);
            }
        }
        if !self.model.tasks.is_empty() {
            self.run_tasks();
        }
    }

    fn apply_event(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Cordon(node) => self.state.set_cordoned(node, true),
            NodeEvent::Uncordon(node) => {
                self.state.set_cordoned(node, false);
                self.draining.retain(|draining| *draining != node);
            }
            NodeEvent::Drain(node) => {
                self.state.set_cordoned(node, true);
                if !self.draining.contains(&node) {
                    self.draining.push(node);
                }
            }
            NodeEvent::Join(node) | NodeEvent::Recover(node) => self.state.bring_up(node),
            NodeEvent::Fail(node) => {
                self.state.take_down(node);
                for running in self.migrations.cancel(|from, to| from == node || to == node) {
                    self.state.remove_arrival(running.vm, running.to);
                    self.totals.failed_migrations += 1;
                    self.totals.sent(running.copying.sent(), running.cause);
                    self.guard.ended(running.vm, self.step, running.copying.age());
                }
                for vm in self.state.vms(node).to_vec() {
                    self.relocate(vm, NOWHERE, Cause::Failure);
                    self.pending.push(vm);
                }
                self.order_pending();
            }
        }
    }

    fn order_pending(&mut self) {
        let model = self.model;
        self.pending.sort_by_key(|vm| (std::cmp::Reverse(model.group(*vm).priority), *vm));
    }

    /// Moves a VM and records the move.
    fn relocate(&mut self, vm: u32, to: u32, cause: Cause) {
        let from = self.state.node_of(vm);
        self.state.relocate(vm, to);
        self.history.moves.push(Move { step: self.step as u32, vm, from, to, cause });
        match cause {
            Cause::Eviction => self.totals.evictions += 1,
            Cause::Drain => self.totals.drained += 1,
            Cause::Restart => self.totals.restarted += 1,
            Cause::Failure => self.guard.lost(vm),
        }
        if matches!(cause, Cause::Eviction | Cause::Drain) {
            if self.guard.moved(vm, from, to, self.step) {
                self.totals.ping_pong += 1;
            }
            if self.settings.migration.model == MigrationModel::Instant {
                self.guard.ended(vm, self.step, 0.0);
            }
        }
    }

    /// Repeats the moves of this step: all of them, or those before scoring. Instant evictions come after scoring.
    fn repeat_moves(&mut self, all: bool) {
        let Some((moves, mut made)) = self.replay else { return };
        let instant = self.settings.migration.model == MigrationModel::Instant;
        let is_due = |moved: &&Move| {
            let after = instant && moved.cause == Cause::Eviction;
            u64::from(moved.step) < self.step || (u64::from(moved.step) == self.step && (all || !after))
        };
        while let Some(moved) = moves.get(made).filter(is_due) {
            made += 1;
            if moved.cause != Cause::Failure {
                self.state.relocate(moved.vm, moved.to);
                self.pending.retain(|pending| *pending != moved.vm);
            }
        }
        self.replay = Some((moves, made));
    }
}
