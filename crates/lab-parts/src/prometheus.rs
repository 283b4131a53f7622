//! The Prometheus of the lab: what it scrapes, which rules it evaluates, and how long values stay valid. The descheduler acts on every
//! value that a query returns. So [`FRESH`], [`LOOK_BACK`] and the [timeout](standins::descheduler::PROMETHEUS_TIMEOUT) of queries
//! together stay below [`OLDEST`].

use std::time::Duration;

use balance::{
    Signal,
    promql::{self, Rule, Source, signal_series},
};
use serde::Serialize;
use serde_saphyr::ser_options;
use standins::descheduler::prometheus_timeout;

use crate::exporter::VM_METRICS;

/// No eviction is based on a scrape older than this.
pub const OLDEST: Duration = Duration::from_secs(90);
/// How long after a scrape signals are recorded. Two scrapes in a row may fail.
pub const FRESH: Duration = Duration::from_secs(45);
/// How long a query finds a recorded value.
pub const LOOK_BACK: Duration = Duration::from_secs(25);

/// The time between scrapes, and between evaluations of the rules.
const INTERVAL: Duration = Duration::from_secs(15);
/// A time scale does not make the machine faster, so each of these durations has a minimum.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(500);
const LOOK_BACK_BEYOND_INTERVAL: Duration = Duration::from_secs(1);

/// The default metric of older operators, which is none of the algorithms.
const COMBINED: &str = "descheduler:combined_utilization_and_pressure:avg1m";
const RULE_FILE: &str = "descheduler-rules.yml";

#[derive(Debug, Clone, PartialEq)]
pub struct PrometheusSettings {
    /// The address of the exporter, as `host:port`.
    pub exporter: String,
    /// The address of the descheduler's metrics on plain HTTP, as `host:port`.
    pub descheduler: Option<String>,
    pub signals: Source,
    /// The window over which signals are averaged. The names contain `avg1m` for every window.
    pub window: Duration,
    /// How many times faster than the clock the lab runs.
    pub time_scale: f64,
}

impl PrometheusSettings {
    pub fn new(exporter: impl Into<String>) -> Self {
        PrometheusSettings {
            exporter: exporter.into(),
            descheduler: None,
            signals: Source::default(),
            window: Duration::from_secs(60),
            time_scale: 1.0,
        }
    }

    fn scaled(&self, time: Duration) -> Duration {
        time.div_f64(self.time_scale.max(f64::MIN_POSITIVE))
    }

    fn interval(&self) -> Duration {
        self.scaled(INTERVAL).max(SHORTEST_INTERVAL)
    }

    fn fresh(&self) -> Duration {
        self.scaled(FRESH).max(self.interval() * 2 + SHORTEST_INTERVAL)
    }

    fn look_back(&self) -> Duration {
        self.scaled(LOOK_BACK).max(self.interval() + LOOK_BACK_BEYOND_INTERVAL)
    }

    /// The age by the clock at which a scrape causes no eviction any more. With time scales beyond 20 it is longer than
    /// [`OLDEST`] divided by the scale, because of the minimum durations.
    pub fn oldest(&self) -> Duration {
        self.fresh() + self.look_back() + prometheus_timeout(self.time_scale)
    }

    /// The window by the clock, in whole seconds. It contains at least two scrapes.
    fn window(&self) -> u32 {
        let seconds = self.scaled(self.window).max(self.interval() * 2).as_secs_f64().ceil();
        seconds.min(f64::from(u32::MAX)) as u32
    }

