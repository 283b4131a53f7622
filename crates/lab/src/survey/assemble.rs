//! Makes a survey of what was read.

use std::collections::BTreeMap;

use api::{VirtualMachine, virtual_machine::Phase};
use balance::Bucket;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::Value;
use sim::Spread;

use super::{NodeState, PartState, Scoring, Survey, Vms};
use crate::{
    kwok::by_number,
    soft_tainter::{LowNodeUtilization, NodeUtilization, classify, percents, taints},
    up::JournalEntry,
};

/// How many migrations are shown.
const MOST_MIGRATIONS: usize = 20;

/// The gauges of the exporter, in the order of [`NodeState`].
pub(super) const SIGNALS: [&str; 4] =
    ["node_cpu_usage_ratio", "node_cpu_pressure_psi", "node_memory_usage_ratio", "node_memory_pressure_psi"];

/// Everything that was read, or why it could not be read. Values are responses of Prometheus.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) lab: String,
    pub(super) taken: Timestamp,
    pub(super) time_scale: f64,
    pub(super) parts: Vec<PartState>,
    pub(super) nodes: Result<Vec<Node>, String>,
    pub(super) vms: Result<Vec<VirtualMachine>, String>,
    pub(super) signals: Result<Value, String>,
    pub(super) plugin: Option<LowNodeUtilization>,
    pub(super) scores: Option<Result<Value, String>>,
    pub(super) migrations: Result<Vec<JournalEntry>, String>,
}

pub(super) fn assemble(read: Read) -> Survey {
    let mut problems = Vec::new();
    let mut nodes = known(read.nodes, &mut problems);
    let vms = known(read.vms, &mut problems);
    let mut migrations = known(read.migrations, &mut problems);
    nodes.sort_by_key(|node| by_number(&node.name_any()));
    let signals =
        read.signals.map_err(|problem| problems.push(problem)).map(|answer| by_node(&answer)).unwrap_or_default();
    let mut rows: Vec<NodeState> = nodes.iter().map(|node| row(node, &vms, &signals)).collect();
    if let (Some(plugin), Some(scores)) = (&read.plugin, read.scores) {
        match scores.and_then(|answer| score(plugin, &answer, &mut rows)) {
            Ok(()) => {}
            Err(problem) => problems.push(problem),
        }
    }
    let migration_count = migrations.len();
    migrations.reverse();
    migrations.truncate(MOST_MIGRATIONS);
    let scoring = read.plugin.map(|plugin| Scoring {
        query: plugin.query,
        under: plugin.thresholds.under,
        over: plugin.thresholds.over,
        deviation: plugin.thresholds.is_deviation,
    });
    Survey {
        lab: read.lab,
        taken: read.taken,
        time_scale: read.time_scale,
        parts: read.parts,
        spread: spread(&rows),
        nodes: rows,
        scoring,
        vms: count(&vms),
        migrations,
        migration_count,
        problems,
    }
}

fn known<T>(read: Result<Vec<T>, String>, problems: &mut Vec<String>) -> Vec<T> {
    read.unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    })
}

/// The value of each series of each node.
fn by_node(answer: &Value) -> BTreeMap<(String, String), f64> {
    let samples = answer["data"]["result"].as_array().into_iter().flatten();
    let read = |sample: &Value| {
        let label = |name: &str| Some(sample["metric"][name].as_str()?.to_owned());
        Some(((label("instance")?, label("__name__")?), value(sample)?))
    };
    samples.filter_map(read).collect()
}

fn value(sample: &Value) -> Option<f64> {
    sample["value"][1].as_str()?.parse().ok()
}

