//! The actions of the stand-in. Each is one request, except a drain.

use std::fmt;

use jiff::Timestamp;

use super::{Configuration, PoolStatus, Rendered};

/// One action. Repeating it does no harm.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Creates the rendered config of a pool.
    CreateRendered {
        pool: String,
        rendered: Rendered,
    },
    /// Sets the config that the pool's nodes should run.
    SetPoolTarget {
        pool: String,
        configuration: Configuration,
    },
    UpdatePoolStatus {
        pool: String,
        status: PoolStatus,
    },
    /// Annotates a new node: it runs this config, and should.
    Adopt {
        node: String,
        config: String,
    },
    /// Annotates a node with the config that it should run.
    SetDesiredConfig {
        node: String,
        config: String,
    },
    /// Begins the update of a node: no new pods.
    Cordon {
        node: String,
        config: String,
    },
    /// Evicts the pods of a node until none is left.
    Drain {
        node: String,
        config: String,
    },
    /// Annotates a node as drained. Follows when a `Drain` has ended.
    MarkDrained {
        node: String,
        config: String,
    },
    MarkDegraded {
        node: String,
        reason: String,
    },
    StartReboot {
        node: String,
    },
    SetNotReady {
        node: String,
    },
    SetReady {
        node: String,
    },
    /// Ends the update of a node: it runs `config` and takes pods again.
    Uncordon {
        node: String,
        config: String,
    },
    /// Deletes a rendered config that is not in use.
    DeleteRendered {
        config: String,
    },
    /// Decides again at this time, even if nothing changes before.
    WakeAt(Timestamp),
}

impl Action {
    /// The object that it changes. If the request fails, this object has to wait.
    pub(super) fn object(&self) -> Option<Object> {
        match self {
            Action::CreateRendered { pool, .. }
            | Action::SetPoolTarget { pool, .. }
            | Action::UpdatePoolStatus { pool, .. } => Some(Object::Pool(pool.clone())),
            Action::Adopt { node, .. }
            | Action::SetDesiredConfig { node, .. }
            | Action::Cordon { node, .. }
            | Action::Drain { node, .. }
            | Action::MarkDrained { node, .. }
            | Action::MarkDegraded { node, .. }
            | Action::StartReboot { node }
            | Action::SetNotReady { node }
            | Action::SetReady { node }
            | Action::Uncordon { node, .. } => Some(Object::Node(node.clone())),
            Action::DeleteRendered { config } => Some(Object::Config(config.clone())),
            Action::WakeAt(_) => None,
        }
    }
}

/// For logs and errors.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::CreateRendered { pool, rendered } => {
                write!(f, "storing MachineConfig {} for pool {pool}", rendered.name)
            }
            Action::SetPoolTarget { pool, configuration } => {
                write!(f, "pointing pool {pool} at {}", configuration.name)
            }
            Action::UpdatePoolStatus { pool, status } => write!(
                f,
                "reporting {}/{} nodes of pool {pool} updated",
                status.updated_machine_count, status.machine_count
            ),
            Action::Adopt { node, config } => write!(f, "adopting Node {node} with {config}"),
            Action::SetDesiredConfig { node, config } => write!(f, "telling Node {node} to run {config}"),
            Action::Cordon { node, .. } => write!(f, "cordoning Node {node}"),
            Action::Drain { node, .. } => write!(f, "draining Node {node}"),
            Action::MarkDrained { node, .. } => write!(f, "noting that Node {node} is drained"),
            Action::MarkDegraded { node, reason } => write!(f, "degrading Node {node} ({reason})"),
            Action::StartReboot { node } => write!(f, "pretending to reboot Node {node}"),
            Action::SetNotReady { node } => write!(f, "making Node {node} not ready"),
            Action::SetReady { node } => write!(f, "making Node {node} ready"),
            Action::Uncordon { node, config } => write!(f, "uncordoning Node {node}, which now runs {config}"),
            Action::DeleteRendered { config } => write!(f, "deleting MachineConfig {config}"),
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
