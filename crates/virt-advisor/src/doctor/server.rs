//! Checks on the API server: whether it answers, its version, and its clock.

use jiff::SignedDuration;
use kube_io::{Class, RequestError};
use serde_json::Value;

use super::finding::{Finding, Level};

/// The oldest version of Kubernetes that is supported: 1.33.
const OLDEST_MINOR: u32 = 33;

/// What a clock may be off.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(10);

pub(super) fn api_server(url: &str, version: &Result<Value, RequestError>) -> Finding {
    const CHECK: &str = "API server";
    let version = match version {
        Ok(version) => version,
        Err(error) if error.class == Class::Unauthenticated => {
            let remedy = "log in again, or check KUBECONFIG and --context";
            return Finding::problem(CHECK, format!("{url} does not know you (401)"), remedy);
        }
        Err(error) if error.class == Class::Forbidden => return Finding::unknown(CHECK, "its version", error),
        Err(error) => {
            let remedy = "check KUBECONFIG and --context, and whether this address can be reached from here";
            return Finding::problem(CHECK, format!("{url} does not answer: {}", error.message), remedy);
        }
    };
    let name = version["gitVersion"].as_str().unwrap_or("unknown version");
    // Some distributions write "33+".
    let minor = version["minor"].as_str().unwrap_or_default().trim_end_matches('+').parse::<u32>();
    let message = format!("{name} at {url}");
    match minor {
        Ok(minor) if version["major"] == "1" && minor < OLDEST_MINOR => {
            let remedy = format!("upgrade the cluster; the oldest version that is supported is 1.{OLDEST_MINOR}");
            Finding::warning(CHECK, message, remedy)
        }
        _ => Finding::ok(CHECK, message),
    }
}

/// `offset` is how far the clock of the API server is ahead, and how inexact that is.
pub(super) fn clock(offset: Option<(SignedDuration, SignedDuration)>) -> Finding {
    const CHECK: &str = "clock";
    let Some((offset, error)) = offset else {
        return Finding { level: Level::Unknown, ..Finding::ok(CHECK, "the API server did not say what time it is") };
    };
    let seconds = offset.abs().as_secs();
    if offset.abs() - error <= TOLERANCE {
        return Finding::ok(CHECK, "this machine and the API server agree");
    }
    let direction = if offset.is_negative() { "ahead of" } else { "behind" };
    Finding::warning(
        CHECK,
        format!("this machine is {seconds} s {direction} the API server: one of the two clocks is wrong"),
        "check time synchronization (chronyc tracking) here and on the control plane; start times and maintenance \
         windows of approvals follow the clock of the operator's node",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(class: Class) -> RequestError {
        RequestError::other("reading /version".into(), "connection refused".into(), class)
    }

    #[test]
    fn the_api_server_answers_in_a_version_that_is_supported() {
        let version = |minor: &str| Ok(json!({"major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.0")}));
        for (version, level) in [
            (version("36"), Level::Ok),
            (version("33+"), Level::Ok),
            (version("32"), Level::Warning),
            (Ok(json!({})), Level::Ok),
            (Err(error(Class::Unknown)), Level::Problem),
            (Err(error(Class::Unauthenticated)), Level::Problem),
            (Err(error(Class::Forbidden)), Level::Unknown),
        ] {
            let finding = api_server("https://there", &version);
            assert_eq!(finding.level, level, "{version:?}: {finding:?}");
        }
    }

    #[test]
    fn a_clock_is_wrong_when_the_way_of_the_answer_does_not_explain_it() {
        let seconds = SignedDuration::from_secs;
        for (offset, error, level) in [
            (0, 1, Level::Ok),
            (-9, 0, Level::Ok),
            (12, 3, Level::Ok),
            (12, 1, Level::Warning),
            (-600, 1, Level::Warning),
        ] {
            assert_eq!(clock(Some((seconds(offset), seconds(error)))).level, level, "{offset} ± {error}");
        }
        assert_eq!(clock(None).level, Level::Unknown);
        assert!(clock(Some((seconds(-600), seconds(1)))).message.contains("600 s ahead of"), "as seen from here");
    }
}
