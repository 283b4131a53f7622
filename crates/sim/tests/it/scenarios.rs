//! Scenario files: the shipped ones, and the errors of invalid ones.

use sim::{
    ClusterModel,
    scenario::{Load, generate::generate, parse, shipped},
};

/// Holds L1 (crashing samples).
#[test]
fn every_shipped_scenario_can_be_read_and_is_what_it_says() {
    let sizes: Vec<(String, usize, usize)> = shipped::FILES
        .iter()
        .map(|(name, text)| {
            let scenario = parse(text).unwrap_or_else(|error| panic!("{name}: {error}")).remove(0);
            assert_eq!(scenario.name, *name);
            assert!(scenario.description.ends_with('.'));
            let model = ClusterModel::new(&scenario).unwrap();
            (scenario.name, model.node_count(), model.vm_count())
        })
        .collect();
    assert!(sizes.contains(&("week".to_owned(), 10, 148)), "{sizes:?}");
    assert_eq!(sizes.len(), 8);
}

/// Holds L5 (nameless objects).
#[test]
fn a_mistake_is_told_with_its_line_its_field_and_what_was_expected() {
    let base = "name: a\nnodes:\n- name: n\n  cores: 32\nvms:\n- name: v\n  cpu: 0.5\n";
    for (text, line, field, expected) in [
        (base.replace("cores: 32", "corse: 32"), 4, "nodes[0].corse", "unknown field `corse`, expected one of"),
        (base.replace("name: n", "name: ''"), 3, "nodes[0].name", "it is empty: a node needs a name"),
        (base.replace("name: v", "name: ''"), 6, "vms[0].name", "it is empty"),
        (base.replace("cores: 32", "cores: many"), 4, "nodes[0].cores", "floating point"),
        (base.replace("cores: 32", "cores: -1"), 4, "nodes[0].cores", "-1 is not a number of cores above 0"),
        (
            base.replace("cores: 32", "memory: 8GB"),
            4,
            "nodes[0].memory",
            "`8GB` is not an amount of memory such as 8Gi",
        ),
        (base.replace("cpu: 0.5", "cpu: 99"), 7, "vms[0].cpu", "99 is not a load: a share from 0 to 1 was expected"),
        (base.replace("cpu: 0.5", "cpu: {ramp: {from: 0.1, to: 0.5}}"), 7, "vms[0].cpu", "missing field `end`"),
        (base.replace("cpu: 0.5", "cpu: {sine: 3}"), 7, "vms[0].cpu", "unknown variant `sine`, expected one of"),
        (base.replace("cpu: 0.5", "on: [m]"), 7, "vms[0].on[0]", "there is no node or group m; there are n"),
        (base.to_owned() + "events:\n- at: 5m\n  drain: m\n", 10, "events[0].drain", "there is no node or group m"),
        (base.to_owned() + "events:\n- at: 5m\n", 9, "events[0]", "it has 0 actions: exactly one of cordon"),
        (base.to_owned() + "step: 0s\n", 8, "step", "0s is not a length from 1s to 1d"),
        (
            base.to_owned() + "rebalancing:\n  algorithm: k33x\n",
            9,
            "rebalancing.algorithm",
            "there is no algorithm \"k33x\"",
        ),
        (base.to_owned() + "rebalancing:\n  mode: asym-lo\n", 9, "rebalancing.mode", "did you mean \"asym-low\"?"),
        (
            base.to_owned() + "tasks:\n- {name: t, every: 5m, cpu: 3, seconds: 9}\n",
            9,
            "tasks[0].cpu",
            "3 to 3 is not a range within 0 to 1",
        ),
        (
            base.to_owned() + "tasks:\n- {name: t, every: 5m, seconds: 9, when: {}}\n",
            9,
            "tasks[0].when",
            "it states nothing: at least one of nodeCpuAbove, nodeCpuBelow",
        ),
        (
            base.to_owned() + "tasks:\n- {name: t, every: 5m, seconds: 9, when: {nodeCpuAbove: 80}}\n",
            9,
            "tasks[0].when.nodeCpuAbove",
            "80 is not a share from 0 to 1",
        ),
        (
            base.to_owned() + "tasks:\n- {name: t, every: 5m, seconds: 9, when: {nodesAbove: 1}}\n",
            9,
            "tasks[0].when",
            "unknown field `nodesAbove`",
        ),
    ] {
        let error = parse(&text).expect_err(&text);
        assert_eq!(error.place.map(|(line, _)| line), Some(line), "{error}\n{text}");
        assert!(error.field.starts_with(field), "{error}: {field} was expected");
        assert!(error.to_string().contains(expected), "{error}: {expected} was expected");
    }
}

