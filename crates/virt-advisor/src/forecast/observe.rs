//! What is read of a cluster: the release of the descheduler, migrations, and the spread of load from Prometheus.

use std::path::PathBuf;

use advisor::{
    kind::{KUBE_DESCHEDULER, Kind},
    kube_descheduler::Release,
};
use anyhow::Context;
use api::VirtPlatformConfig;
use jiff::Timestamp;
use kube::Config;
use kube_io::Class;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::Value;

use super::settings;
use crate::{drift, reader::Reader};

/// The migrations that evictions cause have names that begin with this.
const EVACUATION: &str = "kubevirt-evacuation-";
const MIGRATIONS: &str = "/apis/kubevirt.io/v1/virtualmachineinstancemigrations";
/// The spread over nodes: by the rules of the lab, by those of the descheduler's operator, or by what nodes export.
const SPREADS: [&str; 3] = [
    "stddev(descheduler:node:cpu_usage:avg1m)",
    "stddev(descheduler:nodeutilization:cpu:avg1m)",
    "stddev(1 - avg by (instance) (rate(node_cpu_seconds_total{mode=\"idle\"}[1m])))",
];
const EVICTED: &str = "sum(descheduler_pods_evicted_total{result=\"success\"})";
/// Prometheus gives no more points of a series at once.
const MOST_POINTS: i64 = 10_000;

/// How to reach Prometheus.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PrometheusArgs {
    /// The Prometheus with the loads, such as https://thanos-querier.example.com
    #[arg(long, value_name = "URL")]
    pub(super) prometheus: Option<String>,
    /// A file with a token for Prometheus
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub(super) prometheus_token_file: Option<PathBuf>,
    /// A file with the CA of Prometheus, in PEM [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub(super) prometheus_ca: Option<PathBuf>,
}

/// The release of the descheduler's operator. None if its definition cannot be read.
pub(super) async fn release(reader: &Reader) -> Option<Release> {
    let Kind { plural, group, .. } = KUBE_DESCHEDULER;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
    let definition = reader.get(&path).await.ok()?;
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let version = versions.iter().find(|version| version["name"] == KUBE_DESCHEDULER.first_version())?;
    Some(Release::of(Some(version.pointer("/schema/openAPIV3Schema/properties/spec")?)))
}

/// The KubeDescheduler that a plan configures, as it is. None if there is none yet, and why that is not known.
pub(super) async fn descheduler(reader: &Reader, config: &VirtPlatformConfig) -> Result<Option<Value>, String> {
    match config.status.as_ref().and_then(settings::item) {
        Some(item) => drift::target(reader, &item.target_ref).await.map_err(|unread| unread.why),
        None => Ok(None),
    }
}

/// When migrations that evictions caused ended, and why that is not known.
pub(super) async fn migrations(reader: &Reader) -> Result<Option<Vec<Timestamp>>, String> {
    let (found, _, _) = reader.pages(MIGRATIONS, ended).await;
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.class == Class::NotFound || error.class == Class::KindMissing => Ok(None),
        Err(error) => Err(format!("migrations: {}", crate::reader::why(&error.class))),
    }
}

/// When a migration that an eviction caused has ended well.
fn ended(migration: &Value) -> Option<Timestamp> {
    let word = |pointer: &str| migration.pointer(pointer).and_then(Value::as_str);
    let is_eviction = word("/metadata/name").is_some_and(|name| name.starts_with(EVACUATION));
    let is_done = word("/status/phase") == Some("Succeeded");
    let end = word("/status/migrationState/endTimestamp")?;
    end.parse().ok().filter(|_| is_eviction && is_done)
}

/// A client of Prometheus.
pub(super) struct Prometheus(Reader);

