//! What the stand-in can do, one request each (but for a drain).

use std::fmt;

use jiff::Timestamp;

use super::{Configuration, PoolStatus, Rendered};

/// One thing to do. Doing it twice does no harm.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Store what was rendered for a pool.
    Store {
        pool: String,
        rendered: Rendered,
    },
    /// Make it what the pool's nodes should run.
    Point {
        pool: String,
        configuration: Configuration,
    },
    /// Write the pool's status.
    Report {
        pool: String,
        status: PoolStatus,
    },
    /// Note what a new node runs, which is what it should run.
    Adopt {
        node: String,
        config: String,
    },
    /// Tell a node what to run.
    Target {
        node: String,
        config: String,
    },
    /// Begin: close the node for new pods.
    Cordon {
        node: String,
        config: String,
    },
    /// Evict its pods, for as long as it takes.
    Drain {
        node: String,
        config: String,
    },
    /// Note that it is drained. Follows on a `Drain`, not on a step.
    Drained {
        node: String,
        config: String,
    },
    /// Note that it is stuck, and why.
    Degrade {
        node: String,
        reason: String,
    },
    StartReboot {
        node: String,
    },
    /// Make it not ready, as if it rebooted.
    GoDown {
        node: String,
    },
    /// Make it ready.
    ComeUp {
        node: String,
    },
    /// End: the node runs `config` and takes pods again.
    Uncordon {
        node: String,
        config: String,
    },
    /// Delete a rendered config that nobody needs.
    Retire {
        config: String,
    },
    /// Look again at that time, even if nothing happens.
    WakeAt(Timestamp),
}

impl Action {
    /// The object that it changes, which is also the one that waits if it fails.
    pub(super) fn object(&self) -> Option<Object> {
        match self {
            Action::Store { pool, .. } | Action::Point { pool, .. } | Action::Report { pool, .. } => {
                Some(Object::Pool(pool.clone()))
            }
            Action::Adopt { node, .. }
            | Action::Target { node, .. }
            | Action::Cordon { node, .. }
            | Action::Drain { node, .. }
            | Action::Drained { node, .. }
            | Action::Degrade { node, .. }
            | Action::StartReboot { node }
            | Action::GoDown { node }
            | Action::ComeUp { node }
            | Action::Uncordon { node, .. } => Some(Object::Node(node.clone())),
            Action::Retire { config } => Some(Object::Config(config.clone())),
            Action::WakeAt(_) => None,
        }
    }
}

/// What is being done, for logs and errors.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Store { pool, rendered } => write!(f, "storing MachineConfig {} for pool {pool}", rendered.name),
            Action::Point { pool, configuration } => write!(f, "pointing pool {pool} at {}", configuration.name),
            Action::Report { pool, status } => write!(
                f,
                "reporting {}/{} nodes of pool {pool} updated",
                status.updated_machine_count, status.machine_count
            ),
            Action::Adopt { node, config } => write!(f, "adopting Node {node} with {config}"),
            Action::Target { node, config } => write!(f, "telling Node {node} to run {config}"),
            Action::Cordon { node, .. } => write!(f, "cordoning Node {node}"),
            Action::Drain { node, .. } => write!(f, "draining Node {node}"),
            Action::Drained { node, .. } => write!(f, "noting that Node {node} is drained"),
            Action::Degrade { node, reason } => write!(f, "degrading Node {node} ({reason})"),
            Action::StartReboot { node } => write!(f, "pretending to reboot Node {node}"),
            Action::GoDown { node } => write!(f, "making Node {node} not ready"),
            Action::ComeUp { node } => write!(f, "making Node {node} ready"),
            Action::Uncordon { node, config } => write!(f, "uncordoning Node {node}, which now runs {config}"),
            Action::Retire { config } => write!(f, "deleting MachineConfig {config}"),
            Action::WakeAt(time) => write!(f, "waiting until {time}"),
        }
    }
}

/// The name of an object of one of the three kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    Config(String),
    Pool(String),
    Node(String),
}
