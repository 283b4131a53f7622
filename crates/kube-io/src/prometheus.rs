//! A client of Prometheus, and its answers.

use std::{
    collections::BTreeMap,
    fmt::Display,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{HttpClient, Login, RequestError};

#[derive(Debug, Clone)]
pub struct PrometheusClient(HttpClient);

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
pub struct Series<'a> {
    metric: BTreeMap<String, String>,
    /// Values are numbers, so their texts contain nothing to unescape.
    #[serde(borrow, default)]
    values: Vec<(f64, &'a str)>,
}

impl Series<'_> {
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metric.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn samples(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.values.iter().filter_map(|(time, value)| Some((*time, value.parse().ok()?)))
    }
}

/// Reads the series of a matrix.
pub fn matrix(answer: &str) -> Result<Vec<Series<'_>>, String> {
    let answer: Answer<Results<Vec<Series<'_>>>> = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    answer.data.map(|data| data.result).ok_or(answer.error)
}

impl PrometheusClient {
    /// `component` is the name of the sender.
    pub fn new(url: &str, component: &str, login: Login, timeout: Duration) -> Result<Self, RequestError> {
        HttpClient::connect(format!("Prometheus at {url}"), url, component, login, timeout).map(PrometheusClient)
    }

    /// An error about an answer.
    pub fn failed(&self, what: &str, problem: impl Display) -> RequestError {
        self.0.failed(what, problem)
    }

    async fn get(&self, path: &str, arguments: &[(&str, &str)], what: &str) -> Result<String, RequestError> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(arguments).finish();
        self.0.ask(&format!("/api/v1/{path}?{query}"), what).await
    }

    async fn data<D: DeserializeOwned>(
        &self,
        path: &str,
        arguments: &[(&str, &str)],
        what: &str,
    ) -> Result<D, RequestError> {
        let text = self.get(path, arguments, what).await?;
        let answer: Answer<D> = serde_json::from_str(&text).map_err(|problem| self.failed(what, problem))?;
        match answer.data {
            Some(data) if answer.status == "success" => Ok(data),
            _ => Err(self.failed(what, answer.error)),
        }
    }

    /// The whole answer to a query about now.
    pub async fn query(&self, query: &str) -> Result<Value, RequestError> {
        let answer = self.get("query", &[("query", query)], query).await?;
        let not_json = |problem| self.failed(query, format!("the answer is not JSON: {problem}"));
        serde_json::from_str(&answer).map_err(not_json)
    }

    /// Asks for the time, which is also a test of URL and login.
    pub async fn clock(&self) -> Result<PrometheusClock, RequestError> {
        let before = now();
        let answer: Results<(f64, String)> = self.data("query", &[("query", "time()")], "the time").await?;
        let ours = (before + now()) / 2.0;
        let now: f64 = answer.result.1.parse().map_err(|problem| self.failed("the time", problem))?;
        Ok(PrometheusClock { now, ahead_seconds: now - ours })
    }

    /// The value of a query without labels at a time. None if it has none.
    pub async fn number(&self, query: &str, time: u64) -> Result<Option<f64>, RequestError> {
        let time = time.to_string();
        let answer: Results<Vec<Single>> = self.data("query", &[("query", query), ("time", &time)], query).await?;
        Ok(answer.result.first().and_then(|single| single.value.1.parse().ok()))
    }

    /// The raw text of a range of samples of a selector, up to a time.
    pub async fn raw(&self, query: &str, time: u64) -> Result<String, RequestError> {
        self.get("query", &[("query", query), ("time", &time.to_string())], query).await
    }

    pub async fn range(&self, query: &str, start: u64, end: u64, step: u64) -> Result<String, RequestError> {
        let [start, end, step] = [start, end, step].map(|number| number.to_string());
        self.get("query_range", &[("query", query), ("start", &start), ("end", &end), ("step", &step)], query).await
    }

    /// The label sets of all series of a selector that had a sample in this time.
    pub async fn series(
        &self,
        selector: &str,
        start: u64,
        end: u64,
    ) -> Result<Vec<BTreeMap<String, String>>, RequestError> {
        let [start, end] = [start, end].map(|number| number.to_string());
        self.data("series", &[("match[]", selector), ("start", &start), ("end", &end)], selector).await
    }
}

/// Seconds since 1970 by the clock of this machine.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |passed| passed.as_secs_f64())
}
