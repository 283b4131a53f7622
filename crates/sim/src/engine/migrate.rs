//! Migrations that take time: memory is copied while the VM keeps writing to it, over a network that is shared.
//!
//! A migration's rate is the node's bandwidth divided by the number of migrations that leave its source or reach its
//! target, whichever is more, and changes whenever one of them ends. What is left to copy shrinks by the rate minus the
//! rate at which the VM writes; a VM that writes faster than the network carries makes no progress and is given up.

use super::{cluster::Cluster, place::Arriving};
use crate::{history::Cause, scenario::Migration, world::World};

/// The descheduler forgets an eviction after this many seconds.
const FORGOTTEN: f64 = 600.0;
const GIB: f64 = 1_073_741_824.0;

#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) vm: u32,
    pub(super) from: u32,
    /// Where it goes, if that was decided with the eviction.
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
    /// Bytes to copy, and bytes that were sent.
    left: f64,
    pub(super) sent: f64,
    dirty_rate: f64,
    age: f64,
    stalled: f64,
    deadline: f64,
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
    /// VMs that were accepted in this step and arrive at its end.
    pub(super) arrivals: Vec<(u32, u32)>,
}

impl Migrations {
    pub(super) fn involves(&self, vm: u32) -> bool {
        self.running.iter().any(|running| running.vm == vm) || self.waiting.iter().any(|waiting| waiting.vm == vm)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Evictions that the descheduler counts as in flight, of one node or of all.
    pub(super) fn in_flight(&self, node: Option<u32>, now: f64) -> usize {
        let counts = |cause, from, since| {
            cause == Cause::Eviction && node.is_none_or(|node| node == from) && now - since <= FORGOTTEN
        };
        self.running.iter().filter(|running| counts(running.cause, running.from, running.since)).count()
            + self.waiting.iter().filter(|waiting| counts(waiting.cause, waiting.from, waiting.since)).count()
    }

    /// Whether another migration may leave the node now.
    pub(super) fn may_start(&self, limits: &Migration, from: u32) -> bool {
        self.running.len() < limits.cluster as usize
            && self.running.iter().filter(|running| running.from == from).count() < limits.per_node as usize
    }

    pub(super) fn start(
        &mut self,
        world: &World,
        cluster: &mut Cluster<'_>,
        limits: &Migration,
        waiting: Waiting,
        to: u32,
        fails: bool,
    ) {
        let Waiting { vm, from, cause, since, .. } = waiting;
        cluster.expect(vm, to);
        let group = world.group(vm);
        self.running.push(Running {
            vm,
            from,
            to,
            cause,
            since,
            left: cluster.usage(vm)[1],
            sent: 0.0,
            dirty_rate: group.dirty_rate,
            age: 0.0,
            stalled: 0.0,
            deadline: f64::from(limits.timeout_per_gib) * (group.memory / GIB),
            fails,
        });
    }

    /// Lets `seconds` pass. Every round but the last ends a migration, so there are at most one more than migrations.
    pub(super) fn advance(
        &mut self,
        limits: &Migration,
        nodes: usize,
        seconds: f64,
        mut ended: impl FnMut(&Running, End),
    ) {
        let mut left = seconds;
        let (mut leaving, mut reaching) = (Vec::new(), Vec::new());
        for _ in 0..=self.running.len() {
            if self.running.is_empty() || left <= 0.0 {
                return;
            }
            count(&mut leaving, nodes, self.running.iter().map(|running| running.from));
            count(&mut reaching, nodes, self.running.iter().map(|running| running.to));
            let rate = |running: &Running| {
                let shared = leaving[running.from as usize].max(reaching[running.to as usize]).max(1);
                limits.bandwidth.bytes_per_second() / f64::from(shared)
            };
            let until_end = |running: &Running| {
                let (progress, deadline) = (rate(running) - running.dirty_rate, running.deadline - running.age);
                let end = if progress > 0.0 {
                    running.left / progress
                } else {
                    limits.progress_timeout.0 as f64 - running.stalled
                };
                if end < deadline { end } else { deadline }
            };
            let next =
                self.running.iter().map(until_end).fold(left, |least, end| if end < least { end } else { least });
            let next = if next > 0.0 { next } else { 0.0 };
            let due: Vec<bool> = self.running.iter().map(|running| until_end(running) <= next).collect();
            for running in &mut self.running {
                let rate = rate(running);
                let progress = rate - running.dirty_rate;
                running.sent += rate * next;
                running.age += next;
                if progress > 0.0 {
                    running.left -= progress * next;
                    running.stalled = 0.0;
                } else {
                    running.stalled += next;
                }
            }
            let mut due = due.into_iter();
            self.running.retain(|running| {
                if !due.next().unwrap_or(false) {
                    return true;
                }
                // What is left is rounding; a migration that ran into a limit has more than that to do.
                let copied = running.left <= 1.0;
                ended(running, if copied && !running.fails { End::Done } else { End::Failed });
                false
            });
            left -= next;
        }
    }

    /// Ends what concerns a node that is gone or closed, and says which migrations those were.
    pub(super) fn cancel(&mut self, concerned: impl Fn(u32, u32) -> bool) -> Vec<Running> {
        self.waiting.retain(|waiting| !concerned(waiting.from, waiting.to.unwrap_or(super::NOWHERE)));
        let (gone, kept) = self.running.drain(..).partition(|running| concerned(running.from, running.to));
        self.running = kept;
        gone
    }
}

fn count(counts: &mut Vec<u32>, nodes: usize, of: impl Iterator<Item = u32>) {
    counts.clear();
    counts.resize(nodes, 0);
    of.for_each(|node| counts[node as usize] += 1);
}

impl Arriving for Migrations {
    fn memory(&self, cluster: &Cluster<'_>, node: u32) -> f64 {
        let running = self.running.iter().filter(|running| running.to == node).map(|running| running.vm);
        let arrivals = self.arrivals.iter().filter(|(_, to)| *to == node).map(|(vm, _)| *vm);
        running.chain(arrivals).fold(0.0, |sum, vm| sum + cluster.usage(vm)[1])
    }

    fn has_apart(&self, world: &World, node: u32, apart: u32) -> bool {
        let is_apart = |vm: u32| world.group(vm).apart == Some(apart);
        self.running.iter().any(|running| running.to == node && is_apart(running.vm))
            || self.arrivals.iter().any(|(vm, to)| *to == node && is_apart(*vm))
    }
}
