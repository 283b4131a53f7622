//! Golden vectors of the reference: from a file in its format to buckets.

use sim::{
    Run,
    scenario::{Loads, parse},
};

use crate::support::build;

/// Six nodes with the signals of the golden vectors. The VMs of one node add up to its use.
const FILE: &str = r#"{"golden": [
 {"name": "n1", "cpu_usage": 0.92, "cpu_pressure": 0.30, "memory_usage": 0.40, "memory_pressure": 0.03, "vms": []},
 {"name": "n2", "cpu_usage": 0.75, "cpu_pressure": 0.05, "memory_usage": 0.80, "memory_pressure": 0.10},
 {"name": "n3", "cpu_usage": 0.50, "cpu_pressure": 0.035, "memory_usage": 0.50, "memory_pressure": 0.035},
 {"name": "n4", "cpu_usage": 0.20, "cpu_pressure": 0.014, "memory_usage": 0.30, "memory_pressure": 0.021},
 {"name": "n5", "cpu_usage": 0.10, "cpu_pressure": 0.007, "memory_usage": 0.70, "memory_pressure": 0.0,
  "vms": [{"id": "old", "cpu_consumption": 0.04, "memory_consumption": 0.5},
          {"id": "new", "cpu_cores": 8, "memory_bytes": 34359738368, "cpu_utilization": 0.24, "memory_utilization": 0.8, "pod_name": "p", "scheduled_node": "n5"}]},
 {"name": "n6", "cpu_usage": 0.50, "cpu_pressure": 0.035, "memory_usage": 0.50, "memory_pressure": 0.035}
]}"#;

#[test]
fn a_file_of_the_reference_gives_the_signals_of_the_reference() {
    let scenario = parse(FILE).unwrap().remove(0);
    assert_eq!(scenario.name, "golden");
    let (model, settings) = build(&scenario);
    let mut run = Run::new(&model, settings, 0);
    run.observe();
    let expected = [
        [0.92, 0.30, 0.40, 0.03],
        [0.75, 0.05, 0.80, 0.10],
        [0.50, 0.035, 0.50, 0.035],
        [0.20, 0.014, 0.30, 0.021],
        [0.10, 0.007, 0.70, 0.0],
        [0.50, 0.035, 0.50, 0.035],
    ];
    for (node, expected) in expected.iter().enumerate() {
        assert_eq!(run.signals().node(node), *expected, "node {node}");
    }
    // In every mode of the reference n1 and n2 are over, n5 is appropriate, and the others are under.
    let symbols: String = run.buckets().of().iter().map(|bucket| bucket.symbol()).collect();
    assert_eq!(symbols, "▲▲▼▼■▼");
    assert!((run.buckets().average() - 0.421_667).abs() < 1e-6, "{}", run.buckets().average());
    assert_eq!(model.vm_count(), 2);
}

/// The pressures that follow from the use of a node, at the reference's corner values.
#[test]
fn pressures_have_the_corner_values_of_the_reference() {
    for (usage, cpu, memory) in [
        (0.0, 0.0, 0.0),
        (0.3, 0.021, 0.021),
        (0.6999999, 0.049, 0.049),
        (0.7, 0.0, 0.0),
        (0.8, 0.1, 0.1),
        (0.9, 0.2, 0.2),
        (0.95, 0.35, 0.35),
        (1.0, 0.8, 0.8),
    ] {
        let text = format!(
            "{{\"a\": [{{\"name\": \"n\", \"cpu_usage\": {usage}, \"cpu_pressure\": 0, \"memory_usage\": {usage}, \"memory_pressure\": 0}}]}}"
        );
        let mut scenario = parse(&text).unwrap().remove(0);
        scenario.rebalancing.loads = Loads::Vms;
        let (model, settings) = build(&scenario);
        let mut run = Run::new(&model, settings, 0);
        run.observe();
        let found = run.signals().node(0);
        assert!((found[1] - cpu).abs() < 1e-6 && (found[3] - memory).abs() < 1e-6, "{usage}: {found:?}");
    }
}
