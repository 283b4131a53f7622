//! The Prometheus of the lab: what it scrapes, the rules it evaluates, and how soon it forgets.
//!
//! The descheduler acts on whatever a query returns, however old, so old values must not be returned. Three limits see to
//! that, and together they stay below [`OLDEST`]. A signal is recorded only while the exporter was scraped within
//! [`FRESH`], however long the window of the averages is; everything else is computed from signals and goes with them.
//! And Prometheus looks back for [`LOOK_BACK`] instead of five minutes, so that what was recorded before it stopped or
//! stalled is not found later. A node without a value then makes the descheduler abandon its cycle. Last, an answer that
//! does not come within [`PROMETHEUS_TIMEOUT`](standins::descheduler::PROMETHEUS_TIMEOUT) does not come at all.

use std::{fmt::Write, time::Duration};

use balance::{
    Signal,
    promql::{self, Rule, Source, signal_series},
};
use standins::descheduler::prometheus_timeout;

/// No eviction is based on a scrape older than this.
pub const OLDEST: Duration = Duration::from_secs(90);
/// For how long after a scrape signals are recorded. Two scrapes in a row may fail.
pub const FRESH: Duration = Duration::from_secs(45);
/// For how long a recorded value is found.
pub const LOOK_BACK: Duration = Duration::from_secs(25);

/// Between scrapes, and between evaluations of the rules.
const INTERVAL: Duration = Duration::from_secs(15);
/// Programs that share a busy machine are not faster because a lab's time is: no interval is shorter than the first, and
/// a value is found at least for the second beyond the interval.
const SHORTEST: Duration = Duration::from_millis(500);
const SLACK: Duration = Duration::from_secs(1);

/// The default metric of older operators, which the algorithms do not include.
const COMBINED: &str = "descheduler:combined_utilization_and_pressure:avg1m";
const RULE_FILE: &str = "descheduler-rules.yml";

#[derive(Debug, Clone, PartialEq)]
pub struct PrometheusSettings {
    /// Where the exporter listens, as `host:port`.
    pub exporter: String,
    /// Where the descheduler's metrics are served on plain HTTP, as `host:port`.
    pub descheduler: Option<String>,
    pub signals: Source,
    /// Over how long signals are averaged. The names say `avg1m` whatever it is.
    pub window: Duration,
    /// By how much all of this is shortened.
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
        self.scaled(INTERVAL).max(SHORTEST)
    }

    fn fresh(&self) -> Duration {
        self.scaled(FRESH).max(self.interval() * 2 + SHORTEST)
    }

    fn look_back(&self) -> Duration {
        self.scaled(LOOK_BACK).max(self.interval() + SLACK)
    }

    /// The age by clock at which a scrape leads to no eviction any more. With time scales beyond 20 it is longer than
    /// [`OLDEST`] divided by the scale: see the shortest intervals.
    pub fn oldest(&self) -> Duration {
        self.fresh() + self.look_back() + prometheus_timeout(self.time_scale)
    }

    /// The averaging window by clock, in whole seconds, and never so short that a single scrape fills it.
    fn window(&self) -> u32 {
        let seconds = self.scaled(self.window).max(self.interval() * 2).as_secs_f64().ceil();
        seconds.min(f64::from(u32::MAX)) as u32
    }

    /// `prometheus.yml`. It names one rule file beside it.
    pub fn configuration(&self) -> String {
        let interval = milliseconds(self.interval());
        let mut text = format!(
            "global:\n  scrape_interval: {interval}\n  scrape_timeout: {interval}\n  evaluation_interval: {interval}\n\
             rule_files:\n- {RULE_FILE}\n\
             scrape_configs:\n"
        );
        // The exporter says for which node a series is: the label `instance` is the node's name, not the exporter's.
        let jobs = [("lab-exporter", Some(&self.exporter), true), ("descheduler", self.descheduler.as_ref(), false)];
        for (job, target, is_about_others) in jobs {
            if let Some(target) = target {
                let _ = write!(
                    text,
                    "- job_name: {job}\n  honor_labels: {is_about_others}\n  static_configs:\n  - targets:\n    - {target:?}\n"
                );
            }
        }
        text
    }

    /// All rules in one group: Prometheus gives each group a time of its own, so a second one would lag behind.
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

    /// The rule file that [`PrometheusSettings::configuration`] names: its name and its text.
    pub fn rule_file(&self) -> (String, String) {
        let mut text =
            format!("groups:\n- name: descheduler.rules\n  interval: {}\n  rules:\n", milliseconds(self.interval()));
        for Rule { record, expr } in self.rules() {
            let _ = write!(text, "  - record: {record}\n    expr: '{}'\n", expr.replace('\'', "''"));
        }
        (RULE_FILE.to_owned(), text)
    }

    /// What Prometheus has to be started with.
    pub fn flags(&self) -> Vec<String> {
        vec![format!("--query.lookback-delta={}", milliseconds(self.look_back()))]
    }

    /// All of it, to be started with a cluster.
    pub fn component(&self, port: Option<u16>) -> devcluster::Prometheus {
        devcluster::Prometheus {
            config: self.configuration(),
            rules: vec![self.rule_file()],
            flags: self.flags(),
            port,
        }
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(time_scale: f64) -> PrometheusSettings {
        PrometheusSettings { time_scale, ..PrometheusSettings::new("127.0.0.1:8000") }
    }

    #[test]
    fn the_exporter_is_scraped_and_its_labels_are_kept() {
        let settings = PrometheusSettings { descheduler: Some("127.0.0.1:8443".into()), ..scaled(1.0) };
        let expected = "\
global:
  scrape_interval: 15000ms
  scrape_timeout: 15000ms
  evaluation_interval: 15000ms
rule_files:
- descheduler-rules.yml
scrape_configs:
- job_name: lab-exporter
  honor_labels: true
  static_configs:
  - targets:
    - \"127.0.0.1:8000\"
- job_name: descheduler
  honor_labels: false
  static_configs:
  - targets:
    - \"127.0.0.1:8443\"
";
        assert_eq!(settings.configuration(), expected);
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
        assert!(text.starts_with("groups:\n- name: descheduler.rules\n  interval: 1500ms\n  rules:\n"), "{text}");
        assert!(text.contains("avg_over_time(node_cpu_usage_ratio[6s])"), "{text}");
        assert!(text.contains("- record: descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m\n"));
        assert!(text.contains("- record: descheduler:combined_utilization_and_pressure:avg1m\n"));
        assert_eq!(text.matches("- name:").count(), 1);
    }
}
