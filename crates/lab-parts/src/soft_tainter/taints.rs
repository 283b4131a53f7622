//! The taints that make the scheduler prefer other nodes. Their effect is PreferNoSchedule, which forbids nothing.

use std::collections::BTreeMap;

use balance::Bucket;
use k8s_openapi::api::core::v1::Taint;

/// Taint of nodes that are over-utilized.
pub const OVERUTILIZED: &str = "nodeutilization.descheduler.openshift.io/overutilized";
/// Taint of nodes that are over-utilized or appropriately utilized.
pub const APPROPRIATE: &str = "nodeutilization.descheduler.openshift.io/appropriate";

const EFFECT: &str = "PreferNoSchedule";
const KEYS: [&str; 2] = [APPROPRIATE, OVERUTILIZED];

/// The keys of the taints that each node should have. If no node is under-utilized, appropriate nodes are the best targets and get
/// none.
pub fn wanted(buckets: &BTreeMap<String, Bucket>) -> BTreeMap<String, &'static [&'static str]> {
    let has_under = buckets.values().any(|bucket| *bucket == Bucket::Under);
    let keys = |bucket: &Bucket| -> &'static [&'static str] {
        match bucket {
            Bucket::Under => &[],
            Bucket::Appropriate if has_under => &KEYS[..1],
            Bucket::Appropriate => &[],
            Bucket::Over => &KEYS,
        }
    };
    buckets.iter().map(|(node, bucket)| (node.clone(), keys(bucket))).collect()
}

/// Whether a node has any of our taints.
pub fn is_tainted(taints: &[Taint]) -> bool {
    taints.iter().any(|taint| KEYS.contains(&taint.key.as_str()))
}

/// The taints of a node with ours as wanted and those of others unchanged. None if nothing has to be written.
pub fn retainted(taints: &[Taint], wanted: &[&str]) -> Option<Vec<Taint>> {
    let ours = |key: &str| Taint {
        key: key.to_owned(),
        value: Some("true".to_owned()),
        effect: EFFECT.to_owned(),
        time_added: None,
    };
    let is_right = |taint: &Taint| wanted.contains(&taint.key.as_str()) && *taint == ours(&taint.key);
    let mut result: Vec<Taint> =
        taints.iter().filter(|taint| !KEYS.contains(&taint.key.as_str()) || is_right(taint)).cloned().collect();
    for key in wanted {
        if !result.iter().any(|taint| taint.key == *key) {
            result.push(ours(key));
        }
    }
    (result != taints).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: Option<&str>, effect: &str) -> Taint {
        Taint { key: key.into(), value: value.map(Into::into), effect: effect.into(), time_added: None }
    }

    fn keys(buckets: &[Bucket]) -> Vec<&'static [&'static str]> {
        let named = buckets.iter().enumerate().map(|(at, bucket)| (format!("n{at}"), *bucket)).collect();
        wanted(&named).into_values().collect()
    }

    #[test]
    fn the_fuller_a_node_the_more_taints_it_has() {
        use Bucket::{Appropriate, Over, Under};
        let (none, one, both): (&[&str], &[&str], &[&str]) = (&[], &[APPROPRIATE], &[APPROPRIATE, OVERUTILIZED]);
        assert_eq!(keys(&[Under, Appropriate, Over]), [none, one, both]);
        assert_eq!(keys(&[Appropriate, Over, Appropriate]), [none, both, none], "the best there are");
        assert_eq!(keys(&[]), [none; 0]);
    }

    #[test]
    fn nothing_is_written_when_the_taints_are_right() {
        let cordon = taint("node.kubernetes.io/unschedulable", None, "NoSchedule");
        let over = taint(OVERUTILIZED, Some("true"), EFFECT);
        let appropriate = taint(APPROPRIATE, Some("true"), EFFECT);
        assert_eq!(retainted(&[], &[]), None);
        assert_eq!(retainted(std::slice::from_ref(&cordon), &[]), None);
        assert_eq!(retainted(&[over.clone(), cordon.clone(), appropriate.clone()], &KEYS), None, "in any order");
        assert_eq!(retainted(&[cordon.clone(), over.clone()], &[APPROPRIATE]), Some(vec![cordon.clone(), appropriate]));
        assert_eq!(retainted(&[over.clone(), cordon.clone()], &[]), Some(vec![cordon]));
        let foreign = taint(OVERUTILIZED, Some("true"), "NoExecute");
        assert_eq!(retainted(&[foreign], &[OVERUTILIZED]), Some(vec![over]), "one that would do harm is put right");
    }
}
