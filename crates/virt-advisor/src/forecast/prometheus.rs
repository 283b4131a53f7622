//! What Prometheus knows of a cluster: the spread of load over nodes, evictions, and what migrations have sent.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::config::AuthInfo;
use kube_io::{Login, prometheus::PrometheusClient};
use serde_json::Value;

use super::observe::{EndedMigration, VmNode};

/// The CPU use of nodes: by the rules of the lab, by those of the descheduler's operator, or by what nodes export.
const USES: [&str; 3] = [
    "descheduler:node:cpu_usage:avg1m{NODES}",
    "descheduler:nodeutilization:cpu:avg1m{NODES}",
    "1 - avg by (instance) (rate(node_cpu_seconds_total{mode=\"idle\",NODES}[1m]))",
];
const EVICTED: &str = "sum(descheduler_pods_evicted_total{result=\"success\"})";
/// What migrations have sent, and what they have left to send. They are known while a migration runs.
const PROCESSED: &str = "kubevirt_vmi_migration_data_processed_bytes";
const REMAINING: &str = "kubevirt_vmi_migration_data_remaining_bytes";
/// Prometheus gives no more points of a series at once.
const MOST_POINTS: i64 = 10_000;
/// The names of nodes in a query have no more characters than this, because a query is a part of a URL.
const LONGEST_NAMES: usize = 3000;
/// The time limit of a query.
const DEADLINE: Duration = Duration::from_secs(10);

pub(super) type Points = Vec<(Timestamp, f64)>;

/// How to reach Prometheus.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PrometheusArgs {
    /// The Prometheus with the loads, such as https://thanos-querier.example.com
    #[arg(long, value_name = "URL")]
    pub(super) prometheus: Option<String>,
    /// A file with a token for Prometheus [default: the token of the kubeconfig, if the URL is one of https]
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub(super) prometheus_token_file: Option<PathBuf>,
    /// A file with the CA of Prometheus, in PEM [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub(super) prometheus_ca: Option<PathBuf>,
}

/// The spread of CPU use over time.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) points: Points,
    /// How many nodes were measured at the end.
    pub(super) nodes: usize,
}

/// A client of Prometheus.
pub(super) struct Prometheus(PrometheusClient);

impl Prometheus {
    /// `user` is the user of the kubeconfig, whose token is taken where no other one is named.
    pub(super) fn connect(url: &str, args: &PrometheusArgs, user: &AuthInfo) -> anyhow::Result<Self> {
        let login = Login::from_files(args.prometheus_token_file.as_deref(), args.prometheus_ca.as_deref())?;
        Ok(Prometheus(PrometheusClient::new(url, "forecast", login.or_user(url, user), DEADLINE)?))
    }

    /// The spread of CPU use over the nodes that take virtual machines, which is the spread that a forecast tells.
    pub(super) async fn spread(&self, nodes: &[VmNode], from: Timestamp, to: Timestamp) -> Result<Spread, String> {
        let parts = matchers(nodes);
        for query in USES {
            let found = self.spread_by(query, &parts, from, to).await?;
            if !found.points.is_empty() {
                return Ok(found);
            }
        }
        Err("the spread of load: Prometheus has no CPU use of the nodes that take virtual machines".to_owned())
    }

    /// Nodes are asked for in parts. Their numbers, sums and squares add up, which deviations do not.
    async fn spread_by(&self, query: &str, parts: &[String], from: Timestamp, to: Timestamp) -> Result<Spread, String> {
        let mut moments = BTreeMap::<Timestamp, (usize, [f64; 3])>::new();
        for part in parts {
            let used = query.replace("NODES", part);
            for (at, query) in
                [format!("count({used})"), format!("sum({used})"), format!("sum(({used})^2)")].iter().enumerate()
            {
                let points = self.range(query, from, to).await?;
                if points.is_empty() {
                    return Ok(Spread { points, nodes: 0 });
                }
                for (time, value) in points {
                    let (answers, sums) = moments.entry(time).or_default();
                    *answers += 1;
                    sums[at] += value;
                }
            }
        }
        moments.retain(|_, (answers, sums)| *answers == 3 * parts.len() && sums[0] >= 1.0);
        let nodes = moments.last_key_value().map_or(0, |(_, (_, [count, ..]))| *count as usize);
        let sigma = |[count, sum, squares]: [f64; 3]| (squares / count - (sum / count).powi(2)).max(0.0).sqrt();
        Ok(Spread { points: moments.into_iter().map(|(time, (_, sums))| (time, sigma(sums))).collect(), nodes })
    }

