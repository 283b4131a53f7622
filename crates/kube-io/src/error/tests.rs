use std::process::{ExitStatus, Output};

use serde_json::{Value, json};

use super::*;

fn class(status: Value) -> Class {
    classify(&serde_json::from_value(status).unwrap_or_default())
}

#[test]
fn answers_are_told_apart_by_code_and_by_the_words_that_codes_hide() {
    let cases = [
        (
            "an absent object",
            json!({"code": 404, "reason": "NotFound", "details": {"name": "x", "kind": "y"}}),
            Class::NotFound,
        ),
        (
            "a path that nobody serves",
            json!({"code": 404, "message": "404 page not found", "reason": "Failed to parse error data"}),
            Class::KindMissing,
        ),
        (
            "a namespace to create in",
            json!({"code": 404, "reason": "NotFound", "details": {"name": "openshift-cnv", "kind": "namespaces"}}),
            Class::NamespaceMissing("openshift-cnv".into()),
        ),
        ("a moved object", json!({"code": 409, "reason": "Conflict", "details": {"name": "x"}}), Class::Conflict),
        ("a version that was forgotten", json!({"code": 410, "reason": "Expired"}), Class::Expired),
        ("a bad value", json!({"code": 422, "reason": "Invalid"}), Class::Invalid),
        (
            "a JSON patch whose test failed",
            json!({"code": 422, "reason": "Invalid", "message": "the server rejected our request due to an error in our request"}),
            Class::Conflict,
        ),
        (
            "an undeclared field, which the server calls its own fault",
            json!({"code": 500, "message": "failed to create typed patch object (...): .spec.nope: field not declared in schema"}),
            Class::UnknownField,
        ),
        (
            "an unknown field under strict validation",
            json!({"code": 400, "message": "strict decoding error: unknown field \"spec.nope\""}),
            Class::UnknownField,
        ),
        (
            "a webhook that says no, with whatever code",
            json!({"code": 403, "message": "admission webhook \"w\" denied the request: no"}),
            Class::WebhookDenied,
        ),
        (
            "a policy that says no",
            json!({"code": 422, "message": "x is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"}),
            Class::PolicyDenied,
        ),
        (
            "a webhook that quotes a policy",
            json!({"code": 403, "message": "admission webhook \"w\" denied the request: see ValidatingAdmissionPolicy 'p'"}),
            Class::WebhookDenied,
        ),
        (
            "a kind that is being removed",
            json!({"code": 405, "reason": "MethodNotAllowed", "message": "create not allowed while custom resource definition is terminating"}),
            Class::KindTerminating,
        ),
        (
            "the same, as an apply is told",
            json!({"code": 403, "reason": "Forbidden", "message": "x is forbidden: create not allowed while custom resource definition is terminating"}),
            Class::KindTerminating,
        ),
        (
            "a webhook that cannot be asked",
            json!({"code": 400, "message": "admission webhook \"w\" does not support dry run"}),
            Class::DryRunUnsupported,
        ),
        (
            "a webhook that is down",
            json!({"code": 500, "message": "Internal error occurred: failed calling webhook \"w\": connection refused"}),
            Class::Busy,
        ),
        ("no rights", json!({"code": 403, "reason": "Forbidden", "message": "cannot patch"}), Class::Forbidden),
        ("nobody we know", json!({"code": 401}), Class::Unauthenticated),
        ("too many requests", json!({"code": 429}), Class::Busy),
        (
            "a kind that was just defined",
            json!({"code": 429, "reason": "TooManyRequests", "message": "storage is (re)initializing", "details": {"retryAfterSeconds": 1}}),
            Class::Initializing,
        ),
        (
            "a kind that was just defined, of another release",
            json!({"code": 503, "message": "storage is (re)initializing"}),
            Class::Initializing,
        ),
        (
            "the words with a code of another meaning",
            json!({"code": 403, "message": "storage is (re)initializing"}),
            Class::Forbidden,
        ),
        ("a server that restarts", json!({"code": 503}), Class::Busy),
        ("a teapot", json!({"code": 418}), Class::Other),
    ];
    for (case, status, expected) in cases {
        assert_eq!(class(status), expected, "{case}");
    }
}

