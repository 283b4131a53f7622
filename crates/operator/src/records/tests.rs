//! What becomes of records whose configuration was deleted.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::{Client, client::Body};
use tower::service_fn;

use super::*;

/// A record of a configuration, finished or not.
fn record(number: u32, config: &str, is_finished: bool) -> Value {
    let finished = is_finished.then_some("2026-01-05T09:00:00Z");
    json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord",
        "metadata": {"name": format!("example-profile-{number}")},
        "spec": {
            "profile": "example-profile", "configUid": config, "generation": 1, "planDigest": "d", "operatorVersion": "v1",
            "startedAt": "2026-01-05T08:00:00Z", "impactSeverity": "Low",
        },
        "status": {"finishedAt": finished},
    })
}

/// An API server that lists these records, or answers with an error; and the paths of all writes.
fn server(code: u16, records: Vec<Value>) -> (ApiServer, Arc<Mutex<Vec<String>>>) {
    let written: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = written.clone();
    let answer = move |request: Request<Body>| {
        let (code, body) = match *request.method() {
            Method::GET if code == 200 => (200, json!({"items": records})),
            Method::GET => (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "no"})),
            _ => {
                noted.lock().unwrap().push(request.uri().path().to_owned());
                (200, json!({}))
            }
        };
        let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        async move { response }
    };
    (ApiServer::over(Client::new(service_fn(answer), "default")), written)
}

/// Found by a random schedule: the record of a plan stayed open when the configuration was deleted meanwhile.
#[tokio::test]
async fn open_records_of_other_configurations_are_closed() {
    let records = || vec![record(1, "old", true), record(2, "old", false), record(3, "new", false)];
    for (config, closed) in [(None, vec![2, 3]), (Some("new"), vec![2]), (Some("newer"), vec![2, 3])] {
        let (api_server, written) = server(200, records());
        close_abandoned(&api_server, "example-profile", config, Timestamp::UNIX_EPOCH).await.unwrap();
        let expected: Vec<String> =
            closed.iter().map(|number| path(&format!("/example-profile-{number}/status"))).collect();
        assert_eq!(*written.lock().unwrap(), expected, "{config:?}");
    }
}

#[tokio::test]
async fn only_what_may_pass_by_itself_is_tried_again() {
    for (code, is_tried_again) in [(500, true), (429, true), (403, false), (404, false)] {
        let (api_server, _) = server(code, Vec::new());
        let result = close_abandoned(&api_server, "example-profile", None, Timestamp::UNIX_EPOCH).await;
        assert_eq!(result.is_err(), is_tried_again, "{code}");
    }
}