fn row(node: &Node, vms: &[VirtualMachine], signals: &BTreeMap<(String, String), f64>) -> NodeState {
    let name = node.name_any();
    let [cpu_use, cpu_pressure, memory_use, memory_pressure] =
        SIGNALS.map(|signal| signals.get(&(name.clone(), signal.to_owned())).copied());
    let runs_here = |vm: &&VirtualMachine| {
        vm.status.as_ref().is_some_and(|status| status.node_name.as_deref() == Some(name.as_str()))
    };
    let vms = vms.iter().filter(runs_here).count() as u32;
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
    let soft = taints.filter_map(|taint| match taint.key.as_str() {
        taints::OVERUTILIZED | taints::APPROPRIATE => Some(taint.key.rsplit('/').next()?.to_owned()),
        _ => None,
    });
    let soft_taints = soft.collect();
    let takes_vms = !spec.and_then(|spec| spec.unschedulable).unwrap_or(false);
    NodeState {
        name,
        takes_vms,
        cpu_use,
        cpu_pressure,
        memory_use,
        memory_pressure,
        score: None,
        bucket: None,
        vms,
        soft_taints,
    }
}

/// Adds scores and buckets, as the descheduler would compute them now.
fn score(plugin: &LowNodeUtilization, answer: &Value, rows: &mut [NodeState]) -> Result<(), String> {
    let percents = percents(answer).map_err(|problem| format!("scoring the nodes: {problem}"))?;
    for sample in answer["data"]["result"].as_array().into_iter().flatten() {
        let name = sample["metric"]["instance"].as_str().unwrap_or_default();
        if let Some(row) = rows.iter_mut().find(|row| row.name == name) {
            row.score = value(sample);
        }
    }
    let utilization = |row: &NodeState| {
        Some((row.name.clone(), NodeUtilization { percent: *percents.get(&row.name)?, takes_pods: row.takes_vms }))
    };
    let utilizations: BTreeMap<String, NodeUtilization> = rows.iter().filter_map(utilization).collect();
    let buckets: BTreeMap<String, Bucket> = classify(plugin.thresholds, &utilizations);
    for row in rows {
        row.bucket = buckets.get(&row.name).map(ToString::to_string);
    }
    Ok(())
}

fn spread(rows: &[NodeState]) -> Option<Spread> {
    let uses: Vec<f64> = rows.iter().filter(|row| row.takes_vms).filter_map(|row| row.cpu_use).collect();
    if uses.is_empty() {
        return None;
    }
    let count = uses.len() as f64;
    let mean = uses.iter().sum::<f64>() / count;
    let variance = uses.iter().map(|used| (used - mean).powi(2)).sum::<f64>() / count;
    let (min, max) = uses.iter().fold((f64::MAX, f64::MIN), |(min, max), used| (min.min(*used), max.max(*used)));
    Some(Spread { mean, sigma: variance.sqrt(), min, max })
}