    /// The number of evictions over time.
    pub(super) async fn evictions(&self, from: Timestamp, to: Timestamp) -> Result<Points, String> {
        let found = self.range(EVICTED, from, to).await?;
        if found.is_empty() { Err("Prometheus has no evictions of the descheduler".to_owned()) } else { Ok(found) }
    }

    /// When migrations ended, and the bytes that each sent: what it had sent and had left when Prometheus saw it last. It must have
    /// seen all of them, because those that it has not seen are the short ones.
    pub(super) async fn bytes(
        &self,
        migrations: &[EndedMigration],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Points, String> {
        let step = step(from, to);
        let last = |metric: &str| format!("sum by (namespace, name) (last_over_time({metric}[{step}s]))");
        let answer = self.answer(&format!("{} + {}", last(PROCESSED), last(REMAINING)), from, to).await?;
        let series = answer.pointer("/data/result").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let label = |series: &Value, name: &str| series["metric"][name].as_str().unwrap_or_default().to_owned();
        let by_vm: HashMap<(String, String), Points> = series
            .iter()
            .map(|series| ((label(series, "namespace"), label(series, "name")), values(&series["values"])))
            .collect();
        let sent = |migration: &EndedMigration| {
            // A point is up to a step after the sample.
            let end = migration.end + SignedDuration::from_secs(step);
            let during = |(time, _): &&(Timestamp, f64)| (migration.start..=end).contains(time);
            let (_, bytes) = by_vm.get(&migration.vm)?.iter().rfind(during)?;
            Some((migration.end, *bytes))
        };
        let found: Points = migrations.iter().filter_map(sent).collect();
        match (found.len(), migrations.len()) {
            (seen, all) if seen == all => Ok(found),
            (0, _) => Err(format!("memory moved: Prometheus has no {PROCESSED} of these migrations")),
            (seen, all) => Err(format!(
                "memory moved: Prometheus has seen {seen} of {all} migrations; the others ended between two scrapes"
            )),
        }
    }

    async fn range(&self, query: &str, from: Timestamp, to: Timestamp) -> Result<Points, String> {
        Ok(values(&self.answer(query, from, to).await?["data"]["result"][0]["values"]))
    }

    async fn answer(&self, query: &str, from: Timestamp, to: Timestamp) -> Result<Value, String> {
        let [start, end, step] =
            [from.as_second(), to.as_second(), step(from, to)].map(|number| u64::try_from(number).unwrap_or(0));
        let answer = self.0.range(query, start, end, step).await.map_err(|error| error.to_string())?;
        serde_json::from_str(&answer).map_err(|error| format!("Prometheus: {error}"))
    }
}

/// The seconds from one point to the next.
fn step(from: Timestamp, to: Timestamp) -> i64 {
    (to.as_second() - from.as_second()) / MOST_POINTS + 1
}

/// Matchers for the series of these nodes, a part of them each. An instance is the name of a node or an address, maybe with a port.
fn matchers(nodes: &[VmNode]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for node in nodes {
        // Names and addresses have no other character that means something in a regular expression.
        let names = [&node.name].into_iter().chain(&node.addresses).map(|name| name.replace('.', "[.]"));
        let names = names.collect::<Vec<_>>().join("|");
        match parts.last_mut() {
            Some(part) if part.len() + names.len() < LONGEST_NAMES => *part += &format!("|{names}"),
            _ => parts.push(names),
        }
    }
    parts.iter().map(|names| format!("instance=~\"({names})(:[0-9]+)?\"")).collect()
}

/// The points of a series. What is no number is left out.
fn values(of_series: &Value) -> Points {
    let point = |value: &Value| {
        let time = Timestamp::from_millisecond((value[0].as_f64()? * 1000.0) as i64).ok()?;
        let value = value[1].as_str()?.parse().ok().filter(|value: &f64| value.is_finite())?;
        Some((time, value))
    };
    of_series.as_array().into_iter().flatten().filter_map(point).collect()
}

/// The times at which a counter grew, once for each by which it did. A counter that begins anew begins at 0.
pub(super) fn increases(points: &[(Timestamp, f64)]) -> Vec<Timestamp> {
    let mut times = Vec::new();
    for pair in points.windows(2) {
        let ((_, before), (time, after)) = (pair[0], pair[1]);
        let grown = if after >= before { after - before } else { after };
        times.extend(std::iter::repeat_n(time, grown.round() as usize));
    }
    times
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::forecast::test_server::{Asked, TestServer};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn node(name: &str, address: &str) -> VmNode {
        VmNode { name: name.to_owned(), addresses: vec![address.to_owned()] }
    }

    fn client(server: &TestServer) -> Prometheus {
        let args = PrometheusArgs { prometheus: None, prometheus_token_file: None, prometheus_ca: None };
        Prometheus::connect(&server.url, &args, &AuthInfo::default()).unwrap()
    }

    /// The answer to a query over `uses`, which are by instance, at two times.
    fn evaluated(query: &str, metric: &str, uses: &[(String, f64)]) -> Value {
        let names = query.split_once("=~\"(").and_then(|(_, rest)| rest.split_once(")(:")).map(|(names, _)| names);
        let names: Vec<String> = names.unwrap().split('|').map(|name| name.replace("[.]", ".")).collect();
        let known = |instance: &str| names.iter().any(|name| instance.split(':').next() == Some(name));
        let used = uses.iter().filter(|(instance, _)| query.contains(metric) && known(instance)).map(|(_, used)| *used);
        let used: Vec<f64> = used.collect();
        let value = match query {
            _ if query.starts_with("count(") => used.len() as f64,
            _ if query.starts_with("sum((") => used.iter().map(|used| used * used).sum(),
            _ => used.iter().sum(),
        };
        let values = json!([[10, value.to_string()], [25, value.to_string()]]);
        json!({"data": {"result": if used.is_empty() { json!([]) } else { json!([{"values": values}]) }}})
    }

    #[tokio::test]
    async fn the_spread_is_that_of_the_nodes_that_take_virtual_machines() {
        let uses = [("worker-0.a.b", 0.2), ("worker-1.a.b", 0.6), ("master-0.a.b", 0.9), ("worker-0xaxb", 0.9)];
        let uses = uses.map(|(name, used)| (name.to_owned(), used)).to_vec();
        let nodes = [node("worker-0.a.b", "10.0.0.1"), node("worker-1.a.b", "10.0.0.2"), node("new", "10.0.0.3")];
        for metric in ["descheduler:node:cpu_usage", "descheduler:nodeutilization", "node_cpu_seconds_total"] {
            let uses = uses.clone();
            let server = TestServer::start(move |request| evaluated(&request.query, metric, &uses)).await;
            let spread = client(&server).spread(&nodes, at(10), at(25)).await.unwrap();
            assert_eq!((spread.points.len(), spread.nodes), (2, 2), "{metric}");
            assert!(spread.points.iter().all(|(_, sigma)| (sigma - 0.2).abs() < 1e-9), "{metric}: {spread:?}");
        }
        let empty = TestServer::start(|request| evaluated(&request.query, "none", &[])).await;
        let unknown = client(&empty).spread(&nodes, at(10), at(25)).await.unwrap_err();
        assert!(unknown.contains("has no CPU use of the nodes that take"), "{unknown}");
    }

    #[tokio::test]
    async fn a_large_cluster_is_asked_for_in_parts() {
        let name = |number: usize| format!("worker-{number}.a-long-name.of-a-cluster.example.com");
        let nodes: Vec<VmNode> = (0..500).map(|number| node(&name(number), &format!("10.0.{number}.1"))).collect();
        let uses: Vec<_> =
            (0..500).map(|number| (format!("10.0.{number}.1:9100"), (number % 2) as f64 / 2.0)).collect();
        let server = TestServer::start(move |request| {
            assert!(request.query.len() < 2 * LONGEST_NAMES, "{}", request.query.len());
            evaluated(&request.query, "node_cpu_seconds_total", &uses)
        })
        .await;
        let spread = client(&server).spread(&nodes, at(10), at(25)).await.unwrap();
        assert!(spread.nodes == 500 && (spread.points[0].1 - 0.25).abs() < 1e-9, "{spread:?}");
    }

    #[tokio::test]
    async fn a_prometheus_behind_tls_gets_the_token_of_the_kubeconfig_and_one_without_tls_does_not() {
        let answer = |_: &Asked| json!({"data": {"result": [{"values": [[10, "3"]]}]}});
        let (secure, ca) = TestServer::start_secure(answer).await;
        let plain = TestServer::start(answer).await;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), ca).unwrap();
        let user = AuthInfo { token: Some("own".to_owned().into()), ..AuthInfo::default() };
        for (server, expected) in [(&secure, Some("Bearer own")), (&plain, None)] {
            let args = PrometheusArgs {
                prometheus: None,
                prometheus_token_file: None,
                prometheus_ca: Some(file.path().to_owned()),
            };
            let client = Prometheus::connect(&server.url, &args, &user).unwrap();
            assert_eq!(client.evictions(at(0), at(20)).await, Ok(vec![(at(10), 3.0)]), "{}", server.url);
            let asked = server.asked.lock().unwrap().clone();
            assert_eq!(asked.last().unwrap().authorization.as_deref(), expected, "{}", server.url);
            assert_eq!(asked.last().unwrap().path, "/api/v1/query_range");
        }
    }

    #[test]
    fn a_counter_tells_when_it_grew_and_survives_a_restart() {
        let points = [(at(0), 3.0), (at(15), 3.0), (at(30), 5.0), (at(45), 1.0)];
        assert_eq!(increases(&points), [at(30), at(30), at(45)]);
        assert_eq!(increases(&[]), []);
    }

    #[tokio::test]
    async fn a_migration_has_sent_what_prometheus_saw_last_while_it_ran() {
        let server = TestServer::start(|request| {
            assert!(request.query.contains(PROCESSED) && request.query.contains(REMAINING), "{}", request.query);
            let vm = |name: &str| json!({"namespace": "shop", "name": name});
            json!({"data": {"result": [
                {"metric": vm("web"), "values": [[30, "7"], [110, "50"], [120, "60"], [200, "9"]]},
                {"metric": vm("db"), "values": [[500, "8"]]},
            ]}})
        })
        .await;
        let migration = |name: &str, start: i64, end: i64| EndedMigration {
            vm: ("shop".to_owned(), name.to_owned()),
            start: at(start),
            end: at(end),
            is_done: true,
        };
        let seen = [migration("web", 100, 125), migration("web", 180, 200), migration("db", 490, 500)];
        let sent = |migrations: Vec<EndedMigration>| {
            let client = client(&server);
            async move { client.bytes(&migrations, at(0), at(600)).await }
        };
        assert_eq!(sent(seen.to_vec()).await, Ok(vec![(at(125), 60.0), (at(200), 9.0), (at(500), 8.0)]));
        assert_eq!(sent(Vec::new()).await, Ok(Vec::new()), "nothing moved");
        let short = sent([&seen[..], &[migration("db", 300, 305)]].concat()).await.unwrap_err();
        assert!(short.contains("has seen 3 of 4 migrations"), "{short}");
        let none = sent(vec![migration("other", 0, 600)]).await.unwrap_err();
        assert!(none.contains("has no kubevirt_vmi_migration_data_processed_bytes"), "{none}");
    }

    #[test]
    fn points_are_the_numbers_of_a_series() {
        let series = json!([[10.5, "0.25"], [25, "NaN?"], [40, "3"]]);
        assert_eq!(values(&series), [(Timestamp::from_millisecond(10_500).unwrap(), 0.25), (at(40), 3.0)]);
        assert_eq!(values(&Value::Null), []);
    }
}