    /// `prometheus.yml`. It refers to one rule file in the same folder.
    pub fn configuration(&self) -> String {
        let interval = milliseconds(self.interval());
        let job = |job_name, target: &str, honor_labels| ScrapeConfig {
            job_name,
            metrics_path: None,
            honor_labels,
            static_configs: vec![StaticConfig { targets: vec![target.to_owned()] }],
        };
        // The label `instance` is the name of the node, which the exporter sets.
        let exporter = job("lab-exporter", &self.exporter, true);
        let vms = ScrapeConfig { metrics_path: Some(VM_METRICS), ..job("lab-vms", &self.exporter, true) };
        let descheduler = self.descheduler.as_deref().map(|target| job("descheduler", target, false));
        yaml(&Configuration {
            global: Global {
                scrape_interval: interval.clone(),
                scrape_timeout: interval.clone(),
                evaluation_interval: interval,
            },
            rule_files: vec![RULE_FILE],
            scrape_configs: [exporter, vms].into_iter().chain(descheduler).collect(),
        })
    }

    /// All rules are in one group: Prometheus evaluates each group at a time of its own, so a second one would lag behind.
    pub fn rules(&self) -> Vec<Rule> {
        let options = promql::Options { source: self.signals, window: self.window(), ..promql::Options::default() };
        let mut rules = promql::rules(&options);
        let signals = Signal::ALL.map(signal_series);
        for rule in rules.iter_mut().filter(|rule| signals.contains(&rule.record)) {
            rule.expr = format!("({}) and on (instance) {}", rule.expr, self.scraped_lately());
        }
        let [usage, pressure] = [Signal::CpuUsage, Signal::CpuPressure].map(signal_series);
        rules.push(Rule {
            record: COMBINED.to_owned(),
            expr: format!("({usage} and on () (avg({usage}) < 0.8)) or {pressure}"),
        });
        rules
    }

    fn scraped_lately(&self) -> String {
        let series = match self.signals {
            Source::Gauges => "node_cpu_usage_ratio",
            Source::NodeExporter | Source::OpenShift => "node_memory_MemAvailable_bytes",
        };
        format!("last_over_time({series}[{}])", milliseconds(self.fresh()))
    }

    /// The name and the text of the rule file that [`PrometheusSettings::configuration`] refers to.
    pub fn rule_file(&self) -> (String, String) {
        let rules = self.rules().into_iter().map(|Rule { record, expr }| RecordingRule { record, expr }).collect();
        let group = RuleGroup { name: "descheduler.rules", interval: milliseconds(self.interval()), rules };
        (RULE_FILE.to_owned(), yaml(&RuleFile { groups: vec![group] }))
    }

    /// The flags that Prometheus needs.
    pub fn flags(&self) -> Vec<String> {
        vec![format!("--query.lookback-delta={}", milliseconds(self.look_back()))]
    }

    /// The component of a cluster with this configuration.
    pub fn component(&self, port: Option<u16>) -> devcluster::Prometheus {
        devcluster::Prometheus {
            config: self.configuration(),
            rules: vec![self.rule_file()],
            flags: self.flags(),
            port,
        }
    }
}

/// `prometheus.yml`.
#[derive(Debug, Serialize)]
struct Configuration {
    global: Global,
    rule_files: Vec<&'static str>,
    scrape_configs: Vec<ScrapeConfig>,
}

#[derive(Debug, Serialize)]
struct Global {
    scrape_interval: String,
    scrape_timeout: String,
    evaluation_interval: String,
}

#[derive(Debug, Serialize)]
struct ScrapeConfig {
    job_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics_path: Option<&'static str>,
    honor_labels: bool,
    static_configs: Vec<StaticConfig>,
}

#[derive(Debug, Serialize)]
struct StaticConfig {
    targets: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RuleFile {
    groups: Vec<RuleGroup>,
}

#[derive(Debug, Serialize)]
struct RuleGroup {
    name: &'static str,
    interval: String,
    rules: Vec<RecordingRule>,
}

#[derive(Debug, Serialize)]
struct RecordingRule {
    record: String,
    expr: String,
}

fn yaml(document: &impl Serialize) -> String {
    // An expression stays on its line.
    let options = ser_options! { folded_wrap_chars: usize::MAX };
    // Strings, lists and structs can always be written.
    serde_saphyr::to_string_with_options(document, options).unwrap_or_else(|error| format!("# not written: {error}\n"))
}

fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn scaled(time_scale: f64) -> PrometheusSettings {
        PrometheusSettings { time_scale, ..PrometheusSettings::new("127.0.0.1:8000") }
    }

