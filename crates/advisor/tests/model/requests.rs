//! What the requests of a session read, write and change.

use advisor::{session::Request, writing};

use crate::system::System;

/// What a request reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Nothing,
    Config,
    /// Everything that a profile wants to know.
    Everything,
    Targets,
    Target(usize),
    /// The record of the plan, which nobody else changes.
    Record,
}

/// Whether a request may change something.
pub(crate) fn is_effect(system: &System, request: &Request) -> bool {
    let is_open = |name: &String| system.cluster.record(name).is_some_and(|record| !record.is_finished);
    match request {
        Request::UpdateStatus(_) | Request::CreateRecord(_) => true,
        Request::CloseRecord { name, .. } => is_open(name),
        request => is_write(request),
    }
}

pub(crate) fn is_write(request: &Request) -> bool {
    matches!(request, Request::WriteTarget { request, .. } if *request != writing::Request::Read)
}

/// Whether a request reads facts, so that its answer may be old.
pub(crate) fn is_read(request: &Request) -> bool {
    match request {
        Request::FetchFacts | Request::MakePlan { facts: None } => true,
        Request::WriteTarget { request, .. } => *request == writing::Request::Read,
        Request::UpdateStatus(_)
        | Request::ReadConfig
        | Request::MakePlan { facts: Some(_) }
        | Request::CreateRecord(_)
        | Request::ListRecords { .. }
        | Request::CloseRecord { .. } => false,
    }
}
