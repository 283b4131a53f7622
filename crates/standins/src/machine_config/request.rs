//! What the stand-in writes to the API server.

use std::fmt;

use super::{Configuration, PoolStatus, Rendered};

/// Repeating it does no harm.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
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
    /// Taints a node that is to be updated, so that new pods prefer others, or takes the taint off.
    SetUpdateTaint {
        node: String,
        is_set: bool,
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
    /// Annotates a node as drained, when its drain has ended.
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
}

impl Request {
    /// The object that it changes. If the request fails, this object has to wait.
    pub(super) fn object(&self) -> Object {
        match self {
            Request::CreateRendered { pool, .. }
            | Request::SetPoolTarget { pool, .. }
            | Request::UpdatePoolStatus { pool, .. } => Object::Pool(pool.clone()),
            Request::Adopt { node, .. }
            | Request::SetUpdateTaint { node, .. }
            | Request::SetDesiredConfig { node, .. }
            | Request::Cordon { node, .. }
            | Request::MarkDrained { node, .. }
            | Request::MarkDegraded { node, .. }
            | Request::StartReboot { node }
            | Request::SetNotReady { node }
            | Request::SetReady { node }
            | Request::Uncordon { node, .. } => Object::Node(node.clone()),
            Request::DeleteRendered { config } => Object::Config(config.clone()),
        }
    }
}

/// For logs and errors.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::CreateRendered { pool, rendered } => {
                write!(f, "storing MachineConfig {} for pool {pool}", rendered.name)
            }
            Request::SetPoolTarget { pool, configuration } => {
                write!(f, "pointing pool {pool} at {}", configuration.name)
            }
            Request::UpdatePoolStatus { pool, status } => write!(
                f,
                "reporting {}/{} nodes of pool {pool} updated",
                status.updated_machine_count, status.machine_count
            ),
            Request::Adopt { node, config } => write!(f, "adopting Node {node} with {config}"),
            Request::SetUpdateTaint { node, is_set: true } => write!(f, "tainting Node {node}, which is to be updated"),
            Request::SetUpdateTaint { node, is_set: false } => write!(f, "taking the taint off Node {node}"),
            Request::SetDesiredConfig { node, config } => write!(f, "telling Node {node} to run {config}"),
            Request::Cordon { node, .. } => write!(f, "cordoning Node {node}"),
            Request::MarkDrained { node, .. } => write!(f, "noting that Node {node} is drained"),
            Request::MarkDegraded { node, reason } => write!(f, "degrading Node {node} ({reason})"),
            Request::StartReboot { node } => write!(f, "pretending to reboot Node {node}"),
            Request::SetNotReady { node } => write!(f, "making Node {node} not ready"),
            Request::SetReady { node } => write!(f, "making Node {node} ready"),
            Request::Uncordon { node, config } => write!(f, "uncordoning Node {node}, which now runs {config}"),
            Request::DeleteRendered { config } => write!(f, "deleting MachineConfig {config}"),
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