    #[test]
    fn the_exporter_is_scraped_and_its_labels_are_kept() {
        let settings = PrometheusSettings { descheduler: Some("127.0.0.1:8443".into()), ..scaled(1.0) };
        let expected = json!({
            "global": {"scrape_interval": "15000ms", "scrape_timeout": "15000ms", "evaluation_interval": "15000ms"},
            "rule_files": ["descheduler-rules.yml"],
            "scrape_configs": [
                {"job_name": "lab-exporter", "honor_labels": true, "static_configs": [{"targets": ["127.0.0.1:8000"]}]},
                {"job_name": "lab-vms", "metrics_path": "/metrics/vms", "honor_labels": true,
                 "static_configs": [{"targets": ["127.0.0.1:8000"]}]},
                {"job_name": "descheduler", "honor_labels": false, "static_configs": [{"targets": ["127.0.0.1:8443"]}]},
            ],
        });
        assert_eq!(serde_saphyr::from_str::<Value>(&settings.configuration()).unwrap(), expected);
        assert!(!scaled(1.0).configuration().contains("job_name: descheduler"));
    }

    #[test]
    fn no_scrape_counts_for_longer_than_90_seconds_whatever_the_window_and_the_scale() {
        for scale in [1.0, 2.0, 7.0, 10.0, 20.0] {
            for window in [15, 60, 600] {
                let settings = PrometheusSettings { window: Duration::from_secs(window), ..scaled(scale) };
                assert!(settings.oldest() < OLDEST.div_f64(scale), "{scale}: {:?}", settings.oldest());
                assert!(settings.look_back() > settings.interval(), "between evaluations there is a value, too");
            }
        }
        assert_eq!(scaled(1.0).flags(), ["--query.lookback-delta=25000ms"]);
    }

    #[test]
    fn signals_end_with_the_scrapes_and_the_rest_with_the_signals() {
        for (signals, series) in [
            (Source::Gauges, "node_cpu_usage_ratio"),
            (Source::NodeExporter, "node_memory_MemAvailable_bytes"),
            (Source::OpenShift, "node_memory_MemAvailable_bytes"),
        ] {
            let rules = PrometheusSettings { signals, ..scaled(10.0) }.rules();
            let guard = format!(") and on (instance) last_over_time({series}[4500ms])");
            let guarded: Vec<_> =
                rules.iter().filter(|rule| rule.expr.ends_with(&guard)).map(|rule| &rule.record).collect();
            assert_eq!(guarded.len(), 4, "{guarded:?}");
            for rule in rules.iter().filter(|rule| !guarded.contains(&&rule.record)) {
                assert!(!rule.expr.contains('['), "{} reads samples of its own: {}", rule.record, rule.expr);
            }
        }
    }

    #[test]
    fn window_and_intervals_shrink_together_and_names_stay() {
        let (name, text) = scaled(10.0).rule_file();
        assert_eq!(name, "descheduler-rules.yml");
        let file: Value = serde_saphyr::from_str(&text).unwrap();
        let [group] = &file["groups"].as_array().unwrap()[..] else { panic!("one group: {text}") };
        assert_eq!((&group["name"], &group["interval"]), (&json!("descheduler.rules"), &json!("1500ms")));
        let rules = scaled(10.0).rules();
        let written: Vec<Value> = rules.iter().map(|rule| json!({"record": rule.record, "expr": rule.expr})).collect();
        assert_eq!(group["rules"], json!(written));
        assert!(text.contains("avg_over_time(node_cpu_usage_ratio[6s])"), "{text}");
        let records: Vec<&str> = rules.iter().map(|rule| rule.record.as_str()).collect();
        assert!(records.contains(&"descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m"));
        assert!(records.contains(&"descheduler:combined_utilization_and_pressure:avg1m"));
    }
}
