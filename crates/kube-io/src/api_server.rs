//! Requests as values: each has a deadline, none is repeated automatically, and an error says what was being done.

use std::{sync::Arc, time::Duration};

use http::{Method, Request};
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::Instant;

use crate::{Class, Observer, RequestError, connect, extra_time::ExtraTime, within_deadline};

/// On a slow way to the API server requests are given more time than this and than the next one.
const READ_DEADLINE: Duration = Duration::from_secs(10);
/// Changes and their dry runs go through admission webhooks, which have ten seconds each.
const CHANGE_DEADLINE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct ApiServer {
    client: Client,
    watch_client: Client,
    read_deadline: Duration,
    change_deadline: Duration,
    extra_time: Arc<ExtraTime>,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiServer")
    }
}

impl ApiServer {
    /// `component` is the name of the sender in the API server's audit log.
    pub fn new(config: Config, component: &str) -> Result<Self, RequestError> {
        ApiServer::observed(config, component, Arc::new(()))
    }

    /// The same, with an observer of all requests and watches.
    pub fn observed(config: Config, component: &str, observer: Arc<dyn Observer>) -> Result<Self, RequestError> {
        let failed = |error: kube::Error| RequestError::new("connecting to the API server".into(), &error);
        let watch_client = connect::watch_client(config.clone(), component, observer.clone()).map_err(failed)?;
        let client = connect::observed_client(config, component, observer).map_err(failed)?;
        Ok(ApiServer { watch_client, ..ApiServer::over(client) })
    }

    /// Uses a client that repeats no request.
    pub fn over(client: Client) -> Self {
        let (read_deadline, change_deadline) = (READ_DEADLINE, CHANGE_DEADLINE);
        ApiServer { watch_client: client.clone(), client, read_deadline, change_deadline, extra_time: Arc::default() }
    }

    /// The same with another deadline for every request.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        ApiServer { read_deadline: deadline, change_deadline: deadline, ..self }
    }

    /// How long a read and a change may take.
    pub fn deadlines(&self) -> (Duration, Duration) {
        (self.read_deadline, self.change_deadline)
    }

    /// The same over the connections of watches, where none that other requests have left behind is met.
    pub fn apart(&self) -> Self {
        ApiServer { client: self.watch_client.clone(), ..self.clone() }
    }

    /// The same with deadlines that depend only on its own requests: those of others may be quicker or slower by nature.
    pub fn detached(&self) -> Self {
        ApiServer { extra_time: Arc::default(), ..self.clone() }
    }

    /// For requests whose answers are not JSON. The caller sets a deadline.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The client for watches.
    pub fn watch_client(&self) -> &Client {
        &self.watch_client
    }

    pub async fn get(&self, uri: String, doing: String) -> Result<Value, RequestError> {
        self.send(Request::get(uri).body(Vec::new()), self.read_deadline, doing).await
    }

    /// Sends a request with a body. `content` is its media type.
    pub async fn send_body(
        &self,
        method: Method,
        uri: String,
        content: &str,
        body: &Value,
        doing: String,
    ) -> Result<Value, RequestError> {
        let request = Request::builder().method(method).uri(uri).header(http::header::CONTENT_TYPE, content);
        self.send(request.body(body.to_string().into_bytes()), self.change_deadline, doing).await
    }

    async fn send(
        &self,
        request: http::Result<Request<Vec<u8>>>,
        deadline: Duration,
        doing: String,
    ) -> Result<Value, RequestError> {
        let request = request.map_err(|error| RequestError::other(doing.clone(), error.to_string(), Class::Other))?;
        let (allowed, start) = (self.extra_time.get(), Instant::now());
        let deadline = ExtraTime::added_to(deadline, allowed);
        match within_deadline(deadline, &doing, self.client.request::<Value>(request)).await {
            Ok(Ok(value)) => {
                self.extra_time.answered(start.elapsed());
                Ok(value)
            }
            Ok(Err(error)) => {
                if matches!(error, kube::Error::Api(_)) {
                    self.extra_time.answered(start.elapsed());
                }
                Err(RequestError::new(doing, &error))
            }
            Err(late) => {
                self.extra_time.missed(allowed);
                Err(late)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use http::Response;
    use kube::client::Body;
    use tower::{BoxError, service_fn};

    use super::*;

    /// An API server that answers after so many seconds.
    fn slow(seconds: &Arc<AtomicU64>) -> ApiServer {
        let seconds = seconds.clone();
        let service = service_fn(move |_: Request<Body>| {
            let wait = Duration::from_secs(seconds.load(Ordering::Relaxed));
            async move {
                tokio::time::sleep(wait).await;
                Ok::<_, BoxError>(Response::new(Body::from(b"{}".to_vec())))
            }
        });
        ApiServer::over(Client::new(service, "default"))
    }

    /// Found with delays of 3 s on the way: every request was given up before its answer came. A new connection and a request take
    /// 12 s at 3 s per direction, 40 s at 10 s, and 80 s where names and certificates are slow too.
    #[tokio::test(start_paused = true)]
    async fn a_slow_way_makes_requests_slower_and_does_not_stop_them() {
        let get = async |server: &ApiServer| server.get("/x".into(), "reading x".into()).await;
        for (seconds, attempts) in [(0, 1), (9, 1), (12, 2), (40, 4), (80, 5)] {
            let wait = Arc::new(AtomicU64::new(seconds));
            let server = slow(&wait);
            let mut needed = 1;
            while get(&server).await.is_err() {
                needed += 1;
                assert!(needed <= 6, "never answered in {seconds} s");
            }
            assert_eq!(needed, attempts, "{seconds} s");
            assert!(get(&server).await.is_ok(), "what was measured is remembered");
            wait.store(0, Ordering::Relaxed);
            assert!(get(&server).await.is_ok());
            wait.store(1000, Ordering::Relaxed);
            let start = Instant::now();
            assert_eq!(get(&server).await.unwrap_err().message, "no answer within 10 s", "it is quick again");
            assert_eq!(start.elapsed(), READ_DEADLINE);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_detached_one_misses_gives_the_others_no_more_time() {
        let server = slow(&Arc::new(AtomicU64::new(1000)));
        let detached = server.detached().with_deadline(Duration::from_secs(4));
        let message = async |server: &ApiServer| server.get("/x".into(), "reading x".into()).await.unwrap_err().message;
        assert_eq!(message(&detached).await, "no answer within 4 s");
        assert_eq!(message(&detached).await, "no answer within 14 s");
        assert_eq!(message(&server).await, "no answer within 10 s");
    }
}
