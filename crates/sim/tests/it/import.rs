//! Imported clusters: what was measured is what the simulator then plays.

use proptest::prelude::*;
use sim::{
    ClusterModel, LoadTimeline, Run, RunSettings,
    import::{Grid, Import, ImportedVm, Names, Order, Recording, Settings, Summary, anonymize},
    scenario::{Affinity, Load, NodeGroup, Rebalancing, Requests, Scenario, Taint, VmGroup, parse, text_of},
    units::{Bytes, Span},
};

const GIB: f64 = 1_073_741_824.0;

fn settings(count: u64, order: Order) -> Settings {
    Settings {
        name: "t".into(),
        description: "A test.".into(),
        grid: Grid::new(1_000_000_200, count * 300, 300),
        order,
        time_scale: 1.0,
        step: Span(300),
        rebalancing: Rebalancing::default(),
    }
}

fn vm(name: &str, node: Option<usize>) -> ImportedVm {
    ImportedVm { group: VmGroup { cores: 4.0, memory: Bytes(8 << 30), ..VmGroup::new(name) }, node, stated: None }
}

fn recording(values: &[Option<f64>], node: Option<usize>) -> Recording {
    let mut recording = Recording::new(values.len());
    for (at, value) in values.iter().enumerate() {
        value.iter().for_each(|value| recording.put(at, *value, node));
    }
    recording
}

fn all(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().map(|value| Some(*value)).collect()
}

fn finish(import: Import<Vec<u8>>) -> (Scenario, Summary) {
    let (text, summary) = import.finish().unwrap();
    (parse(&text_of(text).unwrap()).unwrap().remove(0), summary)
}

/// Cores used on a node at each step, without rebalancing.
fn played(scenario: &Scenario, node: u32) -> Vec<f64> {
    let mut scenario = scenario.clone();
    (scenario.rebalancing.limits.total, scenario.rebalancing.limits.per_node) = (0, 0);
    scenario.rebalancing.loads = sim::scenario::Loads::Vms;
    let model = ClusterModel::new(&scenario).unwrap();
    let mut run = Run::new(&model, RunSettings::new(&scenario).unwrap(), 1);
    let mut used = Vec::new();
    for _ in 0..model.steps() {
        run.step_and_inspect(|run| used.push(run.signals().cpu_usage[node as usize] * model.node_size(node).0));
    }
    used
}

fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, wanted) in found.iter().zip(expected) {
        assert!((found - wanted).abs() < 0.05, "{found} instead of {wanted}: {expected:?}");
    }
}

#[test]
fn a_node_uses_what_was_measured_and_what_its_vms_do_not_is_its_own() {
    let mut import = Import::new(settings(3, Order::Replay), vec![NodeGroup::reference("n")], Vec::new()).unwrap();
    let cores = [1.0, 2.0, 4.0];
    import.vm(vm("a", Some(0)), [recording(&all(&cores), Some(0)), recording(&all(&[GIB; 3]), Some(0))]).unwrap();
    for (signal, share) in [(0, 0.25), (2, 0.5)] {
        (0..3).for_each(|at| import.signal(0, signal).unwrap().put(at, share, None));
    }
    let (scenario, summary) = finish(import);
    let Load::Samples(own) = &scenario.nodes[0].own_load.cpu else { panic!("it changes") };
    let own: Vec<f64> = own.values.shares().map(|share| share * 32.0).collect();
    near(&own, &[7.0, 6.0, 4.0]);
    near(&played(&scenario, 0), &[8.0; 3]);
    assert_eq!(scenario.nodes[0].own_load.memory, Load::Constant(0.492), "(64 - 1) of 128 GiB");
    assert_eq!((summary.vms, summary.nodes, summary.samples), (1, 1, 12));
    assert_eq!(scenario.nodes[0].measured, None, "a replay begins in the past");
}

#[test]
fn a_forecast_begins_with_what_is_used_now_and_repeats_the_span() {
    let mut import = Import::new(settings(3, Order::Forecast), vec![NodeGroup::reference("n")], Vec::new()).unwrap();
    import.vm(vm("a", Some(0)), [recording(&all(&[1.0, 2.0, 4.0]), None), recording(&all(&[GIB; 3]), None)]).unwrap();
    let signals = [0.2, 0.05, 0.3, 0.01];
    for (signal, share) in signals.into_iter().enumerate() {
        import.signal(0, signal).unwrap().put(2, share, None);
    }
    let (mut scenario, _) = finish(import);
    scenario.duration = Span(6 * 300);
    scenario.nodes[0].own_load = Default::default();
    near(&played(&scenario, 0), &[4.0, 1.0, 2.0, 4.0, 1.0, 2.0]);
    let measured = scenario.nodes[0].measured.unwrap();
    assert_eq!([measured.cpu, measured.cpu_pressure, measured.memory, measured.memory_pressure], signals);
    assert_eq!(scenario.start.to_string(), "01:50", "by the clock of UTC");
}

