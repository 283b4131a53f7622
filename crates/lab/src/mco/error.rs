//! What can go wrong between the stand-in and the API server. All of it is logged and tried again.

use std::time::Duration;

use tokio::task::JoinError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server said no. `code` is the HTTP status.
    #[error("{doing}: {message} (HTTP {code})")]
    Refused { doing: String, code: u16, message: String },

    /// No answer, or half of one. What was written may have been written.
    #[error("{doing}: {cause}")]
    Unanswered { doing: String, cause: Box<kube::Error> },

    #[error("{doing}: no answer within {} s", .limit.as_secs())]
    TimedOut { doing: String, limit: Duration },

    #[error("the stand-in ended without being asked to: {0}")]
    Ended(#[from] JoinError),
}

impl Error {
    pub(super) fn new(doing: String, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Error::Refused { doing, code: status.code, message: status.message.clone() },
            other => Error::Unanswered { doing, cause: Box::new(other) },
        }
    }

    /// A stable word for the kind of failure. The HTTP code counts, not the reason beside it, which proxies leave out.
    pub fn reason(&self) -> &'static str {
        match self {
            Error::Refused { code: 404, .. } => "NotFound",
            Error::Refused { code: 409, .. } => "Conflict",
            Error::Refused { code: 429, .. } => "TooManyRequests",
            Error::Refused { code: 401 | 403, .. } => "Forbidden",
            Error::Refused { .. } => "Refused",
            Error::Unanswered { .. } => "Unanswered",
            Error::TimedOut { .. } => "TimedOut",
            Error::Ended(_) => "Ended",
        }
    }

    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Error::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_code_whatever_reason_came_with_it() {
        for (code, reason) in
            [(404, "NotFound"), (409, "Conflict"), (429, "TooManyRequests"), (403, "Forbidden"), (422, "Refused")]
        {
            let status = Status { code, message: "no".into(), reason: "Whatever".into(), ..Status::default() };
            let error = Error::new("patching Node a".into(), kube::Error::Api(Box::new(status)));
            assert_eq!(error.reason(), reason);
            assert_eq!(error.to_string(), format!("patching Node a: no (HTTP {code})"));
        }
    }
}