fn count(vms: &[VirtualMachine]) -> Vms {
    let status = vms.iter().filter_map(|vm| vm.status.as_ref());
    let running = status.clone().filter(|status| status.phase == Some(Phase::Running)).count() as u32;
    let migrating = status.filter(|status| status.evacuation_node_name.is_some()).count() as u32;
    Vms { all: vms.len() as u32, running, migrating }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use standins::descheduler::Thresholds;

    use super::*;

    fn node(name: &str, closed: bool, taints: &[&str]) -> Node {
        let taints: Vec<_> = taints.iter().map(|key| json!({"key": key, "effect": "PreferNoSchedule"})).collect();
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"unschedulable": closed, "taints": taints}}))
            .unwrap()
    }

    fn vm(name: &str, node: &str, phase: &str, leaves: Option<&str>) -> VirtualMachine {
        serde_json::from_value(json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine", "metadata": {"name": name},
            "spec": {"resources": {"cpu": 1, "memory": "1Gi"}},
            "status": {"nodeName": node, "phase": phase, "evacuationNodeName": leaves},
        }))
        .unwrap()
    }

    fn sample(series: &str, node: &str, value: &str) -> Value {
        json!({"metric": {"__name__": series, "instance": node}, "value": [1, value]})
    }

    fn answer(samples: &[Value]) -> Value {
        json!({"status": "success", "data": {"resultType": "vector", "result": samples}})
    }

    fn read() -> Read {
        Read {
            lab: "lab".into(),
            taken: Timestamp::UNIX_EPOCH,
            time_scale: 1.0,
            parts: Vec::new(),
            nodes: Ok(vec![
                node("n-10", false, &[taints::OVERUTILIZED, "other"]),
                node("n-9", false, &[]),
                node("n-2", true, &[]),
            ]),
            vms: Ok(vec![
                vm("a", "n-10", "Running", Some("n-10")),
                vm("b", "n-10", "Running", None),
                vm("c", "n-9", "Scheduled", None),
            ]),
            signals: Ok(answer(&[
                sample("node_cpu_usage_ratio", "n-10", "0.8"),
                sample("node_cpu_pressure_psi", "n-10", "0.1"),
                sample("node_cpu_usage_ratio", "n-9", "0.2"),
                sample("node_cpu_usage_ratio", "n-2", "0.9"),
            ])),
            plugin: Some(LowNodeUtilization {
                query: "q".into(),
                thresholds: Thresholds { under: 10, over: 10, is_deviation: true },
                node_selector: None,
            }),
            scores: Some(Ok(answer(&[
                sample("q", "n-10", "0.6"),
                sample("q", "n-9", "0.05"),
                sample("q", "n-2", "0"),
            ]))),
            migrations: Ok(Vec::new()),
        }
    }

    #[test]
    fn nodes_have_signals_scores_buckets_vms_and_taints() {
        let survey = assemble(read());
        let names: Vec<_> = survey.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n-2", "n-9", "n-10"], "by number");
        let [closed, cool, hot] = &survey.nodes[..] else { panic!("three nodes") };
        assert_eq!((hot.cpu_use, hot.cpu_pressure, hot.memory_use), (Some(0.8), Some(0.1), None));
        assert_eq!((hot.score, hot.bucket.as_deref(), hot.vms), (Some(0.6), Some("over-utilized"), 2));
        assert_eq!(hot.soft_taints, ["overutilized"]);
        assert_eq!((cool.bucket.as_deref(), cool.vms), (Some("under-utilized"), 1));
        assert_eq!(closed.bucket.as_deref(), Some("appropriately-utilized"), "a cordoned node never takes VMs");
        assert_eq!(survey.vms, Vms { all: 3, running: 2, migrating: 1 });
        assert_eq!(survey.problems, [""; 0]);
    }

    #[test]
    fn the_spread_is_that_of_nodes_that_take_vms() {
        let spread = assemble(read()).spread.unwrap();
        assert!((spread.mean - 0.5).abs() < 1e-9 && (spread.sigma - 0.3).abs() < 1e-9, "{spread:?}");
        assert_eq!((spread.min, spread.max), (0.2, 0.8));
    }

    #[test]
    fn what_cannot_be_read_is_a_problem_and_the_rest_is_shown() {
        let survey = assemble(Read {
            signals: Err("asking Prometheus: no answer".into()),
            scores: Some(Ok(answer(&[sample("q", "n-9", "NaN")]))),
            migrations: Err("reading the journal: gone".into()),
            ..read()
        });
        assert_eq!(survey.problems.len(), 3, "{:?}", survey.problems);
        assert_eq!((survey.spread, survey.nodes.len()), (None, 3));
        assert!(survey.nodes.iter().all(|node| node.score.is_none() && node.bucket.is_none()));
        let survey = assemble(Read { nodes: Err("no".into()), vms: Err("no".into()), ..read() });
        assert!(survey.nodes.is_empty());
    }

    #[test]
    fn the_latest_migrations_come_first() {
        let migration = |number: i64| JournalEntry {
            vm: format!("vm-{number}"),
            from: "a".into(),
            to: None,
            why: "Descheduler".into(),
            outcome: JournalEntry::RUNNING.into(),
            began: Timestamp::from_second(number).unwrap(),
            ended: None,
        };
        let survey = assemble(Read { migrations: Ok((0..30).map(migration).collect()), ..read() });
        assert_eq!((survey.migrations[0].vm.as_str(), survey.migrations.len()), ("vm-29", MOST_MIGRATIONS));
        assert_eq!(survey.migration_count, 30);
    }
}
