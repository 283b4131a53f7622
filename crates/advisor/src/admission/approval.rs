//! The policy on edits of configurations: who may approve a plan, and which one. It looks at edits that lead to `action: Apply` or are
//! made under it, and at those that set `approvedBy` or `bypassOptimisticLock`. Leaving `Apply` and rejecting the current plan are
//! never refused, so that every editor can stop work.

use serde_json::{Value, json};

use super::{APPROVAL, matched, object, variable};

/// Whether two maps differ in nothing but this entry.
fn same_except(entry: &str, a: &str, b: &str) -> String {
    format!(
        "{a}.all(key, key == '{entry}' || (key in {b} && {b}[key] == {a}[key])) && \
         {b}.all(key, key == '{entry}' || key in {a})"
    )
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
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": matched("virtplatformconfigs", &["CREATE", "UPDATE"]),
        // Variables cannot be used here.
        "matchConditions": [{
            "name": "spec-changes",
            "expression": "oldObject == null || object.spec != oldObject.spec",
        }],
        "variables": variables(),
        "validations": validations(),
        // An empty value is left out.
        "auditAnnotations": [
            {"key": "approved-plan", "valueExpression": "string(variables.applies ? variables.given : '')"},
            {"key": "approved-by", "valueExpression": "string(variables.applies ? variables.user : '')"},
        ],
    });
    object("ValidatingAdmissionPolicy", APPROVAL, spec)
}

/// Each may use those before it. A field that may be absent is selected with `.?`: its absence would be an error.
fn variables() -> Vec<Value> {
    let rejects = format!(
        "variables.wasApply && variables.current != '' && variables.approval.?rejected.?planDigest.orValue('') == \
         variables.current && {} && {}",
        same_except("approval", "object.spec", "variables.oldSpec"),
        same_except("rejected", "variables.approval", "variables.oldApproval"),
    );
    let digests = "'spec.approval.planDigest is ' + (variables.given == '' ? 'missing' : variables.given) + \
                   (variables.current == '' ? ', and there is no current plan' : ', and the current plan is ' + \
                   variables.current)";
    let variables = [
        ("user", "request.userInfo.username"),
        ("oldSpec", "oldObject == null ? {} : oldObject.spec"),
        ("approval", "object.spec.?approval.orValue({})"),
        ("oldApproval", "variables.oldSpec.?approval.orValue({})"),
        ("given", "variables.approval.?planDigest.orValue('')"),
        ("current", "oldObject == null ? '' : oldObject.?status.?planDigest.orValue('')"),
        ("digests", digests),
        ("approver", "variables.approval.?approvedBy.orValue('')"),
        ("bypass", "object.spec.?bypassOptimisticLock.orValue(false)"),
        ("isApply", "object.spec.?action.orValue('') == 'Apply'"),
        ("wasApply", "variables.oldSpec.?action.orValue('') == 'Apply'"),
        ("rejects", &rejects),
        ("stops", "variables.wasApply && (!variables.isApply || variables.rejects)"),
        ("applies", "variables.isApply && !variables.stops"),
        (
            "namesApprover",
            "!variables.stops && variables.approver != '' && variables.approver != \
             variables.oldApproval.?approvedBy.orValue('')",
        ),
        (
            "setsBypass",
            "!variables.stops && variables.bypass && !variables.oldSpec.?bypassOptimisticLock.orValue(false)",
        ),
    ];
    variables.map(|(name, expression)| variable(name, expression)).to_vec()
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
            &unless("variables.setsBypass || (variables.applies && variables.bypass)", &may("bypass")),
            "You may not set bypassOptimisticLock.",
            "'User ' + variables.user + ' may not have changes of others overwritten: bypassOptimisticLock is true, and this \
             needs the verb bypass on virtplatformconfigs.advisor.kubevirt.io ' + object.metadata.name + '.'",
        ),
    ]
}