#[test]
fn vms_without_samples_share_what_is_left_of_their_node_and_the_summary_tells() {
    let mut import = Import::new(settings(2, Order::Replay), vec![NodeGroup::reference("n")], Vec::new()).unwrap();
    let nothing = || [recording(&[None, None], None), recording(&[None, None], None)];
    import.vm(vm("a", Some(0)), [recording(&all(&[2.0, 2.0]), None), recording(&all(&[GIB; 2]), None)]).unwrap();
    import.vm(vm("b", Some(0)), nothing()).unwrap();
    import.vm(vm("c", Some(0)), nothing()).unwrap();
    import.vm(vm("lost", None), nothing()).unwrap();
    let stated = ImportedVm { stated: Some([0.25, 0.5]), ..vm("stated", None) };
    import.vm(stated, nothing()).unwrap();
    (0..2).for_each(|at| import.signal(0, 0).unwrap().put(at, 0.125, None));
    let (scenario, summary) = finish(import);
    let load = |name: &str| &scenario.vms.iter().find(|vm| vm.name == name).unwrap().cpu;
    assert_eq!((load("b"), load("c")), (&Load::Constant(0.25), &Load::Constant(0.25)), "two of eight cores");
    assert_eq!((load("lost"), load("stated")), (&Load::Constant(0.5), &Load::Constant(0.25)));
    assert_eq!((summary.guessed, summary.assumed, summary.stated), ([2, 0], 3, 1));
    assert_eq!((summary.vms_without_node, summary.nodes_without_use), (2, 0));
    near(&played(&scenario, 0)[..1], &[4.0 + 0.25 * 4.0 + 2.0]);
}

#[test]
fn gaps_and_vms_that_come_go_and_move_are_told() {
    let nodes = ["n", "m"].map(NodeGroup::reference).to_vec();
    let mut import = Import::new(settings(6, Order::Replay), nodes, Vec::new()).unwrap();
    let mut cpu = Recording::new(6);
    for (at, value, node) in [(1, 1.0, 0), (3, 3.0, 1), (4, 3.0, 1)] {
        cpu.put(at, value, Some(node));
    }
    import.vm(vm("a", Some(1)), [cpu, recording(&all(&[GIB; 6]), None)]).unwrap();
    let gone = recording(&all(&[8.0; 6]), Some(0));
    import.gone(&[gone, Recording::new(6)]);
    (0..6).for_each(|at| import.signal(0, 0).unwrap().put(at, 0.5, None));
    let not_migratable =
        VmGroup { migratable: false, not_migratable_because: Some("Disks".into()), ..vm("b", None).group };
    let pinned = ImportedVm { group: not_migratable, node: Some(0), stated: Some([0.0, 0.0]) };
    import.vm(pinned, [Recording::new(6), Recording::new(6)]).unwrap();
    let (scenario, summary) = finish(import);
    assert_eq!((summary.missing, summary.with_gaps, summary.longest_gap_seconds), (1, 1, 300));
    assert_eq!((summary.younger, summary.ended, summary.moved), (1, 1, 1));
    assert_eq!(summary.not_migratable.get("Disks"), Some(&1));
    let Load::Samples(cpu) = &scenario.vms[0].cpu else { panic!("it changes") };
    let shares: Vec<f64> = cpu.values.shares().map(|share| share * 4.0).collect();
    near(&shares, &[7.0 / 3.0, 1.0, 2.0, 3.0, 3.0, 3.0]);
    let Load::Samples(own) = &scenario.nodes[0].own_load.cpu else { panic!("it changes") };
    let own: Vec<f64> = own.values.shares().map(|share| share * 32.0).collect();
    near(&own, &[8.0, 7.0, 8.0, 8.0, 8.0, 8.0]);
}

