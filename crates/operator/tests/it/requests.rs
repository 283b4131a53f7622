//! Requests end in time and are made once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use advisor::profiles;
use operator::{Class, DrawUpError, Kubernetes, draw_up};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A server that answers every request alike, or never; and how many it got.
async fn server(answer: Option<&'static str>) -> (kube::Config, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    counted.fetch_add(1, Ordering::SeqCst);
                    match answer {
                        Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                        None => std::future::pending().await,
                    }
                }
            });
        }
    });
    (kube::Config::new(url.parse().unwrap()), count)
}

async fn fail(config: kube::Config, deadline: Duration) -> operator::RequestError {
    let kubernetes = Kubernetes::new(config).unwrap().with_deadline(deadline);
    match draw_up(&kubernetes, profiles::find("example-profile").unwrap(), None).await {
        Err(DrawUpError::Request(error)) => error,
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
    let error = fail(config, Duration::from_secs(5)).await;
    assert_eq!(error.class, Class::Busy, "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
