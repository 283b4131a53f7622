//! Files that state the loads of nodes: those of the reference, and plain tables.

use sim::{
    Run, Scenario,
    scenario::{Loads, parse},
    simulate,
};

use crate::support::build;

/// The file states a skew, but the VMs of both nodes use the same.
const SKEW: &str = r#"{"skew": [
 {"name": "hot", "cpu_usage": 0.9, "cpu_pressure": 0.4, "memory_usage": 0.5, "memory_pressure": 0.01,
  "vms": [{"id": "a", "cpu_consumption": 0.25, "memory_consumption": 0.1}, {"id": "b", "cpu_consumption": 0.25, "memory_consumption": 0.1}]},
 {"name": "cool", "cpu_usage": 0.1, "cpu_pressure": 0.0, "memory_usage": 0.5, "memory_pressure": 0.01,
  "vms": [{"id": "c", "cpu_consumption": 0.5, "memory_consumption": 0.2}]}
]}"#;

const NO_VMS: &str = r#"{"bare": [
 {"name": "hot", "cpu_usage": 0.9, "cpu_pressure": 0.4, "memory_usage": 0.5, "memory_pressure": 0.01},
 {"name": "cool", "cpu_usage": 0.1, "cpu_pressure": 0.0, "memory_usage": 0.5, "memory_pressure": 0.01, "vms": []}
]}"#;