impl Prometheus {
    pub(super) fn connect(url: &str, args: &PrometheusArgs) -> anyhow::Result<Self> {
        let mut config = Config::new(url.trim_end_matches('/').parse().with_context(|| format!("--prometheus {url}"))?);
        if let Some(file) = &args.prometheus_token_file {
            let token = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
            anyhow::ensure!(!token.trim().is_empty(), "{} holds no token", file.display());
            config.auth_info.token = Some(token.trim().to_owned().into());
        }
        if let Some(file) = &args.prometheus_ca {
            let text = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            let found = CertificateDer::pem_slice_iter(&text).map(|found| found.map(|found| found.to_vec()));
            let found: Vec<Vec<u8>> = found
                .collect::<Result<_, _>>()
                .with_context(|| format!("reading certificates of {}", file.display()))?;
            anyhow::ensure!(!found.is_empty(), "{} holds no certificate: a CA in PEM was expected", file.display());
            config.root_cert = Some(found);
        }
        let reader = Reader::connect(config, "forecast", None, std::sync::Arc::new(()))?;
        Ok(Prometheus(reader))
    }

    /// The spread of CPU use over time.
    pub(super) async fn spread(&self, from: Timestamp, to: Timestamp) -> Result<Vec<(Timestamp, f64)>, String> {
        for query in SPREADS {
            let found = self.range(query, from, to).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Err("Prometheus has no CPU use of nodes".to_owned())
    }

    /// The number of evictions over time.
    pub(super) async fn evictions(&self, from: Timestamp, to: Timestamp) -> Result<Vec<(Timestamp, f64)>, String> {
        let found = self.range(EVICTED, from, to).await?;
        if found.is_empty() { Err("Prometheus has no evictions of the descheduler".to_owned()) } else { Ok(found) }
    }

    async fn range(&self, query: &str, from: Timestamp, to: Timestamp) -> Result<Vec<(Timestamp, f64)>, String> {
        let (start, end) = (from.as_second(), to.as_second());
        let step = ((end - start) / MOST_POINTS + 1).to_string();
        let (start, end) = (start.to_string(), end.to_string());
        let mut arguments = form_urlencoded::Serializer::new(String::new());
        arguments.extend_pairs([("query", query), ("start", &start), ("end", &end), ("step", &step)]);
        let answer = self.0.get(&format!("/api/v1/query_range?{}", arguments.finish())).await;
        let answer = answer.map_err(|error| format!("Prometheus: {error}"))?;
        Ok(points(&answer))
    }
}

/// The points of the one series of an answer.
fn points(answer: &Value) -> Vec<(Timestamp, f64)> {
    let values = answer.pointer("/data/result/0/values").and_then(Value::as_array);
    let point = |value: &Value| {
        let time = Timestamp::from_millisecond((value[0].as_f64()? * 1000.0) as i64).ok()?;
        let value = value[1].as_str()?.parse().ok().filter(|value: &f64| value.is_finite())?;
        Some((time, value))
    };
    values.into_iter().flatten().filter_map(point).collect()
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

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_counter_tells_when_it_grew_and_survives_a_restart() {
        let points = [(at(0), 3.0), (at(15), 3.0), (at(30), 5.0), (at(45), 1.0)];
        assert_eq!(increases(&points), [at(30), at(30), at(45)]);
        assert_eq!(increases(&[]), []);
    }

    #[test]
    fn only_finished_migrations_of_evictions_count() {
        let migration = |name: &str, phase: &str| {
            let state = json!({"endTimestamp": "2026-03-02T22:00:00Z"});
            json!({"metadata": {"name": name}, "status": {"phase": phase, "migrationState": state}})
        };
        let time: Timestamp = "2026-03-02T22:00:00Z".parse().unwrap();
        assert_eq!(ended(&migration("kubevirt-evacuation-x7", "Succeeded")), Some(time));
        assert_eq!(ended(&migration("kubevirt-evacuation-x7", "Failed")), None);
        assert_eq!(ended(&migration("by-hand", "Succeeded")), None);
        assert_eq!(ended(&json!({})), None);
    }

    #[test]
    fn points_are_those_of_the_first_series() {
        let answer = json!({"data": {"result": [{"values": [[10.5, "0.25"], [25, "NaN?"], [40, "3"]]}]}});
        assert_eq!(points(&answer), [(Timestamp::from_millisecond(10_500).unwrap(), 0.25), (at(40), 3.0)]);
        assert_eq!(points(&json!({"data": {"result": []}})), []);
    }
}
