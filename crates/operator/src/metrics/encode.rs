//! Writes all metrics at a scrape, in the order of their list.

use std::{fmt, sync::atomic::Ordering};

use advisor::monitoring::{METRICS, Metric, MetricType, Sample, metrics, series};
use process::Usage;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType as EncodedType,
};

use super::State;

/// One look at everything that is not counted.
struct Scrape<'a> {
    state: &'a State,
    samples: Vec<Sample>,
    usage: Usage,
}

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.clock.now();
        let samples = self.configs().values().flat_map(|config| series(config, now)).collect();
        let scrape = Scrape { state: self, samples, usage: Usage::read() };
        for metric in METRICS {
            let (name, metric_type) = match metric.metric_type {
                MetricType::Gauge => (metric.name, EncodedType::Gauge),
                // The encoder adds it again.
                MetricType::Counter => (metric.name.trim_end_matches("_total"), EncodedType::Counter),
                MetricType::Histogram => (metric.name, EncodedType::Histogram),
            };
            scrape.encode(metric, encoder.encode_descriptor(name, metric.help, None, metric_type)?)?;
        }
        Ok(())
    }
}

impl Scrape<'_> {
    fn encode(&self, metric: &Metric, encoder: MetricEncoder<'_>) -> fmt::Result {
        let (counted, usage) = (&self.state.counted, &self.usage);
        let flag = |value: bool| f64::from(u8::from(value));
        // Far below 2^53, so nothing is rounded.
        let number = |value: Option<u64>| value.map(|value| value as f64);
        match *metric {
            metrics::APPROVALS => counted.approvals.encode(encoder),
            metrics::PLAN_DURATION => counted.plan_duration.encode(encoder),
            metrics::APPLY_DURATION => counted.apply_duration.encode(encoder),
            metrics::RECONCILE_ERRORS => counted.errors.encode(encoder),
            metrics::API_REQUESTS => counted.requests.encode(encoder),
            metrics::API_REQUEST_DURATION => counted.request_duration.encode(encoder),
            metrics::WATCH_RESTARTS => counted.watch_restarts.encode(encoder),
            metrics::LEADER => gauge(encoder, Some(flag(self.state.is_leader.load(Ordering::Relaxed)))),
            metrics::BUILD_INFO => labeled(encoder, metric, std::slice::from_ref(&self.state.version), 1.0),
            metrics::PROCESS_START_TIME => gauge(encoder, usage.started),
            metrics::PROCESS_RESIDENT_MEMORY => gauge(encoder, number(usage.resident)),
            metrics::PROCESS_CPU => counter(encoder, usage.cpu.map(|cpu| cpu.as_secs_f64())),
            metrics::PROCESS_OPEN_FDS => gauge(encoder, number(usage.open_files)),
            _ => self.samples(metric, encoder),
        }
    }

    /// The series of all configurations.
    fn samples(&self, metric: &Metric, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for sample in self.samples.iter().filter(|sample| sample.metric.name == metric.name) {
            let labels = pairs(metric, &sample.labels);
            encoder.encode_family(&labels)?.encode_gauge(&sample.value)?;
        }
        Ok(())
    }
}

fn pairs<'a>(metric: &Metric, values: &'a [String]) -> Vec<(&'static str, &'a str)> {
    metric.labels.iter().copied().zip(values.iter().map(String::as_str)).collect()
}

fn labeled(mut encoder: MetricEncoder<'_>, metric: &Metric, values: &[String], value: f64) -> fmt::Result {
    let labels = pairs(metric, values);
    encoder.encode_family(&labels)?.encode_gauge(&value)
}

fn gauge(mut encoder: MetricEncoder<'_>, value: Option<f64>) -> fmt::Result {
    value.map_or(Ok(()), |value| encoder.encode_gauge(&value))
}

fn counter(mut encoder: MetricEncoder<'_>, value: Option<f64>) -> fmt::Result {
    value.map_or(Ok(()), |value| encoder.encode_counter::<NoLabelSet, _, f64>(&value, None))
}
