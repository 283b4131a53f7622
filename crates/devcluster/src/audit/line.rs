//! Lines of the audit log: events of `audit.k8s.io/v1` as JSON.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::AuditedRequest;

pub(super) struct Line {
    /// The same in all lines of a request.
    pub(super) id: String,
    /// Whether it tells of an answer, and not only of the request.
    pub(super) answered: bool,
    pub(super) request: AuditedRequest,
}

/// The fields of an audit.k8s.io/v1 Event that we use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    stage: String,
    verb: String,
    user: User,
    impersonated_user: Option<User>,
    user_agent: String,
    object_ref: ObjectRef,
    response_status: ResponseStatus,
    request_received_timestamp: Timestamp,
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
    message: String,
}

/// A line of the log, unless it cannot be read or repeats another one.
pub(super) fn parse(line: &str) -> Option<Line> {
    let event: Event = serde_json::from_str(line).ok()?;
    // A watch has two lines, one when it starts and one when it ends.
    if event.verb == "watch" && event.stage == "ResponseComplete" && event.response_status.code == 200 {
        return None;
    }
    let query = event.request_uri.split_once('?').map_or("", |(_, query)| query);
    let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let request = AuditedRequest {
        lacks_right: lacks_right(&event),
        user: event.impersonated_user.unwrap_or(event.user).username,
        verb: event.verb,
        group: event.object_ref.api_group,
        resource: event.object_ref.resource,
        subresource: event.object_ref.subresource,
        namespace: event.object_ref.namespace,
        name: event.object_ref.name,
        user_agent: event.user_agent,
        code: event.response_status.code,
        dry_run: parameter("dryRun").is_some(),
        field_manager: parameter("fieldManager").map(str::to_owned),
        arrived: event.request_received_timestamp,
        uri: event.request_uri,
    };
    Some(Line { id: event.audit_id, answered: event.stage != "RequestReceived", request })
}

/// Whether a request was refused by RBAC. For an apply that would create, only the message tells:
/// `... User "jane" cannot create resource "x" ...`
fn lacks_right(event: &Event) -> bool {
    let ResponseStatus { code, message } = &event.response_status;
    let decision = event.annotations.get("authorization.k8s.io/decision");
    let is_about_rights = message.split_once("\" cannot ").is_some_and(|(_, rest)| rest.contains(" resource \""));
    *code == 403 && (is_about_rights || decision.is_some_and(|decision| decision == "forbid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","verb":"patch","requestURI":"/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/x/status?fieldManager=me&dryRun=All","user":{"username":"admin"},"impersonatedUser":{"username":"jane"},"objectRef":{"resource":"virtplatformconfigs","apiGroup":"advisor.kubevirt.io","name":"x","subresource":"status"},"responseStatus":{"code":200}}"#;

    #[test]
    fn a_line_tells_who_did_what_to_which_object() {
        let request = parse(LINE).unwrap().request;
        assert_eq!(
            request.to_string(),
            "patch virtplatformconfigs.advisor.kubevirt.io/status x (dry run) by jane: 200"
        );
        assert_eq!(request.field_manager.as_deref(), Some("me"));
        assert!(!request.is_write(), "a dry run writes nothing");
    }

    #[test]
    fn a_lack_of_rights_is_told_from_a_webhook_that_says_no() {
        let refused = |message: &str| {
            let answer = serde_json::json!({"code": 403, "message": message});
            parse(&LINE.replace(r#"{"code":200}"#, &answer.to_string())).unwrap().request.lacks_right
        };
        assert!(refused(
            r#"x is forbidden: User "jane" cannot patch resource "x" in API group "g" at the cluster scope"#
        ));
        assert!(!refused(r#"admission webhook "w" denied the request: no"#));
        assert!(!parse(LINE).unwrap().request.lacks_right);
        let judged = r#"{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}"#;
        assert!(
            parse(&LINE.replace(r#"{"code":200}"#, judged)).unwrap().request.lacks_right,
            "the answer may have no words"
        );
    }

    #[test]
    fn an_unreadable_line_is_passed_over() {
        assert!(parse("{\"kind\":").is_none());
    }
}
