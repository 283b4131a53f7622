//! The policy on edits of configurations: who may approve a plan, and which one.
//!
//! An edit matters if it leads to `action: Apply` or changes the spec under it, if it sets `approvedBy`, or if it sets
//! `bypassOptimisticLock`. All other edits are let through. Two that stop work always are, so that every editor can stop it:
//!
//! - leaving `Apply`;
//! - rejecting the current plan under `Apply`, if nothing else changes.
//!
//! Fields are compared as maps and not one by one, so a field that is added to the spec later is covered.

use serde_json::{Value, json};

use super::{APPROVAL, matched, object, variable};

/// Whether a configuration asks for its plan to be applied.
fn is_apply(of: &str) -> String {
    format!("{of}.spec.?action.orValue('') == 'Apply'")
}

fn approver(of: &str) -> String {
    format!("{of}.spec.?approval.?approvedBy.orValue('')")
}

fn bypass(of: &str) -> String {
    format!("{of}.spec.?bypassOptimisticLock.orValue(false)")
}

/// Whether two maps differ in nothing but this entry.
fn same_except(entry: &str, a: &str, b: &str) -> String {
    format!(
        "{a}.all(key, key == '{entry}' || (key in {b} && {b}[key] == {a}[key])) && \
         {b}.all(key, key == '{entry}' || key in {a})"
    )
}

/// Whether an edit rejects the current plan and changes nothing else.
fn only_rejects() -> String {
    let approval = |of: &str| format!("{of}.spec.?approval.orValue({{}})");
    format!(
        "object.spec.?approval.?rejected.?planDigest.orValue('') == oldObject.?status.?planDigest.orValue('none') && {} && {}",
        same_except("approval", "object.spec", "oldObject.spec"),
        same_except("rejected", &approval("object"), &approval("oldObject")),
    )
}

/// Whether an edit approves a plan.
fn applies() -> String {
    format!("{} && (oldObject == null || (object.spec != oldObject.spec && !({})))", is_apply("object"), only_rejects())
}

/// Whether an edit sets a field that is not empty, other than by stopping work.
fn sets(is_set: &str, is_changed: &str) -> String {
    let leaves = format!("{} && !({})", is_apply("oldObject"), is_apply("object"));
    format!("{is_set} && (oldObject == null || ({is_changed} && !({leaves})))")
}

fn names_approver() -> String {
    let (new, old) = (approver("object"), approver("oldObject"));
    sets(&format!("{new} != ''"), &format!("{new} != {old}"))
}

fn sets_bypass() -> String {
    sets(&bypass("object"), &format!("!{}", bypass("oldObject")))
}

/// Whether whoever sends the request has a verb on the profile. More than two of these would exceed the cost of an expression.
fn may(verb: &str) -> String {
    format!(
        "authorizer.group('advisor.kubevirt.io').resource('virtplatformconfigs').name(object.metadata.name)\
         .check('{verb}').allowed()"
    )
}

/// A validation. Only the first one that fails is reported.
fn validation(expression: &str, message: &str, message_expression: &str) -> Value {
    json!({
        "expression": expression,
        "reason": "Forbidden",
        "message": message,
        "messageExpression": message_expression,
    })
}

pub(super) fn policy() -> Value {
    // Variables cannot be used here.
    let matters = format!("({}) || ({}) || ({})", applies(), names_approver(), sets_bypass());
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": matched("virtplatformconfigs", &["CREATE", "UPDATE"]),
        "matchConditions": [{"name": "approves", "expression": matters}],
        "variables": variables(),
        "validations": validations(),
        // An empty value is left out.
        "auditAnnotations": [
            {"key": "approved-plan", "valueExpression": "variables.applies ? variables.given : ''"},
            {"key": "approved-by", "valueExpression": "variables.applies ? variables.user : ''"},
        ],
    });
    object("ValidatingAdmissionPolicy", APPROVAL, spec)
}

fn variables() -> Vec<Value> {
    let given = "object.spec.?approval.?planDigest.orValue('')";
    let current = "oldObject == null ? '' : oldObject.?status.?planDigest.orValue('')";
    vec![
        variable("applies", &applies()),
        variable("namesApprover", &names_approver()),
        variable("setsBypass", &sets_bypass()),
        variable("given", given),
        variable("current", current),
        variable("approver", &approver("object")),
        variable("user", "request.userInfo.username"),
        variable(
            "digests",
            "'spec.approval.planDigest is ' + (variables.given == '' ? 'missing' : variables.given) + (variables.current == '' \
             ? ', and there is no current plan' : ', and the current plan is ' + variables.current)",
        ),
    ]
}

fn validations() -> Vec<Value> {
    let unless = |exempt: &str, expression: &str| format!("!({exempt}) || ({expression})");
    vec![
        validation(
            &unless("variables.applies", "oldObject != null"),
            "A configuration cannot be created with action Apply, because nobody has read its plan.",
            "'A configuration cannot be created with action Apply, because nobody has read its plan: ' + variables.digests + \
             '. Create ' + object.metadata.name + ' with action DryRun, read its plan, then approve it by its digest.'",
        ),
        validation(
            &unless("variables.applies", &may("approve")),
            "You may not approve plans, and every change of the spec under action Apply approves one.",
            "'User ' + variables.user + ' may not approve plans of ' + object.metadata.name + ', and every change of its spec \
             under action Apply approves one: ' + variables.digests + '. This needs the verb approve on \
             virtplatformconfigs.advisor.kubevirt.io ' + object.metadata.name + '.'",
        ),
        validation(
            &unless("variables.applies", "variables.given != '' && variables.given == variables.current"),
            "Every change of the spec under action Apply has to name the current plan in spec.approval.planDigest.",
            "'The change does not approve the current plan of ' + object.metadata.name + ': ' + variables.digests + \
             (variables.current == '' ? '. Set action DryRun and wait for the plan.' : '. Read the current plan, then approve it \
             by its digest.')",
        ),
        validation(
            &unless("variables.applies || variables.namesApprover", "variables.approver == variables.user"),
            "spec.approval.approvedBy must be your own user name.",
            "'spec.approval.approvedBy must be the user name of whoever sends the request, ' + variables.user + ', and it is ' + \
             (variables.approver == '' ? 'missing' : variables.approver) + '.'",
        ),
        validation(
            &unless(
                &format!("variables.setsBypass || (variables.applies && {})", bypass("object")),
                &may("bypass"),
            ),
            "You may not set bypassOptimisticLock.",
            "'User ' + variables.user + ' may not have changes of others overwritten: bypassOptimisticLock is true, and this \
             needs the verb bypass on virtplatformconfigs.advisor.kubevirt.io ' + object.metadata.name + '.'",
        ),
    ]
}