#[test]
fn an_answer_means_the_same_to_a_watch_however_far_that_has_come() {
    let status = || -> Box<Status> { serde_json::from_value(json!({"code": 410, "message": "too old"})).unwrap() };
    let api = || kube::Error::Api(status());
    let cases = [
        (watcher::Error::InitialListFailed(api()), Class::Expired),
        (watcher::Error::WatchStartFailed(api()), Class::Expired),
        (watcher::Error::WatchFailed(api()), Class::Expired),
        (watcher::Error::WatchError(status()), Class::Expired),
        (watcher::Error::NoResourceVersion, Class::Unknown),
    ];
    for (error, class) in cases {
        assert_eq!(RequestError::of_watch("watching".into(), &error).class, class, "{error}");
    }
}

#[test]
fn an_answer_without_words_tells_its_code() {
    let error = kube::Error::Api(Status::failure("", "Failed to parse error data").with_code(401).boxed());
    let told = RequestError::new("reading x".into(), &error).to_string();
    assert_eq!(told, "reading x: the server answered with code 401");
}

#[test]
fn a_login_that_failed_is_not_a_server_that_is_away() {
    for error in [
        kube::Error::Auth(AuthError::ExecPluginFailed),
        kube::Error::Service(Box::new(AuthError::AuthExec("no session".into()))),
    ] {
        assert_eq!(Class::of(&error), Class::Unauthenticated);
        let error = RequestError::new("reading x".into(), &error);
        assert_eq!(error.class, Class::Unauthenticated);
        assert!(error.message.starts_with("the login failed: "), "{error}");
    }
    let away = kube::Error::Service("connection refused".into());
    assert_eq!(RequestError::new("reading x".into(), &away).class, Class::Unknown);
}

#[test]
fn what_a_login_command_was_given_and_has_printed_is_not_told() {
    let output = Output { status: ExitStatus::default(), stdout: b"SECRET".into(), stderr: b"no session".into() };
    let run = AuthError::AuthExecRun { cmd: "login --password SECRET".into(), out: Box::new(output) };
    let key = AuthError::ParseTokenKey(serde_json::from_str::<u8>("\"SECRET\"").unwrap_err());
    for (error, told) in [(run, "no session"), (key, "cannot be read")] {
        let message = RequestError::new("reading x".into(), &kube::Error::Auth(error)).message;
        assert!(message.contains(told) && !message.contains("SECRET"), "{message}");
    }
}

/// W35 (silent take-over): who owns what would be taken over.
#[test]
fn a_conflict_names_the_managers_and_their_fields_in_an_order_of_its_own() {
    let cause = |(manager, field): (&str, &str)| {
        let message = format!("conflict with \"{manager}\" using v1");
        json!({"reason": "FieldManagerConflict", "message": message, "field": field})
    };
    let taken = |manager: &str, fields: &[&str]| TakeOver {
        manager: manager.into(),
        fields: fields.iter().map(|&field| field.to_owned()).collect(),
    };
    let expected =
        vec![taken("argocd", &["spec.mode"]), taken("edit", &["spec.evictionLimits.total", "spec.profiles"])];
    let mut causes = [("edit", ".spec.profiles"), ("argocd", ".spec.mode"), ("edit", ".spec.evictionLimits.total")];
    for _ in 0..causes.len() {
        causes.rotate_left(1);
        let causes: Vec<_> = causes.iter().copied().map(cause).collect();
        let status = json!({"code": 409, "details": {"causes": causes}});
        assert_eq!(class(status), Class::FieldConflict(expected.clone()));
    }
}
