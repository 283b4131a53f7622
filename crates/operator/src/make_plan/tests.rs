//! Which errors are waited for while a plan is made.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use advisor::profiles;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

const INITIALIZES: &str = "storage is (re)initializing";

/// An API server without objects whose first answers to one method are errors; and how many of them it gave.
fn server(unhappy: usize, method: Method, code: u16, message: &'static str) -> (ApiServer, Arc<AtomicUsize>) {
    let given = Arc::new(AtomicUsize::new(0));
    let count = given.clone();
    let answer = move |request: Request<Body>| {
        let is_unhappy = request.method() == method && count.load(Ordering::SeqCst) < unhappy;
        let (code, body) = match (is_unhappy, request.method()) {
            (true, _) => {
                count.fetch_add(1, Ordering::SeqCst);
                (code, failure(code, message))
            }
            (false, &Method::GET) => (404, failure(404, "not found")),
            (false, _) => (200, json!({"kind": "ConfigMap", "metadata": {"name": "example-config"}})),
        };
        let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        async move { response }
    };
    (ApiServer::over(Client::new(service_fn(answer), "default")), given)
}

fn failure(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "message": message, "details": {"name": "it"}})
}

async fn plan(api_server: &ApiServer) -> Result<Plan, PlanError> {
    make_plan(api_server, profiles::find("example-profile").unwrap(), None).await
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_just_defined_is_waited_for_a_moment() {
    for (method, code) in [(Method::GET, 429), (Method::GET, 503), (Method::PATCH, 429)] {
        let (api_server, given) = server(4, method.clone(), code, INITIALIZES);
        let start = Instant::now();
        let plan = plan(&api_server).await;
        assert_eq!(plan.map(|plan| plan.items.len()), Ok(1), "{method} {code}");
        assert_eq!((given.load(Ordering::SeqCst), start.elapsed()), (4, 4 * PAUSE), "{method} {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_never_served_is_given_up_on_with_the_words_of_the_server() {
    let (api_server, given) = server(usize::MAX, Method::GET, 429, INITIALIZES);
    let start = Instant::now();
    let Err(PlanError::Request(error)) = plan(&api_server).await else { panic!("there is no plan") };
    assert_eq!((error.class, error.message.as_str()), (Class::Initializing, INITIALIZES));
    assert!(start.elapsed() <= INITIALIZING, "{:?}", start.elapsed());
    assert_eq!(given.load(Ordering::SeqCst), 21);
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_waited_for() {
    for (code, message) in [(429, "too many requests"), (503, "unavailable"), (500, INITIALIZES), (403, "no")] {
        let (api_server, given) = server(usize::MAX, Method::GET, code, message);
        assert!(matches!(plan(&api_server).await, Err(PlanError::Request(_))), "{code} {message}");
        assert_eq!(given.load(Ordering::SeqCst), 1, "{code} {message}");
    }
}