fn only(text: &str) -> Scenario {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

#[test]
fn what_a_file_states_decides_the_first_step_and_the_vms_decide_the_others() {
    let (model, settings) = build(&only(SKEW));
    assert_eq!(settings.loads, Loads::Stated);
    assert!(settings.describe().contains("first loads as stated"), "{}", settings.describe());
    let mut run = Run::new(&model, settings, 0);
    run.step_and_inspect(|run| {
        assert_eq!(run.signals().node(0), [0.9, 0.4, 0.5, 0.01]);
        assert_eq!(run.signals().node(1), [0.1, 0.0, 0.5, 0.01]);
    });
    assert_eq!(run.history().moves().len(), 2, "both VMs leave the node that the file calls hot");
    assert_eq!(run.signals().cpu_usage, [0.0, 1.0], "from now on the VMs count");
    let (outcome, _) = simulate(&model, &settings, 0);
    assert_eq!((outcome.loads, outcome.start.cpu.sigma), ("stated", 0.4));
}

#[test]
fn loads_can_be_derived_from_the_vms_of_the_file() {
    let mut scenario = only(SKEW);
    scenario.rebalancing.loads = Loads::Vms;
    let (model, settings) = build(&scenario);
    assert!(settings.describe().contains("loads from VMs"), "{}", settings.describe());
    let (outcome, run) = simulate(&model, &settings, 0);
    assert_eq!((outcome.loads, outcome.start.cpu.max, outcome.migrations.total), ("vms", 0.5, 0));
    assert_eq!(run.signals().cpu_usage, [0.5, 0.5]);
}

#[test]
fn a_scenario_that_states_no_loads_derives_them() {
    let (_, settings) = build(&only("{name: t, nodes: [{name: a}], vms: []}"));
    assert_eq!(settings.loads, Loads::Vms);
}

#[test]
fn a_file_without_vms_keeps_its_loads_and_is_balanced_only_if_they_are() {
    let (model, settings) = build(&only(NO_VMS));
    assert_eq!(model.vm_count(), 0);
    let (outcome, run) = simulate(&model, &settings, 0);
    assert_eq!((outcome.balanced_at_step, outcome.none_over_at_step, outcome.migrations.total), (None, None, 0));
    assert_eq!(run.signals().node(0), [0.9, 0.4, 0.5, 0.01], "at the end as at the beginning");
    let even = NO_VMS.replace("0.9", "0.15");
    let (model, settings) = build(&only(&even));
    assert_eq!(simulate(&model, &settings, 0).0.balanced_at_step, Some(0));
}

/// With derived loads a node without VMs keeps its use, and its pressure follows from that.
#[test]
fn the_own_load_of_a_node_stays_when_a_vm_comes_and_counts_as_no_vm() {
    let text = "{name: t, nodes: [{name: a, ownLoad: {cpu: 0.5, memory: 0.25}}, {name: b}], \
                vms: [{name: v, cores: 8, cpu: 0.4, memoryUse: 1, memory: 32Gi, on: [a]}]}";
    let (model, settings) = build(&only(text));
    let mut run = Run::new(&model, settings, 0);
    run.observe();
    assert_eq!(run.signals().cpu_usage, [0.6, 0.0]);
    assert_eq!(run.signals().memory_usage, [0.5, 0.0]);
    assert_eq!(run.history().samples()[0].heaviest, 0.1);
    let mut scenario = only(NO_VMS);
    scenario.rebalancing.loads = Loads::Vms;
    let (model, settings) = build(&scenario);
    let mut run = Run::new(&model, settings, 0);
    run.observe();
    assert_eq!(run.signals().cpu_usage, [0.9, 0.1]);
    assert!((run.signals().cpu_pressure[0] - 0.2).abs() < 1e-12, "{:?}", run.signals());
}

#[test]
fn stated_loads_survive_writing_the_scenario_as_a_file() {
    for text in [SKEW, NO_VMS] {
        let scenario = only(text);
        assert_eq!(only(&scenario.to_yaml()), scenario);
    }
    let text =
        "{name: t, nodes: [{name: a, measured: {cpu: 1.5, cpuPressure: 0, memory: 0, memoryPressure: 0}}], vms: []}";
    let error = parse(text).unwrap_err().to_string();
    assert!(error.ends_with("nodes[0].measured.cpu: 1.5 is not a number from 0 to 1"), "{error}");
}

#[test]
fn a_bad_file_of_the_reference_is_told_with_its_place_and_what_to_do() {
    for (from, to, expected) in [
        (SKEW, "{\"skew\": []}", "line 1, column 10: skew: the list of nodes is empty: at least one node was expected"),
        (SKEW, "skew: []\n", "skew: the list of nodes is empty"),
        (
            "\"id\": \"b\"",
            "\"id\": \"a\"",
            "skew[0].vms[1].id: there is already a VM a on node hot: each VM needs its own id",
        ),
        ("\"id\": \"c\"", "\"id\": \"a\"", "skew[1].vms[0].id: there is already a VM a on node hot"),
        ("\"id\": \"c\"", "\"id\": \"\"", "skew[1].vms[0].id: it is empty: a VM needs an id"),
        ("\"name\": \"cool\"", "\"name\": \"hot\"", "skew[1].name: there is already a node hot"),
        (
            "\"id\": \"c\",",
            "\"id\": \"c\", \"cpu_cores\": 2,",
            "skew[1].vms[0].cpu_cores: cpu_consumption is there too: state either",
        ),
        (
            ", \"memory_consumption\": 0.2",
            "",
            "skew[1].vms[0]: memory_consumption is missing: cpu_consumption needs it",
        ),
        ("\"cpu_consumption\": 0.5, ", "", "skew[1].vms[0]: cpu_consumption is missing: memory_consumption needs it"),
        (
            "0.5, \"memory_consumption\": 0.2",
            "-1, \"memory_consumption\": 0.2",
            "cpu_consumption: -1 is not a number from 0 to 2",
        ),
        (
            "\"cpu_consumption\": 0.5, \"memory_consumption\": 0.2",
            "\"memory_bytes\": 1.5",
            "skew[1].vms[0].memory_bytes: 1.5 is not a whole number of bytes above 0",
        ),
    ] {
        let text = SKEW.replace(from, to);
        assert_ne!(text, SKEW);
        let error = parse(&text).expect_err(&text).to_string();
        assert!(error.starts_with("line ") && error.contains(expected), "{error}\n{expected} was expected");
    }
}

#[test]
fn whole_bytes_may_be_written_as_a_float() {
    for bytes in ["4294967296", "4294967296.0", "4.294967296e9"] {
        let vm = format!("\"memory_bytes\": {bytes}, \"memory_utilization\": 0.5, \"dirty_rate_mbps\": 50.0");
        let (model, _) = build(&only(&SKEW.replace("\"cpu_consumption\": 0.5, \"memory_consumption\": 0.2", &vm)));
        assert_eq!(model.vm(2).memory_bytes, 1 << 32);
        assert_eq!(model.dirty_rate(2).to_string(), "50Mbps");
    }
}

#[test]
fn a_table_of_nodes_is_a_scenario() {
    let expected = [[0.9, 0.4, 0.5, 0.01], [0.1, 0.0, 0.5, 0.0]];
    for text in [
        "node,cpu_usage,cpu_pressure,memory_usage,memory_pressure\nhot,0.9,0.4,0.5,0.01\ncool,0.1,0,0.5,0\n",
        "\u{feff}Node;CPU use;CPU pressure;Memory use;Memory pressure;Zone\nhot;90%;40 %;50%;1%;a\ncool;10%;0%;50%;0%;b\n",
        "\nmemory\tcpu\tMEM PSI\tCPU PSI\tinstance\n0.5\t0.9\t0.01\t0.4\thot\n0.5\t0.1\t0\t0\tcool\n",
        "[{\"node\": \"hot\", \"cpuUsage\": 0.9, \"cpuPressure\": \"40%\", \"memoryUsage\": 0.5, \"memoryPressure\": 0.01},\n \
         {\"node\": \"cool\", \"cpuUsage\": 0.1, \"cpuPressure\": 0, \"memoryUsage\": 0.5, \"memoryPressure\": 0}]",
        "# measured at noon\n- {name: hot, cpu: 0.9, cpu_psi: 0.4, memory: 0.5, memory_psi: 0.01}\n- {name: cool, cpu: 0.1, cpu_psi: 0, memory: 0.5, memory_psi: 0}\n",
    ] {
        let (model, settings) = build(&only(text));
        assert_eq!([0, 1].map(|node| model.node_name(node)), ["hot", "cool"], "{text}");
        let mut run = Run::new(&model, settings, 0);
        run.observe();
        for (node, expected) in expected.iter().enumerate() {
            let found = run.signals().node(node);
            assert!(
                found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12),
                "{found:?}\n{text}"
            );
        }
    }
}