#[test]
fn names_are_replaced_by_the_same_ones_for_the_same_cluster_and_labels_go() {
    let labels =
        [("zone", "secret-zone"), ("rack", "secret-rack")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let taints = ["secret-taint", "node-role.kubernetes.io/infra"]
        .map(|key| Taint { key: key.into(), effect: Default::default() });
    let node =
        NodeGroup { labels: labels.clone().into(), taints: taints.into(), ..NodeGroup::reference("secret-node") };
    let affinity = Affinity { nodes: labels[..1].iter().cloned().collect(), apart: Some("secret-word".into()) };
    let tolerations = vec!["secret-taint".to_owned(), "node-role.kubernetes.io/infra".to_owned()];
    let group = VmGroup { affinity, tolerations, ..VmGroup::new("secret-vm") };
    let hidden = |cluster: &str| {
        let mut nodes = vec![node.clone()];
        let mut vms = vec![ImportedVm { group: group.clone(), node: Some(0), stated: None }];
        anonymize(&Names::new(cluster), &mut nodes, &mut vms);
        let mut vm = vms.remove(0).group;
        vm.on = vec![nodes[0].name.clone()];
        Scenario::new("t", nodes, vec![vm])
    };
    let scenario = hidden("one");
    let text = scenario.to_yaml();
    assert!(!text.contains("secret") && text.contains("node-role.kubernetes.io/infra"), "{text}");
    assert_eq!(scenario.nodes[0].labels.len(), 1, "nobody asks for the rack");
    assert_eq!(ClusterModel::new(&scenario).unwrap().vm(0).node, Some(0));
    assert_eq!(hidden("one"), scenario);
    assert_ne!(hidden("two").nodes[0].name, scenario.nodes[0].name);
    assert_eq!(scenario.vms[0].affinity.nodes.iter().next(), scenario.nodes[0].labels.iter().next(), "it still fits");
}

#[test]
fn what_other_pods_request_is_not_free_for_vms() {
    let reserved = Requests { cpu: Some(1.0), memory: Some(Bytes(100 << 30)) };
    let small = NodeGroup { reserved, ..NodeGroup::reference("small") };
    let requests = Requests { cpu: Some(0.5), memory: Some(Bytes(40 << 30)) };
    let vms = vec![VmGroup { requests, ..VmGroup::new("vm") }];
    let model = ClusterModel::new(&Scenario::new("t", vec![small, NodeGroup::reference("free")], vms)).unwrap();
    assert_eq!(model.vm(0).node, Some(1), "40 of 128 GiB do not fit beside 100");
}

#[test]
fn wrong_imported_fields_are_told_with_their_place() {
    let text = |node: &str, vm: &str| format!("{{name: t, nodes: [{{name: n, {node}}}], vms: [{{name: v, {vm}}}]}}");
    for (node, vm, problem) in [
        ("ownLoad: {cpu: 1.5}", "", "nodes[0].ownLoad.cpu: 1.5 is not a number from 0 to 1"),
        ("ownLoad: {cpu: {between: [0, 1]}}", "", "what a node uses itself is not drawn: state a number"),
        ("reserved: {cpu: -1}", "", "-1 is not a number of cores from 0 on"),
        ("", "cpu: {samples: {every: 0s, values: A}}", "0s is not a length of time above 0"),
        ("", "cpu: {samples: {every: 5m, values: ''}}", "it is empty: at least one sample was expected"),
        ("", "cpu: {samples: {every: 5m, values: '!'}}", "character 1 of the samples is none of"),
        ("", "cpu: {periodic: {every: 1m, points: [[2m, 0.1]]}}", "1m is not after the last point"),
        ("", "notMigratableBecause: disks", "it can be migrated: `migratable` is not false"),
    ] {
        let error = parse(&text(node, vm).replace(", }", "}")).unwrap_err().to_string();
        assert!(error.contains(problem), "{problem}: {error}");
    }
    let damaged = [&[0x1f, 0x8b][..], b"nothing"].concat();
    assert!(text_of(damaged).unwrap_err().to_string().contains("it cannot be decompressed"));
}

proptest! {
    /// Thousandths of a VM of four cores are 0.002 cores at most.
    #[test]
    fn what_was_measured_of_a_vm_is_played(
        cores in prop::collection::vec(0.0..5.0_f64, 2..40),
        forecast in any::<bool>(),
    ) {
        let order = if forecast { Order::Forecast } else { Order::Replay };
        let count = cores.len();
        let mut import = Import::new(settings(count as u64, order), vec![NodeGroup::reference("n")], Vec::new()).unwrap();
        import.vm(vm("a", Some(0)), [recording(&all(&cores), None), recording(&all(&vec![GIB; count]), None)]).unwrap();
        let (scenario, _) = finish(import);
        let model = ClusterModel::new(&scenario).unwrap();
        prop_assert_eq!(model.steps(), count as u64);
        let mut load = LoadTimeline::new(&model, 0);
        for step in 0..count {
            load.advance(step as u64);
            let at = if forecast { (step + count - 1) % count } else { step };
            let found = load.shares()[0][0] * 4.0;
            prop_assert!((found - cores[at]).abs() < 0.003, "{} instead of {}", found, cores[at]);
        }
        prop_assert_eq!(parse(&scenario.to_yaml()).unwrap(), vec![scenario], "a file can be written as YAML, too");
    }
}
