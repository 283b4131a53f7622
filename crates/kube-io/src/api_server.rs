//! Requests as values: each has a deadline, none is repeated automatically, and an error says what was being done.

use std::time::Duration;

use http::{Method, Request};
use kube::{Client, Config};
use serde_json::Value;

use crate::{Class, RequestError, connect};

const READ_DEADLINE: Duration = Duration::from_secs(10);
/// Changes and their dry runs go through admission webhooks, which have ten seconds each.
const CHANGE_DEADLINE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct ApiServer {
    client: Client,
    read_deadline: Duration,
    change_deadline: Duration,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiServer")
    }
}

impl ApiServer {
    /// `component` is the name of the sender in the API server's audit log.
    pub fn new(config: Config, component: &str) -> Result<Self, RequestError> {
        let client = connect::client(config, component);
        let client = client.map_err(|error| RequestError::new("connecting to the API server".into(), &error))?;
        Ok(ApiServer::over(client))
    }

    /// Uses a client that repeats no request.
    pub fn over(client: Client) -> Self {
        ApiServer { client, read_deadline: READ_DEADLINE, change_deadline: CHANGE_DEADLINE }
    }

    /// The same with another deadline for every request.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        ApiServer { read_deadline: deadline, change_deadline: deadline, ..self }
    }

    pub fn client(&self) -> &Client {
        &self.client
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
        match tokio::time::timeout(deadline, self.client.request::<Value>(request)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(RequestError::new(doing, &error)),
            Err(_) => Err(RequestError::timed_out(doing, deadline.as_secs())),
        }
    }
}