#[test]
fn a_bad_table_is_told_with_its_line_and_what_to_do() {
    let csv = "node,cpu,cpu_psi,memory,memory_psi\nhot,0.9,0.4,0.5,0.01\ncool,0.1,0,0.5,0\n";
    let json = r#"[{"node": "hot", "cpu": 0.9, "cpu_psi": 0.4, "memory": 0.5, "memory_psi": 0.01}]"#;
    for (text, expected) in [
        (
            csv.replace("0.1", "10"),
            "line 3, column 1: cpu: 10 is not a number from 0 to 1; a percentage needs its sign, such as 45%",
        ),
        (csv.replace(",memory_psi", ""), "found record with 5 fields, but the previous record has 4 fields"),
        (
            csv.replace("memory_psi", "swap"),
            "line 2, column 1: memory_pressure is missing: a table has the columns node, cpu_usage, cpu_pressure, memory_usage, memory_pressure",
        ),
        (csv.replace("memory_psi", "mem"), "mem: memory already states this: keep one of the two"),
        (csv.replace("cool", "hot"), "node: there is already a node hot: each node needs its own name"),
        (csv.replace("cool", ""), "node: it is empty: a node needs a name"),
        (csv.lines().next().unwrap().to_owned(), "the table has no nodes: at least one was expected"),
        ("[]".to_owned(), "the table has no nodes: at least one was expected"),
        ("[1]".to_owned(), "line 1, column 2: [0]: 1 is no node: fields such as node and cpu_usage were expected"),
        (json.replace("0.9", "true"), "line 1, column 25: [0].cpu: true is not a number from 0 to 1"),
        (json.replace("\"memory\"", "\"disk\""), "line 1, column 2: [0]: memory_usage is missing"),
    ] {
        let error = parse(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error}\n{expected} was expected");
    }
}
