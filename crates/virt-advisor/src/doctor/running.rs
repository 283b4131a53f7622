//! Whether an operator runs, whether it leads, and of which version it is.

use jiff::{SignedDuration, Timestamp};
use kube_io::RequestError;
use serde_json::Value;

use super::finding::{Finding, Level};

/// A lease may be renewed so much later than it runs out before it counts as lost: the clocks that are compared differ a bit.
const SLACK: SignedDuration = SignedDuration::from_secs(15);

/// What the lease says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leader {
    /// Its name, and how long ago it was seen.
    Leads(String, SignedDuration),
    /// The last leader, and how long ago it was seen.
    Gone(String, SignedDuration),
    Nobody,
}

/// `now` is the time of the API server.
pub(super) fn leader(lease: &Value, now: Timestamp) -> Leader {
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty());
    let renewed = spec["renewTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let Some((holder, renewed)) = holder.zip(renewed) else { return Leader::Nobody };
    let age = now.duration_since(renewed);
    let duration = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or(15));
    let holder = holder.to_owned();
    if age > duration + SLACK { Leader::Gone(holder, age) } else { Leader::Leads(holder, age) }
}

/// `deployments` and `pods` are those with the labels of the operator.
pub(super) fn operator(
    namespace: &str,
    deployments: &Result<Vec<Value>, RequestError>,
    pods: &Result<Vec<Value>, RequestError>,
    leader: Option<&Leader>,
) -> Finding {
    const CHECK: &str = "operator";
    let leads = matches!(leader, Some(Leader::Leads(..)));
    let deployments = match deployments {
        Ok(deployments) => deployments,
        Err(_) if leads => return Finding::ok(CHECK, "runs: it renews its lease"),
        Err(error) => return Finding::unknown(CHECK, &format!("Deployments in {namespace}"), error),
    };
    let Some(deployment) = deployments.first() else {
        let message = format!("there is no Deployment of it in {namespace}");
        let remedy = "install it: make deploy IMG=registry/virt-advisor-operator:tag; if it is elsewhere, name its namespace with -n";
        return match leads {
            true => Finding::warning(CHECK, message + ", and yet somebody renews its lease", remedy),
            false => Finding::problem(CHECK, message, remedy),
        };
    };
    let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let available = deployment["status"]["availableReplicas"].as_i64().unwrap_or(0);
    let message = format!("{available} of {wanted} replicas of Deployment {namespace}/{name} are available");
    match (wanted, available) {
        (0, _) => {
            let remedy = format!("start it: kubectl -n {namespace} scale deployment {name} --replicas=2");
            Finding::problem(CHECK, format!("Deployment {namespace}/{name} is scaled to 0"), remedy)
        }
        (wanted, available) if available >= wanted => Finding::ok(CHECK, message),
        (_, 1..) => Finding::warning(CHECK, message + &waits(pods), describe(namespace)),
        // Without a kubelet that reports, a lease is the better witness.
        _ if leads => Finding::warning(CHECK, message + ", and yet one renews its lease", describe(namespace)),
        _ => Finding::problem(CHECK, message + &waits(pods), describe(namespace)),
    }
}

fn describe(namespace: &str) -> String {
    format!("read why: kubectl -n {namespace} describe pods -l {}", crate::gather::running::LABELS)
}

/// What containers wait for, as kubelets say it.
fn waits(pods: &Result<Vec<Value>, RequestError>) -> String {
    let pods = pods.as_deref().unwrap_or_default();
    let statuses = pods.iter().flat_map(|pod| pod["status"]["containerStatuses"].as_array().into_iter().flatten());
    let mut reasons: Vec<&str> = statuses.filter_map(|status| status["state"]["waiting"]["reason"].as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) }
}

/// `lease` is what was read, `leader` what it says.
pub(super) fn leading(namespace: &str, lease: &Result<Value, RequestError>, leader: Option<&Leader>) -> Finding {
    const CHECK: &str = "leader";
    let logs = format!("read its log: kubectl -n {namespace} logs -l {}", crate::gather::running::LABELS);
    match (lease, leader) {
        (Err(error), _) if error.class.is_absent() => Finding::warning(
            CHECK,
            format!("there is no lease {namespace}/{}", advisor::access::LEASE),
            "if the operator runs with --leader-elect, as it is installed, it has never led; if it runs without, this \
             is as it should be",
        ),
        (Err(error), _) => Finding::unknown(CHECK, "its lease", error),
        (Ok(_), Some(Leader::Leads(holder, age))) => {
            Finding::ok(CHECK, format!("{holder}, seen {} s ago", age.as_secs().max(0)))
        }
        (Ok(_), Some(Leader::Gone(holder, age))) => Finding::problem(
            CHECK,
            format!("nobody leads: {holder} has not renewed the lease for {} s", age.as_secs()),
            logs,
        ),
        (Ok(_), Some(Leader::Nobody) | None) => {
            Finding::problem(CHECK, "nobody leads: the last operator has released the lease", logs)
        }
    }
}

