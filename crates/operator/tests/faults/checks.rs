//! What must hold at the end of a life cycle, by the objects, the audit log and the record of the proxy.

use std::{collections::BTreeSet, time::Duration};

use devcluster::{AuditedRequest, LogPosition};
use serde_json::{Map, Value};
use testkit::{platform::Platform, poll, running_operator::OPERATOR};

use crate::{
    lifecycle::{APPROVER, outcome},
    proxy::Proxy,
};

/// How long the outcome may take to be that of the baseline, after the last step.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Whether the messages of items must be the same. An item that looked drifted in a stale answer says that it is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Messages {
    Same,
    MayDiffer,
}

/// Waits until the outcome is that of the baseline.
pub(crate) async fn same_end(platform: &Platform, expected: &Value, messages: Messages) -> Result<(), String> {
    let relevant = |mut outcome: Value| {
        let items = outcome.pointer_mut("/status/items").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten().filter(|_| messages == Messages::MayDiffer) {
            item["message"].take();
        }
        outcome
    };
    let expected = relevant(expected.clone());
    let is_same = async || {
        let seen = relevant(outcome(platform).await);
        if seen == expected { Ok(()) } else { Err(seen) }
    };
    let ended = poll(TIMEOUT, is_same).await;
    ended.map_err(|seen| format!("another end:\n{}", differences(&expected, &seen, "").join("\n")))
}

/// Where two values differ, path by path.
fn differences(expected: &Value, seen: &Value, path: &str) -> Vec<String> {
    match (expected, seen) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let field = |fields: &Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or_default();
            let below = |name: &String| differences(&field(a, name), &field(b, name), &format!("{path}.{name}"));
            names.into_iter().flat_map(below).collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.flat_map(|(number, (a, b))| differences(a, b, &format!("{path}[{number}]"))).collect()
        }
        _ if expected == seen => Vec::new(),
        _ => vec![format!("       {path}: expected {expected}, seen {seen}")],
    }
}

/// The writes to targets, in order. Fails if one was not approved.
pub(crate) async fn only_what_was_approved(platform: &Platform, mark: LogPosition) -> Result<Vec<String>, String> {
    let log = platform.cluster.audit().since(mark, &platform.client).await.map_err(|error| error.to_string())?;
    approved(&log)
}

/// Fails if a target was to get another content than those of the baseline.
pub(crate) fn same_contents(proxy: &Proxy, expected: &[(String, String)]) -> Result<(), String> {
    let writes = proxy.record().writes.clone();
    match writes.iter().find(|write| !expected.contains(write)) {
        Some((target, content)) => Err(format!("{target} was to become\n{content}\nwhich is none of\n{expected:#?}")),
        None => Ok(()),
    }
}

/// Fails if a write to a target does not follow an approval. Returns the writes that succeeded.
fn approved(log: &[AuditedRequest]) -> Result<Vec<String>, String> {
    let (mut is_approved, mut written) = (false, Vec::new());
    for request in log.iter().filter(|request| request.is_write() && request.resource != "events") {
        match (request.group == "advisor.kubevirt.io", request.field_manager.as_deref()) {
            (true, Some(APPROVER)) => is_approved = true,
            (true, Some("admin")) => is_approved = false,
            (false, _) if request.user == OPERATOR && !is_approved => {
                return Err(format!("not approved: {request}"));
            }
            (false, _) if request.user == OPERATOR && request.succeeded() => {
                written.push(format!("{} {} {}", request.verb, request.resource, request.name));
            }
            _ => {}
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(user: &str, verb: &str, manager: &str, group: &str) -> AuditedRequest {
        AuditedRequest {
            user: user.into(),
            verb: verb.into(),
            group: group.into(),
            resource: "things".into(),
            name: "x".into(),
            code: 200,
            field_manager: Some(manager.into()),
            ..AuditedRequest::default()
        }
    }

    #[test]
    fn a_write_counts_as_approved_between_approval_and_withdrawal_only() {
        let config = "advisor.kubevirt.io";
        let (edit, approval) =
            (request("admin", "patch", "admin", config), request("admin", "patch", APPROVER, config));
        let write = request(OPERATOR, "patch", "virt-advisor-operator/example-profile", "other");
        let preview = AuditedRequest { dry_run: true, ..write.clone() };
        let log = |requests: &[&AuditedRequest]| approved(&requests.iter().map(|&one| one.clone()).collect::<Vec<_>>());
        assert_eq!(log(&[&edit, &preview, &approval, &write]), Ok(vec!["patch things x".to_owned()]));
        assert!(log(&[&edit, &write, &approval]).is_err());
        assert!(log(&[&approval, &write, &edit, &write]).is_err());
    }
}
