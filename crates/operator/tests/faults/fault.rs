//! The faults of one request of the operator, and the key of a request.
//!
//! Concurrent requests arrive in any order: the key is the label of a request and how often that label occurred before.

use std::fmt;

use http::{Method, StatusCode, Uri};
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process ends before the request is sent.
    CrashBefore,
    /// The process ends after the request was carried out, before it reads the answer.
    CrashAfter,
    /// Answered with 409. The object of a creation is created first, as if by somebody else.
    Conflict,
    /// Six conflicts in a row: more than the operator retries at once.
    Conflicts,
    TooManyRequests,
    ServerError,
    /// The connection breaks before the request arrives.
    CutBefore,
    /// The connection breaks after the request was carried out.
    CutAfter,
    /// A read is answered with an older state.
    Stale,
    /// As `CrashAfter`, and the first reads of the next process are answered with an older state.
    TimeTravel,
    /// The request succeeds, and all watches end.
    WatchesCut,
}

impl Fault {
    pub(crate) const ALL: [Fault; 11] = [
        Fault::CrashBefore,
        Fault::CrashAfter,
        Fault::CutAfter,
        Fault::CutBefore,
        Fault::Conflict,
        Fault::Conflicts,
        Fault::TooManyRequests,
        Fault::ServerError,
        Fault::Stale,
        Fault::TimeTravel,
        Fault::WatchesCut,
    ];

    /// Whether this fault can occur with such a request.
    pub(crate) fn can_hit(self, key: &Key) -> bool {
        let reads = key.label.starts_with("GET ");
        match self {
            Fault::Conflict => !reads,
            // The first conflict of a creation leaves an object: there is no second creation.
            Fault::Conflicts => !reads && !key.label.starts_with("POST "),
            Fault::Stale => reads,
            Fault::TimeTravel => !reads && !key.label.contains("(dry run)"),
            _ => true,
        }
    }

    /// How many requests in a row are hit.
    pub(crate) fn times(self) -> usize {
        if self == Fault::Conflicts { 6 } else { 1 }
    }

    /// Whether reads are answered with an older state, which counts until the next recheck.
    pub(crate) fn is_stale(self) -> bool {
        matches!(self, Fault::Stale | Fault::TimeTravel)
    }

    /// The answer that is given instead of the real one.
    pub(crate) fn answer(self) -> Option<(StatusCode, Vec<u8>)> {
        let (code, reason) = match self {
            Fault::Conflict | Fault::Conflicts => (StatusCode::CONFLICT, "Conflict"),
            Fault::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            Fault::ServerError => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            _ => return None,
        };
        let status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "code": code.as_u16(),
            "reason": reason,
            "message": format!("injected: {reason}"),
        });
        Some((code, status.to_string().into_bytes()))
    }
}

/// A request: its label, and its number among the requests of that label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) label: String,
    pub(crate) occurrence: usize,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.label, self.occurrence)
    }
}

/// `PATCH machineconfigs/99-worker-psi-karg (dry run)`. None for watches, the lists they begin with, and events.
pub(crate) fn label(method: &Method, uri: &Uri) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    let segments: Vec<&str> = uri.path().split('/').skip(1).collect();
    let rest = match segments.as_slice() {
        // Records outlive the configuration, so their numbers go on from run to run.
        ["apis", _, _, "virtplatformplanrecords", _, "status"] => "virtplatformplanrecords/N/status".to_owned(),
        ["apis", _, _, "virtplatformplanrecords", _] => "virtplatformplanrecords/N".to_owned(),
        ["apis", _, _, "namespaces", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest.join("/"),
        ["api", _, rest @ ..] => rest.join("/"),
        other => other.join("/"),
    };
    if query.contains("watch=") || query.contains("limit=") || rest.starts_with("events") {
        return None;
    }
    let dry_run = if query.contains("dryRun=") { " (dry run)" } else { "" };
    Some(format!("{method} {rest}{dry_run}"))
}