/// The versions of operators that statuses name, compared with this program.
pub(super) fn version(operators: &[String]) -> Finding {
    const CHECK: &str = "version";
    let client = crate::VERSION;
    match operators {
        [] => Finding {
            level: Level::Unknown,
            ..Finding::ok(CHECK, format!("this program is {client}; no status names an operator"))
        },
        [one] if one == client => Finding::ok(CHECK, format!("operator and this program are {client}")),
        operators => Finding::warning(
            CHECK,
            format!("plans are by operator {}, this program is {client}", operators.join(" and ")),
            "use the program of the operator's version; plans of older versions are made again by the operator",
        ),
    }
}

#[cfg(test)]
mod tests {
    use kube_io::Class;
    use serde_json::json;

    use super::*;

    fn denied<T>(class: Class) -> Result<T, RequestError> {
        Err(RequestError::other("reading".into(), "no".into(), class))
    }

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[test]
    fn a_leader_leads_until_its_lease_has_run_out_for_certain() {
        let now: Timestamp = "2026-01-12T09:30:00Z".parse().unwrap();
        let lease = |holder: &str, renewed: &str| json!({"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}});
        for (lease, expected) in [
            (lease("a", "2026-01-12T09:29:58.000000Z"), Leader::Leads("a".into(), seconds(2))),
            (lease("a", "2026-01-12T09:30:03.000000Z"), Leader::Leads("a".into(), seconds(-3))),
            (lease("a", "2026-01-12T09:29:31.000000Z"), Leader::Leads("a".into(), seconds(29))),
            (lease("a", "2026-01-12T09:29:00.000000Z"), Leader::Gone("a".into(), seconds(60))),
            (lease("", "2026-01-12T09:29:59.000000Z"), Leader::Nobody),
            (json!({}), Leader::Nobody),
        ] {
            assert_eq!(leader(&lease, now), expected, "{lease}");
        }
    }

    #[test]
    fn an_operator_is_there_when_pods_are_available_or_a_lease_is_renewed() {
        let deployment = |wanted: i64, available: i64| {
            Ok(vec![
                json!({"metadata": {"name": "d"}, "spec": {"replicas": wanted}, "status": {"availableReplicas": available}}),
            ])
        };
        let leads = Leader::Leads("a".into(), seconds(1));
        let gone = Leader::Gone("a".into(), seconds(99));
        for (case, deployments, leader, level) in [
            ("all replicas", deployment(2, 2), None, Level::Ok),
            ("one of two", deployment(2, 1), Some(&leads), Level::Warning),
            ("none, and none leads", deployment(2, 0), Some(&gone), Level::Problem),
            ("none, and one leads", deployment(2, 0), Some(&leads), Level::Warning),
            ("scaled down", deployment(0, 0), None, Level::Problem),
            ("not installed", Ok(vec![]), None, Level::Problem),
            ("installed otherwise", Ok(vec![]), Some(&leads), Level::Warning),
            ("may not be read", denied(Class::Forbidden), None, Level::Unknown),
            ("may not be read, and one leads", denied(Class::Forbidden), Some(&leads), Level::Ok),
        ] {
            let finding = operator("ns", &deployments, &Ok(vec![]), leader);
            assert_eq!(finding.level, level, "{case}: {finding:?}");
        }
    }

    #[test]
    fn what_a_pod_waits_for_is_told() {
        let pod = json!({"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}});
        let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 1}});
        let finding = operator("ns", &Ok(vec![deployment]), &Ok(vec![pod.clone(), pod]), None);
        assert!(finding.message.ends_with("are available (ImagePullBackOff)"), "{finding:?}");
    }

    #[test]
    fn a_lease_tells_who_leads() {
        let lease = || Ok(json!({}));
        for (lease, leader, level) in [
            (lease(), Some(Leader::Leads("a".into(), seconds(2))), Level::Ok),
            (lease(), Some(Leader::Gone("a".into(), seconds(99))), Level::Problem),
            (lease(), Some(Leader::Nobody), Level::Problem),
            (denied(Class::NotFound), None, Level::Warning),
            (denied(Class::Forbidden), None, Level::Unknown),
        ] {
            assert_eq!(leading("ns", &lease, leader.as_ref()).level, level, "{leader:?}");
        }
    }

    #[test]
    fn another_version_of_the_operator_is_told() {
        let client = crate::VERSION.to_owned();
        assert_eq!(version(&[]).level, Level::Unknown);
        assert_eq!(version(std::slice::from_ref(&client)).level, Level::Ok);
        assert_eq!(version(&["0.0.1".to_owned()]).level, Level::Warning);
        assert_eq!(version(&["0.0.1".to_owned(), client]).level, Level::Warning);
    }
}
