//! Errors of the API server by class. This is the one place where they are told apart.
//! The HTTP code decides first: kube's own helpers look at the reason, which proxies, webhooks and missing kinds do not set.
//! Where a code has several meanings, the message decides.

#[cfg(test)]
mod tests;

use std::time::Duration;

use api::virt_platform_config::TakeOver;
use kube::{client::AuthError, core::Status, runtime::watcher};

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{doing}: {message}")]
pub struct RequestError {
    /// What was being done, to which object.
    pub doing: String,
    pub message: String,
    pub class: Class,
    /// How long the API server asks its clients to wait.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// The kind is served, the object is not there.
    NotFound,
    /// Nothing is served under that path.
    KindMissing,
    /// The namespace to create an object in is not there.
    NamespaceMissing(String),
    /// The API server has forgotten the version to continue from.
    Expired,
    /// Fields that a server-side apply sets belong to others.
    FieldConflict(Vec<TakeOver>),
    /// The object is not what the request said it should be.
    Conflict,
    /// The object, or a field of it, is against the rules.
    Invalid,
    /// The kind has no such field.
    UnknownField,
    /// An admission webhook said no.
    WebhookDenied,
    /// An admission policy of the API server itself said no.
    PolicyDenied,
    /// The kind is being removed, and until it is gone, no objects of it are created.
    KindTerminating,
    /// An admission webhook cannot be asked without side effects.
    DryRunUnsupported,
    /// The sender lacks the right.
    Forbidden,
    /// The sender is not known: its token has expired, or its certificate belongs to another cluster.
    Unauthenticated,
    /// The server is overloaded, starting or stopping. Try again later.
    Busy,
    /// The kind was defined a moment ago, and the API server is about to serve it.
    Initializing,
    /// The answer was lost or incomplete. A write may have succeeded.
    Unknown,
    /// Anything else that does not pass by itself.
    Other,
}

impl Class {
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => classify(status),
            other if login(other).is_some() => Class::Unauthenticated,
            _ => Class::Unknown,
        }
    }

    /// Whether there is no such object, for whatever reason.
    pub fn is_absent(&self) -> bool {
        matches!(self, Class::NotFound | Class::KindMissing | Class::NamespaceMissing(_))
    }

    /// Whether the same request may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Class::Busy | Class::Initializing | Class::Unknown | Class::Conflict)
    }
}

impl RequestError {
    pub fn new(doing: String, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => RequestError::answered(doing, status),
            other => match login(other) {
                Some(error) => RequestError::other(doing, login_message(error), Class::Unauthenticated),
                None => RequestError::other(doing, innermost(other), Class::Unknown),
            },
        }
    }

    /// The error of a watch.
    pub fn of_watch(doing: String, error: &watcher::Error) -> Self {
        use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
        match error {
            InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => RequestError::new(doing, error),
            WatchError(status) => RequestError::answered(doing, status),
            other => RequestError::other(doing, other.to_string(), Class::Unknown),
        }
    }

    fn answered(doing: String, status: &Status) -> Self {
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        // A proxy may answer with a code and nothing else.
        let message = match status.message.as_str() {
            "" => format!("the server answered with code {}", status.code),
            message => message.to_owned(),
        };
        RequestError { doing, message, class: classify(status), retry_after }
    }

    pub fn timed_out(doing: String, limit: Duration) -> Self {
        // Only a limit below a second needs its fraction.
        let seconds = if limit.as_secs() > 0 { limit.as_secs() as f64 } else { limit.as_secs_f64() };
        RequestError::other(doing, format!("no answer within {seconds} s"), Class::Unknown)
    }

    /// An error that is not from the API server itself.
    pub fn other(doing: String, message: String, class: Class) -> Self {
        RequestError { doing, message, class, retry_after: None }
    }
}

/// kube wraps what went wrong in a sentence per layer; the innermost one is the cause.
fn innermost(error: &kube::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The failed login, if the request was not even sent because of one: a command of the kubeconfig, or a token that is not renewed.
fn login(error: &kube::Error) -> Option<&AuthError> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(login) = error.downcast_ref() {
            return Some(login);
        }
        cause = error.source();
    }
    None
}

/// A command, with its environment, and what it has printed to standard output may hold secrets.
fn login_message(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            format!("the login failed: the command of the kubeconfig ended with {}. {}", out.status, said.trim())
        }
        AuthError::AuthExecParse(_) => {
            "the login failed: what the command of the kubeconfig printed are no credentials that can be read"
                .to_owned()
        }
        AuthError::ParseTokenKey(_) => "the login failed: the token of the kubeconfig cannot be read".to_owned(),
        other => format!("the login failed: {other}"),
    }
}

fn classify(status: &Status) -> Class {
    let message = status.message.as_str();
    let details = status.details.as_ref();
    if message.contains("does not support dry run") {
        return Class::DryRunUnsupported;
    }
    // The only message of a JSON patch whose `test` operation failed: the object has another version than the one compared.
    // Any other violation names its field.
    if status.code == 422 && message == "the server rejected our request due to an error in our request" {
        return Class::Conflict;
    }
    if message.contains("while custom resource definition is terminating") {
        return Class::KindTerminating;
    }
    if message.contains("AdmissionPolicy '") && message.contains("denied request") {
        return Class::PolicyDenied;
    }
    if message.contains("denied the request") || message.contains("denied request") {
        return Class::WebhookDenied;
    }
    // Answered with 500 by server-side apply and with 400 by strict validation; it is neither a fault nor temporary.
    if message.contains("field not declared in schema") || message.contains("unknown field") {
        return Class::UnknownField;
    }
    match status.code {
        404 => match details {
            Some(details) if details.kind == "namespaces" => Class::NamespaceMissing(details.name.clone()),
            Some(details) if !details.name.is_empty() => Class::NotFound,
            _ => Class::KindMissing,
        },
        409 => match take_overs(status) {
            take_overs if take_overs.is_empty() => Class::Conflict,
            take_overs => Class::FieldConflict(take_overs),
        },
        410 => Class::Expired,
        400 | 422 => Class::Invalid,
        401 => Class::Unauthenticated,
        403 => Class::Forbidden,
        429 | 503 if message.contains("storage is (re)initializing") => Class::Initializing,
        408 | 429 | 500 | 502 | 503 | 504 => Class::Busy,
        _ => Class::Other,
    }
}

/// The managers whose fields a server-side apply would take, from the causes of a conflict.
fn take_overs(status: &Status) -> Vec<TakeOver> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut take_overs: Vec<TakeOver> = Vec::new();
    for cause in causes.filter(|cause| cause.reason == "FieldManagerConflict") {
        // conflict with "kubectl-edit" using operator.openshift.io/v1 at 2026-01-01T00:00:00Z
        let manager = cause.message.split('"').nth(1).unwrap_or("unknown").to_owned();
        let field = cause.field.trim_start_matches('.').to_owned();
        match take_overs.iter_mut().find(|known| known.manager == manager) {
            Some(known) => known.fields.push(field),
            None => take_overs.push(TakeOver { manager, fields: vec![field] }),
        }
    }
    // The API server lists causes in no particular order; the plan's digest must not change with it.
    take_overs.iter_mut().for_each(|take_over| take_over.fields.sort());
    take_overs.sort_by(|a, b| a.manager.cmp(&b.manager));
    take_overs
}
