//! Why a command did not do what was asked, as an exit code for scripts and a hint for people.

use std::fmt;

use kube_io::{Class, RequestError};

use crate::program;

/// The kinds of failure. Their numbers are documented and do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Failure {
    /// What `--exit-code` and `doctor` look for. It is not an error.
    Found = 1,
    /// Any other error, also a wrong command line, for which clap has the same number.
    Other = 2,
    StalePlan = 3,
    RisksNotAccepted = 4,
    Forbidden = 5,
    ServerAway = 6,
    NotReached = 7,
    TimedOut = 8,
    NotFound = 9,
    /// By Ctrl-C, or by another signal that asks a program to end.
    Interrupted = 130,
}

impl Failure {
    /// What the numbers mean, with those of success, of a wrong command line and of Ctrl-C.
    pub(crate) const EXIT_CODES: &[(u8, &str)] = &[
        (0, "done"),
        (
            Failure::Found as u8,
            "something was found: a problem by doctor, changes by plan --exit-code, drift by drift --exit-code, a figure that \
             is not as forecast by forecast --check",
        ),
        (Failure::Other as u8, "wrong command line, or another error"),
        (Failure::StalePlan as u8, "the plan is not the one that was shown or named any more"),
        (Failure::RisksNotAccepted as u8, "the plan has risks that were not accepted"),
        (Failure::Forbidden as u8, "you may not do that"),
        (Failure::ServerAway as u8, "the API server does not answer"),
        (Failure::NotReached as u8, "what was waited for will not happen: the plan has failed or was rejected"),
        (Failure::TimedOut as u8, "what was waited for has not happened in time, or a forecast cannot be checked yet"),
        (Failure::NotFound as u8, "there is no such object, or the operator is not installed"),
        (Failure::Interrupted as u8, "interrupted"),
    ];

    pub(crate) fn of_class(class: &Class) -> Self {
        match class {
            Class::Forbidden | Class::Unauthenticated | Class::PolicyDenied => Failure::Forbidden,
            Class::Unknown | Class::Busy | Class::Initializing => Failure::ServerAway,
            Class::NotFound | Class::KindMissing | Class::NamespaceMissing(_) => Failure::NotFound,
            Class::Conflict => Failure::StalePlan,
            _ => Failure::Other,
        }
    }

    /// What to do about an error that comes from the API server and not from us.
    fn hint(class: &Class) -> Option<String> {
        let doctor = format!("`{} doctor`", program::name());
        match class {
            Class::Forbidden => Some(format!("you lack this right; {doctor} lists what you may do")),
            Class::Unauthenticated => Some("log in again, or check the kubeconfig and --context".to_owned()),
            Class::Unknown => Some("check the kubeconfig and --context, and whether the API server runs".to_owned()),
            Class::KindMissing => Some(format!("the operator is not installed in this cluster; {doctor} says more")),
            _ => None,
        }
    }
}

/// An error of a known kind, whose message says what to do.
#[derive(Debug)]
struct Failed {
    failure: Failure,
    message: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}

pub(crate) fn failed(failure: Failure, message: impl Into<String>) -> anyhow::Error {
    Failed { failure, message: message.into() }.into()
}

/// The kind of an error, and what to do where its text does not say it.
pub(crate) fn classify(error: &anyhow::Error) -> (Failure, Option<String>) {
    if let Some(failed) = error.downcast_ref::<Failed>() {
        return (failed.failure, None);
    }
    // A transparent error hides the one that it wraps.
    let plan = error.chain().find_map(|cause| match cause.downcast_ref::<operator::PlanError>() {
        Some(operator::PlanError::Request(request)) => Some(request),
        _ => None,
    });
    let request = plan.or_else(|| error.chain().find_map(|cause| cause.downcast_ref::<RequestError>()));
    request.map_or((Failure::Other, None), |request| (Failure::of_class(&request.class), Failure::hint(&request.class)))
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn missing_rights_a_stale_plan_and_a_server_that_is_away_have_codes_of_their_own() {
        let of = |class| {
            let error: anyhow::Error = RequestError::other("reading x".into(), "no".into(), class).into();
            classify(&error.context("showing x")).0
        };
        assert_eq!(of(Class::Forbidden), Failure::Forbidden);
        assert_eq!(of(Class::Conflict), Failure::StalePlan);
        assert_eq!(of(Class::Unknown), Failure::ServerAway);
        assert_eq!(of(Class::KindMissing), Failure::NotFound);
        assert_eq!(of(Class::Invalid), Failure::Other);
    }

    #[test]
    fn our_own_kind_wins_over_the_request_that_it_came_from() {
        let request = RequestError::other("writing x".into(), "no".into(), Class::Forbidden);
        let error = Err::<(), _>(request).context(Failed { failure: Failure::StalePlan, message: "old".into() });
        assert_eq!(classify(&error.unwrap_err()), (Failure::StalePlan, None));
        assert_eq!(classify(&anyhow::anyhow!("x")), (Failure::Other, None));
    }

    #[test]
    fn what_was_found_is_told_from_an_error() {
        assert_eq!((Failure::Found as u8, Failure::Other as u8), (1, 2));
        assert_ne!(classify(&anyhow::anyhow!("--as-group needs --as")).0, Failure::Found);
    }

    #[test]
    fn every_exit_code_is_explained_once() {
        let codes: Vec<u8> = Failure::EXIT_CODES.iter().map(|(code, _)| *code).collect();
        assert!(codes.is_sorted() && codes.windows(2).all(|pair| pair[0] != pair[1]), "{codes:?}");
    }
}
