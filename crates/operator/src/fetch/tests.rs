//! How many reads are under way at a time, and what becomes of those that fail.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use advisor::kind::MACHINE_CONFIG;
use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::service_fn;

use super::*;

/// How many requests came, how many are under way, and how many were under way at most.
#[derive(Default)]
struct Seen {
    all: AtomicUsize,
    current: AtomicUsize,
    most: AtomicUsize,
}

/// An API server that takes a second for each answer: the config of that name, or an error if its name has these words.
fn server(broken: &'static str) -> (ApiServer, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let counted = seen.clone();
    let answer = move |request: Request<Body>| {
        let (seen, path) = (counted.clone(), request.uri().path().to_owned());
        async move {
            seen.all.fetch_add(1, Ordering::SeqCst);
            seen.most.fetch_max(seen.current.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
            seen.current.fetch_sub(1, Ordering::SeqCst);
            let (code, body) = match path.contains(broken) {
                true => (500, json!({"kind": "Status", "status": "Failure", "code": 500, "message": "broken"})),
                false => (200, config(path.rsplit('/').next().unwrap_or_default())),
            };
            Response::builder().status(code).body(Body::from(body.to_string().into_bytes()))
        }
    };
    (ApiServer::over(Client::new(service_fn(answer), "default")), seen)
}

fn config(name: &str) -> Value {
    json!({"kind": "MachineConfig", "metadata": {"name": name}, "spec": {"kernelArguments": ["quiet"]}})
}

fn queries(count: usize) -> Vec<Query> {
    let config = |number| Query::Optional(ObjectRef::cluster(&MACHINE_CONFIG, format!("{number:03}-config")));
    (0..count).map(config).collect()
}

#[tokio::test(start_paused = true)]
async fn not_all_reads_are_under_way_at_once() {
    let (api_server, seen) = server("none");
    let (mut facts, queries) = (Facts::default(), queries(100));
    answer_all(&api_server, queries.clone(), &mut facts).await.unwrap();
    assert_eq!(facts.unanswered(queries), []);
    assert_eq!((seen.all.load(Ordering::SeqCst), seen.most.load(Ordering::SeqCst)), (100, AT_A_TIME));
}

#[tokio::test(start_paused = true)]
async fn one_config_that_cannot_be_read_is_the_only_one_that_is_not_known() {
    let (api_server, seen) = server("007-config");
    let (mut facts, queries) = (Facts::default(), queries(100));
    let error = answer_some(&api_server, queries.clone(), &mut facts).await.unwrap();
    assert_eq!((error.doing.as_str(), error.message.as_str()), ("reading MachineConfig 007-config", "broken"));
    assert_eq!(facts.unanswered(queries.clone()), [queries[7].clone()]);
    assert_eq!(seen.most.load(Ordering::SeqCst), AT_A_TIME);
    let all = answer_all(&api_server, queries, &mut Facts::default()).await;
    assert_eq!(all.map_err(|error| error.message), Err("broken".to_owned()), "a plan needs all of them");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_in_trouble_is_not_asked_on_and_on() {
    let (api_server, seen) = server("config");
    let mut facts = Facts::default();
    assert!(answer_some(&api_server, queries(100), &mut facts).await.is_some());
    assert_eq!(facts.unanswered(queries(100)).len(), 100);
    let asked = seen.all.load(Ordering::SeqCst);
    assert!(asked < 2 * AT_A_TIME, "{asked}");
}
