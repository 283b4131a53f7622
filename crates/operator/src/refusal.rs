//! What an error of a request means for a plan: a refusal to show, a failure to report, or a reason to try again.

use advisor::Refusal;
use kube_io::{Class, RequestError};

/// The advice after a message of the API server that names a missing right.
pub(crate) const LACKS_RIGHT: &str = ". The operator lacks a right that it is installed with: apply its roles again \
                                      (config/rbac, part of dist/install.yaml). It goes on by itself when it has the right";

/// The message of an error that does not pass by itself; otherwise the error, to try again.
pub(crate) fn lasting(error: RequestError) -> Result<String, RequestError> {
    match error.class {
        Class::Busy
        | Class::Initializing
        | Class::Unknown
        | Class::Conflict
        | Class::Unauthenticated
        | Class::NotFound
        | Class::KindMissing
        | Class::KindTerminating
        | Class::Expired => Err(error),
        _ => Ok(with_advice(&error)),
    }
}

/// The message of an error, with what to do about it where that is clear.
pub(crate) fn with_advice(error: &RequestError) -> String {
    let advice = if error.class == Class::Forbidden { LACKS_RIGHT } else { "" };
    format!("{error}{advice}")
}

/// The refusal that a plan shows, if the error is about the change and not about the state of the API server.
pub(crate) fn refusal(error: &RequestError, target: String) -> Option<Refusal> {
    let message = error.message.clone();
    Some(match &error.class {
        Class::NamespaceMissing(namespace) => Refusal::NamespaceMissing { target, namespace: namespace.clone() },
        Class::WebhookDenied => Refusal::Webhook { target, message },
        Class::PolicyDenied => Refusal::Policy { target, message },
        Class::KindTerminating => Refusal::KindTerminating { target },
        Class::DryRunUnsupported => Refusal::NoDryRun { target, message },
        Class::UnknownField => Refusal::UnknownField { target, message },
        Class::Invalid => Refusal::Invalid { target, message },
        Class::Forbidden => Refusal::Forbidden { target, message },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    /// W20 (final transient errors): only what a person has to do something about ends a plan.
    #[test]
    fn what_may_pass_by_itself_is_tried_again_and_never_final() {
        let is_final = |status: Value| {
            let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
            lasting(RequestError::new("reading".into(), &error)).is_ok()
        };
        for code in [401, 404, 408, 409, 410, 429, 500, 502, 503, 504] {
            assert!(!is_final(json!({"code": code})), "{code}");
        }
        for code in [400, 403, 422] {
            assert!(is_final(json!({"code": code})), "{code}");
        }
        let initializing = json!({"code": 429, "message": "storage is (re)initializing"});
        assert!(!is_final(initializing), "a kind that was just defined");
        assert!(lasting(RequestError::timed_out("reading".into(), Duration::from_secs(10))).is_err(), "no answer");
        let cut = kube::Error::Service("connection reset by peer".into());
        assert!(lasting(RequestError::new("reading".into(), &cut)).is_err(), "half an answer");
    }
}
