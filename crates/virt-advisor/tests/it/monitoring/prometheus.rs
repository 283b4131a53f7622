//! A real Prometheus with the rules of the operator, their times shortened, which scrapes the operator.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use advisor::monitoring::{AlertSettings, alerts::rule_file};
use devcluster::{Cluster, Component};
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::{poll, within};

/// How many times shorter all times of the alerts are: 5 minutes are half a second, one hour is six.
const SPEED: u32 = 600;
const LIMIT: Duration = Duration::from_secs(180);
/// By then the operator was scraped once more.
const SCRAPED: Duration = Duration::from_secs(2);

/// The component of a cluster, with an operator whose metrics are at this address.
pub(super) fn component(operator: &str) -> devcluster::Prometheus {
    let scrape = json!({
        "job_name": "virt-advisor-operator-metrics",
        "static_configs": [{"targets": [operator], "labels": {"namespace": "openshift-cnv"}}],
    });
    let config = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [scrape],
    });
    let rules = rule_file(&AlertSettings { speed: SPEED, ..AlertSettings::default() });
    devcluster::Prometheus {
        config: config.to_string(),
        rules: vec![("alerts.yml".to_owned(), rules)],
        ..devcluster::Prometheus::default()
    }
}

/// A series of an answer: its labels and its value.
pub(super) type Series = (BTreeMap<String, String>, f64);

pub(super) struct Server(String);

impl Server {
    pub(super) fn of(cluster: &Cluster) -> Server {
        Server(cluster.address(Component::Prometheus).unwrap())
    }

    /// The `data` of an answer, or the error of the server.
    fn ask(&self, path: &str) -> Result<Value, String> {
        let mut stream = TcpStream::connect(&self.0).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.0).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        if !head.contains(" 200 ") {
            return Err(format!("{path}: {answer}"));
        }
        Ok(serde_json::from_str::<Value>(body).unwrap()["data"].take())
    }

    /// The current series of a query.
    pub(super) fn query(&self, query: &str) -> Result<Vec<Series>, String> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let data = self.ask(&format!("/api/v1/query?query={encoded}"))?;
        let series = |series: &Value| {
            let labels = series["metric"].as_object().unwrap().iter();
            let labels = labels.map(|(label, value)| (label.clone(), value.as_str().unwrap().to_owned())).collect();
            (labels, series["value"][1].as_str().unwrap().parse().unwrap())
        };
        Ok(data["result"].as_array().unwrap().iter().map(series).collect())
    }

    /// The alerts that fire now.
    pub(super) fn firing(&self) -> Vec<Value> {
        let data = self.ask("/api/v1/alerts").unwrap();
        data["alerts"].as_array().unwrap().iter().filter(|alert| alert["state"] == "firing").cloned().collect()
    }

    /// Whether all rules were evaluated after a time.
    fn is_evaluated_since(&self, time: Timestamp) -> bool {
        let data = self.ask("/api/v1/rules").unwrap();
        let groups = data["groups"].as_array().unwrap();
        let since = |group: &Value| {
            let last = group["lastEvaluation"].as_str().and_then(|last| last.parse::<Timestamp>().ok());
            last.is_some_and(|last| last > time)
        };
        !groups.is_empty() && groups.iter().all(since)
    }

    /// Waits until exactly these alerts fire, and returns them. Nothing is concluded before the rules were evaluated on what was
    /// scraped since.
    pub(super) async fn until_firing(&self, names: &[&str]) -> Vec<Value> {
        let now = Timestamp::now();
        let fire = async || {
            if !self.is_evaluated_since(now + SCRAPED) {
                return Err("the rules are not evaluated".to_owned());
            }
            let firing = self.firing();
            let mut found: Vec<&str> =
                firing.iter().map(|alert| alert["labels"]["alertname"].as_str().unwrap()).collect();
            found.sort_unstable();
            if found == names { Ok(firing) } else { Err(format!("{found:?} fire and not {names:?}: {firing:#?}")) }
        };
        poll(LIMIT, fire).await.unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// Waits until a query has a result.
    pub(super) async fn until_result(&self, query: &str) -> Vec<Series> {
        let found = async || Some(self.query(query).unwrap()).filter(|found| !found.is_empty());
        within(LIMIT, format!("{query} has a result"), found).await
    }

    /// Every rule was evaluated without an error.
    pub(super) fn assert_rules_are_healthy(&self) {
        let data = self.ask("/api/v1/rules").unwrap();
        let rules: Vec<&Value> =
            data["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
        assert_eq!(rules.len(), advisor::monitoring::ALERTS.len());
        for rule in rules {
            assert_eq!(rule["health"], "ok", "{rule:#}");
        }
    }
}
