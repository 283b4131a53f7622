//! Requests have a time limit and are not repeated by the client library.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use advisor::profiles;
use kube_io::{ApiServer, Class};
use operator::{PlanError, make_plan};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A server with one answer to every request, or none; and the number of requests.
async fn server(answer: Option<&'static str>) -> (kube::Config, Arc<AtomicUsize>) {
    server_that(move |_, _| answer.map(str::to_owned)).await
}

/// A server whose answer depends on the number of requests before and on the request; and the number of requests.
async fn server_that(
    answer: impl Fn(usize, &str) -> Option<String> + Send + Sync + 'static,
) -> (kube::Config, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, answer) = (count.clone(), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (counted, answer) = (counted.clone(), answer.clone());
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Some(read) = stream.read(&mut buffer).await.ok().filter(|read| *read > 0) {
                    let request = String::from_utf8_lossy(&buffer[..read]);
                    match answer(counted.fetch_add(1, Ordering::SeqCst), &request) {
                        Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                        None => std::future::pending().await,
                    }
                }
            });
        }
    });
    (kube::Config::new(url.parse().unwrap()), count)
}

async fn fail(config: kube::Config, deadline: Duration) -> kube_io::RequestError {
    let kubernetes = ApiServer::new(config, "test").unwrap().with_deadline(deadline);
    match make_plan(&kubernetes, profiles::find("example-profile").unwrap(), None).await {
        Err(PlanError::Request(error)) => error,
        other => panic!("expected an error of the request, got {other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_on() {
    let (config, _) = server(None).await;
    let error = fail(config, Duration::from_millis(100)).await;
    assert_eq!(error.class, Class::Unknown);
    assert!(error.class.is_transient());
    assert!(
        error.to_string().starts_with("reading ConfigMap openshift-cnv/example-config: no answer within"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_once_and_not_again_behind_our_back() {
    let busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
    let (config, count) = server(Some(busy)).await;
    assert!(config.default_retry, "what the client would do if we let it");
    let error = fail(config, Duration::from_secs(60)).await;
    assert_eq!(error.class, Class::Busy, "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_kind_that_was_just_defined_is_asked_for_again_until_it_is_served() {
    let answer = |status: &str, body: serde_json::Value| {
        let body = body.to_string();
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let failure = |code: u16, reason: &str, message: &str| {
        let details = json!({"name": "example-config", "retryAfterSeconds": 1});
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, "details": details})
    };
    let (config, count) = server_that(move |before, request| {
        Some(match before {
            0..3 => answer("429 Too Many Requests", failure(429, "TooManyRequests", "storage is (re)initializing")),
            _ if request.starts_with("GET ") => answer("404 Not Found", failure(404, "NotFound", "it is not there")),
            _ => answer("200 OK", json!({"kind": "ConfigMap", "metadata": {"name": "example-config"}})),
        })
    })
    .await;
    let kubernetes = ApiServer::new(config, "test").unwrap();
    let plan = make_plan(&kubernetes, profiles::find("example-profile").unwrap(), None).await.unwrap();
    assert_eq!(plan.items.len(), 1);
    assert_eq!(count.load(Ordering::SeqCst), 5, "three in vain, one to look and one to preview");
}
