//! What happens to VMs between decisions: migrations advance, drained nodes lose VMs, and VMs without a node are
//! started.

use super::{
    NOWHERE, Run,
    migrations::{End, Waiting},
    place,
};
use crate::{
    history::Cause,
    rng::{Purpose, Rng},
    scenario::{MigrationModel, Placement},
};

/// The most VMs without a node that are tried in a step.
const MOST_RESTARTS: usize = 1000;
/// After this many failures in a row the other VMs wait for the next step.
const MOST_FAILED_RESTARTS: usize = 16;

impl Run<'_> {
    /// Advances migrations by the length of a step; then waiting migrations may start.
    pub(super) fn advance_migrations(&mut self) {
        if self.migrations.is_idle() {
            return;
        }
        let mut ended = Vec::new();
        if self.step > 0 {
            let seconds = self.model.step as f64;
            let nodes = self.model.nodes.len();
            self.migrations
                .advance(&self.settings.migration, nodes, seconds, |running, end| ended.push((*running, end)));
        }
        for (running, end) in ended {
            self.state.remove_arrival(running.vm, running.to);
            self.totals.sent(running.copying.sent(), running.cause);
            self.guard.ended(running.vm, self.step, running.copying.age());
            match end {
                End::Done => self.relocate(running.vm, running.to, running.cause),
                End::Failed => self.totals.failed_migrations += 1,
            }
        }
        self.start_waiting();
    }

    pub(super) fn start_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.migrations.waiting);
        waiting.retain(|waiting| {
            if !self.migrations.may_start(&self.settings.migration, waiting.from) {
                return true;
            }
            let to = match waiting.to {
                Some(to) if place::has_room(self.model, &self.state, &self.migrations, waiting.vm, to) => Some(to),
                Some(_) => None,
                None => self.destination(waiting.vm, waiting.from, waiting.cause),
            };
            match to {
                Some(to) => self.start(*waiting, to),
                None => self.totals.blocked.no_room += 1,
            }
            false
        });
        self.migrations.waiting = waiting;
    }

    fn start(&mut self, waiting: Waiting, to: u32) {
        let rate = self.settings.migration.failure_rate;
        let draw = Rng::keyed(self.seed, Purpose::Failure, u64::from(waiting.vm), self.step).unit();
        self.migrations.start(self.model, &mut self.state, &self.settings.migration, waiting, to, draw < rate);
    }

    /// The destination of a VM, if there is one now.
    pub(super) fn destination(&mut self, vm: u32, from: u32, cause: Cause) -> Option<u32> {
        let mut rng = Rng::keyed(self.seed, Purpose::Placement, u64::from(vm), self.step);
        if cause == Cause::Eviction && self.settings.placement == Placement::Random {
            return self.random_destination(vm, &mut rng);
        }
        self.placer.schedule(self.model, &self.state, &self.migrations, vm, from, &mut rng)
    }

    /// Migrates VMs away from draining nodes. Each VM is tried once per step.
    pub(super) fn drain(&mut self) {
        for at in 0..self.draining.len() {
            let node = self.draining[at];
            for vm in self.state.vms(node).to_vec() {
                if !self.model.group(vm).migratable || self.migrations.involves(vm) {
                    continue;
                }
                match self.settings.migration.model {
                    MigrationModel::Instant => match self.destination(vm, node, Cause::Drain) {
                        Some(to) => {
                            self.totals.sent(self.state.usage(vm)[1], Cause::Drain);
                            self.relocate(vm, to, Cause::Drain);
                        }
                        None => self.totals.blocked.no_room += 1,
                    },
                    MigrationModel::PreCopy => {
                        if !self.migrations.may_start(&self.settings.migration, node) {
                            break;
                        }
                        let waiting = Waiting { vm, from: node, to: None, cause: Cause::Drain, since: self.now() };
                        match self.destination(vm, node, Cause::Drain) {
                            Some(to) => self.start(waiting, to),
                            None => self.totals.blocked.no_room += 1,
                        }
                    }
                }
            }
        }
    }

    /// Starts VMs without a node where a scheduler puts them, by falling priority.
    pub(super) fn restart(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let (mut tried, mut failed) = (0, 0);
        let mut left = Vec::new();
        for vm in pending {
            if tried >= MOST_RESTARTS || failed >= MOST_FAILED_RESTARTS {
                left.push(vm);
                continue;
            }
            tried += 1;
            match self.destination(vm, NOWHERE, Cause::Restart) {
                Some(node) => {
                    failed = 0;
                    self.relocate(vm, node, Cause::Restart);
                }
                None => {
                    failed += 1;
                    left.push(vm);
                }
            }
        }
        self.pending = left;
    }
}
