//! What is counted while the operator works: counters and histograms. Their labels are bounded where they are counted.

use std::time::Duration;

use advisor::monitoring::{ApprovalResult, Metric, metrics};
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
};

/// A plan takes as long as its requests.
const PLAN: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
/// From a setting that counts at once to a large pool whose nodes reboot one after another.
const APPLY: [f64; 11] = [1.0, 5.0, 30.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 10_800.0, 28_800.0, 86_400.0];
const REQUEST: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

type Labels = Vec<(&'static str, String)>;

fn labels(metric: &Metric, values: &[&str]) -> Labels {
    debug_assert_eq!(metric.labels.len(), values.len(), "{}", metric.name);
    metric.labels.iter().copied().zip(values.iter().map(|&value| value.to_owned())).collect()
}

#[derive(Debug, Default)]
pub(super) struct Counters(Family<Labels, Counter>);

impl Counters {
    pub(super) fn count(&self, metric: &Metric, values: &[&str]) {
        self.0.get_or_create(&labels(metric, values)).inc();
    }

    pub(super) fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.0.encode(encoder)
    }
}

#[derive(Debug)]
pub(super) struct Histograms(Family<Labels, Histogram, fn() -> Histogram>);

impl Histograms {
    fn new(histogram: fn() -> Histogram) -> Self {
        Histograms(Family::new_with_constructor(histogram))
    }

    pub(super) fn observe(&self, metric: &Metric, values: &[&str], took: Duration) {
        self.0.get_or_create(&labels(metric, values)).observe(took.as_secs_f64());
    }

    pub(super) fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.0.encode(encoder)
    }
}

#[derive(Debug)]
pub(super) struct Counted {
    pub(super) approvals: Counters,
    pub(super) plan_duration: Histograms,
    pub(super) apply_duration: Histograms,
    pub(super) errors: Counters,
    pub(super) requests: Counters,
    pub(super) request_duration: Histograms,
    pub(super) watch_restarts: Counters,
}

impl Default for Counted {
    fn default() -> Self {
        Counted {
            approvals: Counters::default(),
            plan_duration: Histograms::new(|| Histogram::new(PLAN)),
            apply_duration: Histograms::new(|| Histogram::new(APPLY)),
            errors: Counters::default(),
            requests: Counters::default(),
            request_duration: Histograms::new(|| Histogram::new(REQUEST)),
            watch_restarts: Counters::default(),
        }
    }
}

impl Counted {
    /// Removes the series of a profile whose configuration is ignored or gone.
    pub(super) fn forget(&self, profile: &str) {
        self.plan_duration.0.remove(&labels(&metrics::PLAN_DURATION, &[profile]));
        self.apply_duration.0.remove(&labels(&metrics::APPLY_DURATION, &[profile]));
        for result in ApprovalResult::ALL {
            self.approvals.0.remove(&labels(&metrics::APPROVALS, &[profile, result.as_str()]));
        }
    }
}