#[test]
fn json_is_read_like_yaml_with_the_same_care() {
    let text = "{\"name\": \"a\",\n \"nodes\": [{\"name\": \"n\",\n   \"corse\": 1}], \"vms\": []}";
    let error = parse(text).unwrap_err();
    assert_eq!(error.place.map(|(line, _)| line), Some(3), "{error}");
    assert!(error.to_string().contains("nodes[0].corse: unknown field `corse`"), "{error}");
    assert!(parse(&text.replace("corse", "cores")).is_ok());
}

#[test]
fn a_mistake_in_a_file_of_the_reference_is_told_too() {
    let text = "{\"a\": [{\"name\": \"n\", \"cpu_usage\": 0.5,\n \"cpu_pressure\": 1.5, \"memory_usage\": 0, \"memory_pressure\": 0}]}";
    let error = parse(text).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 18: a[0].cpu_pressure: 1.5 is not a number from 0 to 1");
    let error = parse(&text.replace(" \"memory_usage\": 0,", "")).unwrap_err();
    assert!(error.to_string().contains("missing field `memory_usage`"), "{error}");
}

#[test]
fn absurd_sizes_are_refused_before_they_cost_anything() {
    for text in [
        "name: a\nnodes: [{name: n, count: 4000000000}]\nvms: []\n",
        "name: a\nnodes: [{name: n}]\nvms: [{name: v, count: 4000000000}]\n",
        "name: a\nnodes: [{name: n}]\nvms: []\nduration: 100000d\nstep: 1s\n",
        "name: a\nnodes: [{name: n}]\nvms: []\ntasks: [{name: t, every: 1s, count: 1000000000, seconds: 1}]\n",
        "name: a\nnodes: []\nvms: []\n",
        "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

/// Holds L1 (crashing samples).
#[test]
fn a_generated_scenario_has_the_nodes_and_vms_asked_for_and_reads_back() {
    for (nodes, vms) in [(1, 1), (7, 100), (12, 648), (5, 3)] {
        let scenario = generate(nodes, vms, 3, false).unwrap();
        let model = ClusterModel::new(&scenario).unwrap();
        assert_eq!((model.node_count(), model.vm_count()), (nodes as usize, vms as usize));
        assert_eq!(parse(&scenario.to_yaml()).unwrap()[0], scenario);
    }
    assert!(generate(0, 5, 0, false).is_err());
    assert!(generate(5, u32::MAX, 0, false).is_err());
    let unsteady = generate(12, 648, 1, true).unwrap();
    assert_eq!(unsteady.vms.iter().filter(|group| group.noise > 0.0).count(), 12);
    assert_eq!(ClusterModel::new(&unsteady).unwrap().vm_count(), 648);
}

#[test]
fn vms_without_a_place_are_spread_over_the_nodes() {
    let text =
        "name: a\nnodes: [{name: n, count: 4}]\nvms: [{name: v, count: 40, memory: 8Gi, affinity: {apart: x}}]\n";
    let model = ClusterModel::new(&parse(text).unwrap()[0]).unwrap();
    let settings = sim::RunSettings::new(&parse(text).unwrap()[0]).unwrap();
    let run = sim::Run::new(&model, settings, 0);
    assert!((0..4).all(|node| run.vms(node).len() == 1), "four can be apart on four nodes");
    assert_eq!(run.pending().len(), 36);
}

/// Holds L6 (unequal round trip).
#[test]
fn loads_are_written_as_they_are_read() {
    for text in [
        "0.5",
        "{between: [0.1, 0.2]}",
        "{points: [[10m, 0.1], [1h, 0.9]]}",
        "{daily: {low: 0.1, high: 0.5, peak: \"14:00\", weekend: 0.5}}",
    ] {
        let load: Load = serde_saphyr::from_str(text).unwrap();
        let again: Load = serde_saphyr::from_str(&serde_saphyr::to_string(&load).unwrap()).unwrap();
        assert_eq!(load, again);
    }
}
