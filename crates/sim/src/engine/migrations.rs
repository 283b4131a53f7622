//! Migrations that take time: the running ones and the queue. [`crate::precopy`] computes how long they take.

use super::state::ClusterState;
use crate::{
    history::Cause,
    model::ClusterModel,
    precopy::{self, Copying, Network, Transfer},
    scenario::MigrationSettings,
};

/// After this many seconds the descheduler no longer counts an eviction as in flight.
const IN_FLIGHT_TIMEOUT: f64 = 600.0;

#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) vm: u32,
    pub(super) from: u32,
    /// The destination, if it was chosen with the eviction.
    pub(super) to: Option<u32>,
    pub(super) cause: Cause,
    pub(super) since: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    pub(super) vm: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) cause: Cause,
    pub(super) since: f64,
    pub(super) copying: Copying,
    fails: bool,
}

/// How a migration ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    Done,
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct Migrations {
    pub(super) waiting: Vec<Waiting>,
    pub(super) running: Vec<Running>,
    /// The VMs that were accepted in this step and arrive at its end, with their destinations.
    pub(super) arrivals: Vec<(u32, u32)>,
}

impl Migrations {
    pub(super) fn involves(&self, vm: u32) -> bool {
        self.is_running(vm) || self.waiting.iter().any(|waiting| waiting.vm == vm)
    }

    pub(super) fn is_running(&self, vm: u32) -> bool {
        self.running.iter().any(|running| running.vm == vm)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// The number of evictions that the descheduler counts as in flight, of one node or of all.
    pub(super) fn in_flight(&self, node: Option<u32>, now: f64) -> usize {
        let counts = |cause, from, since| {
            cause == Cause::Eviction && node.is_none_or(|node| node == from) && now - since <= IN_FLIGHT_TIMEOUT
        };
        self.running.iter().filter(|running| counts(running.cause, running.from, running.since)).count()
            + self.waiting.iter().filter(|waiting| counts(waiting.cause, waiting.from, waiting.since)).count()
    }

    /// Whether another migration may leave the node now.
    pub(super) fn may_start(&self, limits: &MigrationSettings, from: u32) -> bool {
        self.running.len() < limits.cluster as usize
            && self.running.iter().filter(|running| running.from == from).count() < limits.per_node as usize
    }

    pub(super) fn start(
        &mut self,
        model: &ClusterModel,
        state: &mut ClusterState<'_>,
        limits: &MigrationSettings,
        waiting: Waiting,
        to: u32,
        fails: bool,
    ) {
        let Waiting { vm, from, cause, since, .. } = waiting;
        state.add_arrival(vm, to);
        let group = model.group(vm);
        self.running.push(Running {
            vm,
            from,
            to,
            cause,
            since,
            copying: Copying::new(state.usage(vm)[1], group.dirty_rate, group.memory, limits),
            fails,
        });
    }

    /// Advances all migrations by `seconds`.
    pub(super) fn advance(
        &mut self,
        limits: &MigrationSettings,
        nodes: usize,
        seconds: f64,
        mut ended: impl FnMut(&Running, End),
    ) {
        let network = Network::of(limits);
        precopy::advance(&mut self.running, network, nodes, seconds, |running, copied| {
            ended(running, if copied && !running.fails { End::Done } else { End::Failed });
        });
    }

    /// Cancels migrations by source and destination, and returns those that were running.
    pub(super) fn cancel(&mut self, concerned: impl Fn(u32, u32) -> bool) -> Vec<Running> {
        self.waiting.retain(|waiting| !concerned(waiting.from, waiting.to.unwrap_or(super::NOWHERE)));
        let (gone, kept) = self.running.drain(..).partition(|running| concerned(running.from, running.to));
        self.running = kept;
        gone
    }

    /// The bytes that the VMs that will arrive on a node use.
    pub(super) fn arriving_memory(&self, state: &ClusterState<'_>, node: u32) -> f64 {
        let running = self.running.iter().filter(|running| running.to == node).map(|running| running.vm);
        let arrivals = self.arrivals.iter().filter(|(_, to)| *to == node).map(|(vm, _)| *vm);
        running.chain(arrivals).fold(0.0, |sum, vm| sum + state.usage(vm)[1])
    }

    /// Whether a VM with this anti-affinity number will arrive on a node.
    pub(super) fn has_arriving(&self, model: &ClusterModel, node: u32, anti_affinity: u32) -> bool {
        let has_number = |vm: u32| model.group(vm).anti_affinity == Some(anti_affinity);
        self.running.iter().any(|running| running.to == node && has_number(running.vm))
            || self.arrivals.iter().any(|(vm, to)| *to == node && has_number(*vm))
    }
}

impl Transfer for Running {
    fn route(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    fn copying(&self) -> &Copying {
        &self.copying
    }

    fn copying_mut(&mut self) -> &mut Copying {
        &mut self.copying
    }
}
