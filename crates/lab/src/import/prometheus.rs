//! A client of Prometheus, and its answers.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kube::Client;
use kube_io::{Login, connect};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::timeout;

use crate::{COMPONENT, Error};

/// Prometheus itself gives up after two minutes.
const TIMEOUT: Duration = Duration::from_secs(130);

#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct PrometheusClient {
    url: String,
    client: Client,
}

/// The time by the clock of Prometheus, and how far ahead of ours it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrometheusClock {
    pub now: f64,
    pub ahead_seconds: f64,
}

#[derive(Deserialize)]
struct Answer<D> {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<D>,
}

#[derive(Deserialize)]
struct Results<R> {
    result: R,
}

#[derive(Deserialize)]
struct Single {
    value: (f64, String),
}

/// The samples of one series.
#[derive(Debug, Deserialize)]
pub(super) struct Series<'a> {
    metric: BTreeMap<String, String>,
    /// Values are numbers, so their texts contain nothing to unescape.
    #[serde(borrow, default)]
    values: Vec<(f64, &'a str)>,
}

impl Series<'_> {
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.metric.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn samples(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.values.iter().filter_map(|(time, value)| Some((*time, value.parse().ok()?)))
    }
}

/// Reads the series of a matrix.
pub(super) fn matrix(answer: &str) -> Result<Vec<Series<'_>>, String> {
    let answer: Answer<Results<Vec<Series<'_>>>> = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    answer.data.map(|data| data.result).ok_or(answer.error)
}

impl PrometheusClient {
    pub fn new(url: &str, login: Login) -> Result<Self, Error> {
        let fail = |problem: String| Error::Asset(format!("connecting to Prometheus at {url}: {problem}"));
        let config = login.config(url).map_err(|problem| fail(problem.to_string()))?;
        let client = connect::client(config, COMPONENT).map_err(|problem| fail(problem.to_string()))?;
        Ok(PrometheusClient { url: url.to_owned(), client })
    }

    pub(super) fn failed(&self, what: &str, problem: impl std::fmt::Display) -> Error {
        Error::Asset(format!("asking Prometheus at {} for {what}: {problem}", self.url))
    }

    async fn get(&self, path: &str, arguments: &[(&str, &str)], what: &str) -> Result<String, Error> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(arguments);
        let request = http::Request::get(format!("/api/v1/{path}?{}", query.finish())).body(Vec::new());
        let request = request.map_err(|problem| self.failed(what, problem))?;
        match timeout(TIMEOUT, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(|problem| self.failed(what, hint(&problem))),
            Err(_) => Err(self.failed(what, format!("no answer within {} s", TIMEOUT.as_secs()))),
        }
    }

    async fn data<D: DeserializeOwned>(&self, path: &str, arguments: &[(&str, &str)], what: &str) -> Result<D, Error> {
        let text = self.get(path, arguments, what).await?;
        let answer: Answer<D> = serde_json::from_str(&text).map_err(|problem| self.failed(what, problem))?;
        match answer.data {
            Some(data) if answer.status == "success" => Ok(data),
            _ => Err(self.failed(what, answer.error)),
        }
    }

    /// Asks for the time, which is also a test of URL and login.
    pub async fn clock(&self) -> Result<PrometheusClock, Error> {
        let before = Timestamp::now().as_millisecond();
        let answer: Results<(f64, String)> = self.data("query", &[("query", "time()")], "the time").await?;
        let ours = (before + Timestamp::now().as_millisecond()) as f64 / 2000.0;
        let now: f64 = answer.result.1.parse().map_err(|problem| self.failed("the time", problem))?;
        Ok(PrometheusClock { now, ahead_seconds: now - ours })
    }

    /// The value of a query without labels at a time. None if it has none.
    pub(super) async fn number(&self, query: &str, time: u64) -> Result<Option<f64>, Error> {
        let time = time.to_string();
        let answer: Results<Vec<Single>> = self.data("query", &[("query", query), ("time", &time)], query).await?;
        Ok(answer.result.first().and_then(|single| single.value.1.parse().ok()))
    }

    /// The raw text of a range of samples of a selector, up to a time.
    pub(super) async fn raw(&self, query: &str, time: u64) -> Result<String, Error> {
        self.get("query", &[("query", query), ("time", &time.to_string())], query).await
    }

    pub(super) async fn range(&self, query: &str, start: u64, end: u64, step: u64) -> Result<String, Error> {
        let [start, end, step] = [start, end, step].map(|number| number.to_string());
        self.get("query_range", &[("query", query), ("start", &start), ("end", &end), ("step", &step)], query).await
    }

    /// The label sets of all series of a selector that had a sample in this time.
    pub(super) async fn series(
        &self,
        selector: &str,
        start: u64,
        end: u64,
    ) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let [start, end] = [start, end].map(|number| number.to_string());
        self.data("series", &[("match[]", selector), ("start", &start), ("end", &end)], selector).await
    }
}

/// What to do about an answer that says no.
fn hint(problem: &kube::Error) -> String {
    match problem {
        kube::Error::Api(status) if [401, 403].contains(&status.code) => {
            format!("{problem}; a token that may read metrics is given with --prometheus-token-file")
        }
        problem => problem.to_string(),
    }
}
