//! The duration of a pre-copy migration: memory is copied over a shared network while the VM writes to it. Its rate is the node's
//! bandwidth divided by the number of migrations at its source or its target, whichever is more. What remains shrinks by the rate
//! minus the dirty rate; a migration whose dirty rate is higher is given up.

use crate::scenario::MigrationSettings;

const GIB: f64 = 1_073_741_824.0;

/// The network that all migrations share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// The bandwidth of each node in each direction, in bytes per second.
    pub bandwidth: f64,
    /// A migration that makes no progress is given up after this many seconds.
    pub progress_timeout: f64,
}

impl Network {
    pub fn of(limits: &MigrationSettings) -> Network {
        Network { bandwidth: limits.bandwidth.bytes_per_second(), progress_timeout: limits.progress_timeout.0 as f64 }
    }
}

/// The progress of a migration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copying {
    /// The bytes left to copy, and the bytes that were sent.
    left: f64,
    sent: f64,
    dirty_rate: f64,
    age: f64,
    stalled: f64,
    deadline: f64,
}

impl Copying {
    /// The start of a migration of a VM with this many bytes in use, this dirty rate and this size of memory.
    pub fn new(in_use: f64, dirty_rate: f64, memory: f64, limits: &MigrationSettings) -> Copying {
        let deadline = f64::from(limits.timeout_per_gib) * (memory / GIB);
        Copying { left: in_use, sent: 0.0, dirty_rate, age: 0.0, stalled: 0.0, deadline }
    }

    pub fn sent(&self) -> f64 {
        self.sent
    }

    /// The seconds since the start.
    pub fn age(&self) -> f64 {
        self.age
    }

    fn until_end(&self, rate: f64, network: Network) -> f64 {
        let (progress, deadline) = (rate - self.dirty_rate, self.deadline - self.age);
        let end = if progress > 0.0 { self.left / progress } else { network.progress_timeout - self.stalled };
        if end < deadline { end } else { deadline }
    }
}

/// A running migration.
pub trait Transfer {
    /// The numbers of the source and the destination.
    fn route(&self) -> (u32, u32);
    fn copying(&self) -> &Copying;
    fn copying_mut(&mut self) -> &mut Copying;
}

/// The numbers of migrations that leave and reach each node.
#[derive(Debug, Default)]
struct Shares {
    leaving: Vec<u32>,
    reaching: Vec<u32>,
}

impl Shares {
    fn count<T: Transfer>(&mut self, running: &[T], nodes: usize) {
        count(&mut self.leaving, nodes, running.iter().map(|running| running.route().0));
        count(&mut self.reaching, nodes, running.iter().map(|running| running.route().1));
    }

    fn rate<T: Transfer>(&self, running: &T, network: Network) -> f64 {
        let (from, to) = running.route();
        let shared = self.leaving[from as usize].max(self.reaching[to as usize]).max(1);
        network.bandwidth / f64::from(shared)
    }
}

/// Advances by `seconds`, and tells `ended` of each migration that ended whether everything was copied. Every round but
/// the last ends a migration, which bounds the number of rounds.
pub fn advance<T: Transfer>(
    running: &mut Vec<T>,
    network: Network,
    nodes: usize,
    seconds: f64,
    mut ended: impl FnMut(&T, bool),
) {
    let mut left = seconds;
    let mut shares = Shares::default();
    for _ in 0..=running.len() {
        if running.is_empty() || left <= 0.0 {
            return;
        }
        shares.count(running, nodes);
        let until_end = |running: &T| running.copying().until_end(shares.rate(running, network), network);
        let next = running.iter().map(until_end).fold(left, |least, end| if end < least { end } else { least });
        let next = if next > 0.0 { next } else { 0.0 };
        let due: Vec<bool> = running.iter().map(|running| until_end(running) <= next).collect();
        for running in running.iter_mut() {
            let rate = shares.rate(running, network);
            let copying = running.copying_mut();
            let progress = rate - copying.dirty_rate;
            copying.sent += rate * next;
            copying.age += next;
            if progress > 0.0 {
                copying.left -= progress * next;
                copying.stalled = 0.0;
            } else {
                copying.stalled += next;
            }
        }
        let mut due = due.into_iter();
        running.retain(|running| {
            if !due.next().unwrap_or(false) {
                return true;
            }
            // A rest of at most one byte is a rounding error. A migration that was given up has more left.
            ended(running, running.copying().left <= 1.0);
            false
        });
        left -= next;
    }
}

/// The seconds until the next of these migrations ends, if none is added.
pub fn next_end<T: Transfer>(running: &[T], network: Network, nodes: usize) -> Option<f64> {
    let mut shares = Shares::default();
    shares.count(running, nodes);
    let ends = running.iter().map(|running| running.copying().until_end(shares.rate(running, network), network));
    ends.min_by(f64::total_cmp).map(|end| end.max(0.0))
}

fn count(counts: &mut Vec<u32>, nodes: usize, of: impl Iterator<Item = u32>) {
    counts.clear();
    counts.resize(nodes, 0);
    of.for_each(|node| counts[node as usize] += 1);
}
