//! The plugin LowNodeUtilization of a policy: the query that it compares nodes by, and how it classifies them.

use std::collections::BTreeMap;

use balance::Bucket;
use serde_json::Value;
use standins::descheduler::Thresholds;

/// The arguments of the first profile that has a Prometheus query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowNodeUtilization {
    pub query: String,
    pub thresholds: Thresholds,
    /// A label and its value; without it all nodes count.
    pub node_selector: Option<(String, String)>,
}

impl LowNodeUtilization {
    /// Reads a DeschedulerPolicy. None if no profile has a query.
    pub fn of(policy: &str) -> Option<LowNodeUtilization> {
        let policy: Value = serde_saphyr::from_str(policy).ok()?;
        let plugins = policy["profiles"].as_array()?.iter().flat_map(|profile| profile["pluginConfig"].as_array());
        plugins.flatten().find_map(|plugin| {
            let arguments = &plugin["args"];
            let query = arguments.pointer("/metricsUtilization/prometheus/query")?.as_str()?;
            let percent = |name: &str| u8::try_from(arguments[name]["MetricResource"].as_u64()?).ok();
            Some(LowNodeUtilization {
                query: query.to_owned(),
                thresholds: Thresholds {
                    under: percent("thresholds")?,
                    over: percent("targetThresholds")?,
                    is_deviation: arguments["useDeviationThresholds"].as_bool().unwrap_or(false),
                },
                node_selector: policy["nodeSelector"].as_str().and_then(|selector| {
                    let (label, value) = selector.split_once('=')?;
                    Some((label.trim().to_owned(), value.trim_start_matches('=').trim().to_owned()))
                }),
            })
        })
    }
}

/// A node to be classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeUtilization {
    /// Its score in whole percent.
    pub percent: i64,
    pub takes_pods: bool,
}

/// The bucket of every node, as the descheduler's plugin decides it.
pub fn classify(thresholds: Thresholds, nodes: &BTreeMap<String, NodeUtilization>) -> BTreeMap<String, Bucket> {
    let (under, over) = bounds(thresholds, nodes);
    let bucket = |node: &NodeUtilization| match node.percent as f64 {
        percent if percent <= under && node.takes_pods => Bucket::Under,
        percent if percent > over => Bucket::Over,
        _ => Bucket::Appropriate,
    };
    nodes.iter().map(|(name, node)| (name.clone(), bucket(node))).collect()
}

/// The highest percentage of an under-utilized node, and the highest of one that is not over-utilized.
fn bounds(thresholds: Thresholds, nodes: &BTreeMap<String, NodeUtilization>) -> (f64, f64) {
    let (under, over) = (f64::from(thresholds.under), f64::from(thresholds.over));
    if !thresholds.is_deviation || nodes.is_empty() {
        return (under, over);
    }
    let average = nodes.values().map(|node| node.percent as f64).sum::<f64>() / nodes.len() as f64;
    ((average - under).clamp(0.0, 100.0), (average + over).clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use balance::{Buckets, Classifier, Mode, Scores, Semantics};
    use proptest::prelude::*;

    use super::*;
    use crate::soft_tainter::samples::percent;

    fn nodes(percents: &[i64]) -> BTreeMap<String, NodeUtilization> {
        let utilization = |percent: &i64| NodeUtilization { percent: *percent, takes_pods: true };
        percents.iter().enumerate().map(|(at, percent)| (format!("n{at:03}"), utilization(percent))).collect()
    }

    proptest! {
        #[test]
        fn the_simulator_and_the_soft_tainter_put_nodes_into_the_same_buckets(
            scores in proptest::collection::vec(0.0..=1.0, 1..40),
            mode in proptest::sample::select(&Mode::ALL[..]),
            cordoned in 0..40_usize,
        ) {
            let mut buckets = Buckets::new();
            Classifier::new(mode, Semantics::Descheduler).classify(&Scores::of(scores.clone()), &mut buckets);
            let mut nodes = nodes(&scores.iter().map(|score| percent(*score)).collect::<Vec<_>>());
            if let Some(node) = nodes.get_mut(&format!("n{cordoned:03}")) {
                node.takes_pods = false;
                buckets.cordon(cordoned);
            }
            let (under, over) = mode.percent();
            let found = classify(Thresholds { under, over, is_deviation: true }, &nodes);
            prop_assert_eq!(found.into_values().collect::<Vec<_>>(), buckets.of());
        }
    }

    #[test]
    fn at_most_the_lower_bound_is_under_and_more_than_the_upper_is_over() {
        use Bucket::{Appropriate, Over, Under};
        let thresholds = Thresholds { under: 20, over: 50, is_deviation: false };
        let found = classify(thresholds, &nodes(&[20, 21, 50, 51]));
        assert_eq!(found.into_values().collect::<Vec<_>>(), [Under, Appropriate, Appropriate, Over]);
        // The average is 10, so the lower bound would be -20; it is 0 instead.
        let thresholds = Thresholds { under: 30, over: 10, is_deviation: true };
        let found = classify(thresholds, &nodes(&[0, 1, 9, 20, 20]));
        assert_eq!(
            found.into_values().collect::<Vec<_>>(),
            [Under, Appropriate, Appropriate, Appropriate, Appropriate]
        );
        assert!(classify(thresholds, &BTreeMap::new()).is_empty());
    }

    #[test]
    fn a_policy_tells_query_thresholds_and_nodes() {
        let text = "
nodeSelector: kubevirt.io/schedulable=true
profiles:
- name: first
  pluginConfig: [{name: RemoveDuplicates, args: {}}]
- name: second
  pluginConfig:
  - name: LowNodeUtilization
    args:
      metricsUtilization: {source: Prometheus, prometheus: {query: up}}
      thresholds: {MetricResource: 10}
      targetThresholds: {MetricResource: 30}
";
        let plugin = LowNodeUtilization::of(text).unwrap();
        assert_eq!(plugin.query, "up");
        assert_eq!(plugin.thresholds, Thresholds { under: 10, over: 30, is_deviation: false });
        assert_eq!(plugin.node_selector, Some(("kubevirt.io/schedulable".into(), "true".into())));
        assert_eq!(LowNodeUtilization::of("profiles: []"), None);
        assert_eq!(LowNodeUtilization::of("nonsense"), None);
    }
}
