//! A client for the HTTP servers of others: Prometheus and the descheduler.

use std::{fmt, time::Duration};

use kube::{Client, Config};
use kube_io::connect;
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;

/// The component of the client in the header `User-Agent`.
const COMPONENT: &str = "lab";

#[derive(Debug, Error)]
#[error("asking {url} for {what}: {problem}")]
pub struct HttpError {
    url: String,
    what: String,
    problem: String,
}

/// A client of one server.
#[derive(Clone)]
pub struct HttpClient {
    url: String,
    client: Client,
    timeout: Duration,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpClient({})", self.url)
    }
}

impl HttpClient {
    /// `certificate` is the one to trust, in DER, if the URL is one of HTTPS.
    pub fn new(url: &str, certificate: Option<Vec<u8>>, timeout: Duration) -> Result<HttpClient, HttpError> {
        let fail = |problem: String| HttpError { url: url.to_owned(), what: "anything".to_owned(), problem };
        let mut config = Config::new(url.parse().map_err(|problem| fail(format!("this is no URL: {problem}")))?);
        config.root_cert = certificate.map(|certificate| vec![certificate]);
        let client = connect::client(config, COMPONENT).map_err(|problem| fail(problem.to_string()))?;
        Ok(HttpClient { url: url.to_owned(), client, timeout })
    }

    /// The body of a successful answer to `GET path`.
    pub async fn get(&self, path: &str) -> Result<String, HttpError> {
        let fail = |problem: String| HttpError { url: self.url.clone(), what: path.to_owned(), problem };
        let request = http::Request::get(path).body(Vec::new()).map_err(|problem| fail(problem.to_string()))?;
        match timeout(self.timeout, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(|problem| fail(problem.to_string())),
            Err(_) => Err(fail(format!("no answer within {:?}", self.timeout))),
        }
    }

    /// The answer of Prometheus to an instant query.
    pub async fn query(&self, query: &str) -> Result<Value, HttpError> {
        let encoded: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer = self.get(&format!("/api/v1/query?query={encoded}")).await?;
        serde_json::from_str(&answer).map_err(|problem| HttpError {
            url: self.url.clone(),
            what: query.to_owned(),
            problem: format!("the answer is not JSON: {problem}"),
        })
    }
}
