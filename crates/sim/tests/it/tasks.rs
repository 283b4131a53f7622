//! Tasks that come in a certain state of the cluster.

use sim::{ClusterModel, Run, RunSettings, scenario::parse};

/// The use of each VM in cores, step by step. Nothing is evicted.
fn uses(tasks: &str) -> Vec<Vec<f64>> {
    let text = format!(
        "{{name: t, step: 1s, duration: 60s, nodes: [{{name: a, cores: 4, memory: 8Gi}}, {{name: b, cores: 4, memory: 8Gi}}], \
         vms: [{{name: idle, cores: 1, cpu: 0.1, on: [a]}}, \
         {{name: busy, cores: 4, cpu: {{points: [[0s, 0], [30s, 0.9], [60s, 0]]}}, on: [b]}}], \
         tasks: [{tasks}], rebalancing: {{interval: 1h}}}}"
    );
    let scenario = &parse(&text).unwrap_or_else(|error| panic!("{error}"))[0];
    let model = ClusterModel::new(scenario).unwrap();
    let mut run = Run::new(&model, RunSettings::new(scenario).unwrap(), 0);
    let step = |_| {
        run.step();
        (0..2).map(|vm| run.usage(vm)[0]).collect()
    };
    (0..model.steps()).map(step).collect()
}

/// The first and the last step in which the idle VM has a task, which must come without a gap.
fn with_task(condition: &str) -> Option<(usize, usize)> {
    let tasks = format!("{{name: t, every: 1s, cpu: 0.5, seconds: 1, target: {{vms: idle}}, when: {condition}}}");
    let steps: Vec<usize> =
        uses(&tasks).iter().enumerate().filter(|(_, uses)| uses[0] > 0.5).map(|(step, _)| step).collect();
    let (first, last) = (*steps.first()?, *steps.last()?);
    assert_eq!(steps, (first..=last).collect::<Vec<_>>(), "{condition}");
    Some((first, last))
}

#[test]
fn a_condition_decides_in_which_steps_tasks_come() {
    // The busy node uses 0.03 more in each second, and 0.6 from the 20th to the 40th.
    let (first, last) = with_task("{nodeCpuAbove: 0.6}").unwrap();
    assert!((20..=22).contains(&first) && (39..=42).contains(&last), "{first} to {last}");
    assert_eq!(with_task("{nodeCpuAbove: 0.95}"), None);
    // The other node uses less than a tenth, unless it has the task itself.
    assert!(with_task("{nodeCpuBelow: 0.2}").is_some());
    assert_eq!(with_task("{nodeMemoryAbove: 0.9}"), None);
    assert_eq!(with_task("{nodeCpuAbove: 0.6, nodeMemoryAbove: 0.9}"), None, "all parts must hold");
}

#[test]
fn tasks_for_the_coldest_nodes_go_to_the_idle_one() {
    let uses = uses("{name: t, every: 1s, cpu: 0.2, seconds: 1, target: {coldestNodes: 1}}");
    assert!(uses[25..35].iter().all(|uses| (uses[0] - 0.3).abs() < 1e-9), "{uses:?}");
    assert!(uses[25..35].iter().all(|uses| uses[1] <= 3.6 + 1e-9), "{uses:?}");
}
