//! The answer of Prometheus to a query about nodes, read as the descheduler reads it.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

/// Why a cycle is abandoned. The descheduler abandons its own for the same reasons.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InvalidSamples {
    #[error("Prometheus answered with an error: {0}")]
    Error(String),
    #[error("the query gives no vector but {0:?}; it must give one sample per node")]
    NoVector(String),
    #[error("a sample has no label 'instance', which must be the name of a node")]
    NoInstance,
    #[error("the sample of {node:?} is {value}, which is not from 0 to 1")]
    OutOfRange { node: String, value: String },
}

/// Whole percent, truncated.
pub(super) fn percent(value: f64) -> i64 {
    (value * 100.0) as i64
}

/// The percentage of each node. One invalid sample makes the whole answer invalid.
pub fn percents(answer: &Value) -> Result<BTreeMap<String, i64>, InvalidSamples> {
    if answer["status"] != "success" {
        return Err(InvalidSamples::Error(answer["error"].as_str().unwrap_or("no reason was given").to_owned()));
    }
    let kind = answer["data"]["resultType"].as_str().unwrap_or_default();
    let samples = answer["data"]["result"].as_array().filter(|_| kind == "vector");
    let samples = samples.ok_or_else(|| InvalidSamples::NoVector(kind.to_owned()))?;
    let read = |sample: &Value| {
        let node = sample["metric"]["instance"].as_str().ok_or(InvalidSamples::NoInstance)?.to_owned();
        let text = sample["value"][1].as_str().unwrap_or_default();
        let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
        let value = value.ok_or_else(|| InvalidSamples::OutOfRange { node: node.clone(), value: text.to_owned() })?;
        Ok((node, percent(value)))
    };
    samples.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(samples: &[(&str, &str)]) -> Value {
        let sample = |(node, value): &(&str, &str)| json!({"metric": {"instance": node}, "value": [1.5, value]});
        let samples: Vec<_> = samples.iter().map(sample).collect();
        json!({"status": "success", "data": {"resultType": "vector", "result": samples}})
    }

    #[test]
    fn percentages_are_truncated() {
        let found = percents(&answer(&[("a", "0.109"), ("b", "1"), ("c", "0.9999999")])).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("a".into(), 10), ("b".into(), 100), ("c".into(), 99)]);
    }

    #[test]
    fn one_invalid_sample_makes_the_whole_answer_invalid() {
        for value in ["-0.000000001", "1.01", "NaN", "+Inf", ""] {
            let found = percents(&answer(&[("a", "0.5"), ("b", value)]));
            assert_eq!(found, Err(InvalidSamples::OutOfRange { node: "b".into(), value: value.into() }));
        }
        let anonymous = json!({"metric": {}, "value": [1, "0.5"]});
        let answer = json!({"status": "success", "data": {"resultType": "vector", "result": [anonymous]}});
        assert_eq!(percents(&answer), Err(InvalidSamples::NoInstance));
    }

    #[test]
    fn an_answer_other_than_a_vector_is_an_error() {
        let scalar = json!({"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}});
        assert_eq!(percents(&scalar), Err(InvalidSamples::NoVector("scalar".into())));
        let error = json!({"status": "error", "error": "parse error"});
        assert_eq!(percents(&error), Err(InvalidSamples::Error("parse error".into())));
    }
}
