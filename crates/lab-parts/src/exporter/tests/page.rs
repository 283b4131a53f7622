//! The text that Prometheus scrapes.

use balance::{Algorithm, PressureModel, Scores, Signals, promql::PARETO_GAUGE};

use super::fixture::{GIB, at, node, pod, sample, vm};
use crate::{
    exporter::{Index, ObservedPod, Renderer, Snapshot, vm_page},
    launcher::Load,
};

#[test]
fn counters_are_there_at_the_first_scrape() {
    let text = Renderer::default().render(&sample().snapshot(at(0)));
    assert!(text.contains("node_cpu_seconds_total{instance=\"n1\",mode=\"idle\"} 0\n"), "{text}");
}

/// Holds L13 (missing metrics).
#[test]
fn the_text_has_every_metric_of_both_families_with_the_node_as_instance() {
    let mut index = sample();
    index.apply_pod(
        &ObservedPod { load: Some(Load { cpu_cores: 8.0, memory_bytes: 32.0 * GIB }), ..pod("a", "a-1", "n1", 0.0) },
        at(0),
    );
    let text = Renderer::default().render(&index.snapshot(at(100)));
    let both = r#"node="n1",instance="n1""#;
    for line in [
        format!("node_cpu_usage_ratio{{{both}}} 0.25"),
        format!("node_cpu_pressure_psi{{{both}}} 0.0175"),
        format!("node_memory_usage_ratio{{{both}}} 0.25"),
        format!("node_memory_pressure_psi{{{both}}} 0.0175"),
        format!("node_vm_count{{{both}}} 1"),
        "node_cpu_seconds_total{instance=\"n1\",mode=\"idle\"} 75".to_owned(),
        "node_cpu_seconds_total{instance=\"n1\",mode=\"user\"} 15".to_owned(),
        "node_cpu_seconds_total{instance=\"n1\",mode=\"system\"} 10".to_owned(),
        "node_memory_MemAvailable_bytes{instance=\"n1\"} 103079215104".to_owned(),
        format!("kube_node_role{{{both},role=\"worker\"}} 1"),
        format!("kube_node_status_allocatable{{{both},resource=\"memory\",unit=\"byte\"}} 137438953472"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    for (name, seconds) in [("cpu", 1.75), ("memory", 1.75)] {
        let prefix = format!("node_pressure_{name}_waiting_seconds_total{{instance=\"n1\"}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
        assert!((value.parse::<f64>().unwrap() - seconds).abs() < 1e-9, "{value}");
    }
    for metric in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = metric.split_once(' ').unwrap();
        assert_eq!(kind == "counter", name.ends_with("_total"), "{metric}");
    }
}

#[test]
fn the_pareto_gauge_is_what_balance_computes() {
    let mut index = Index::default();
    let mut signals = Signals::new();
    for number in 0..20_u32 {
        let name = format!("n{number:02}");
        index.apply_node(&node(&name, 32.0, 128.0), at(0));
        let load = Load { cpu_cores: f64::from(number * 7 % 20), memory_bytes: f64::from(number * 3 % 20) * GIB };
        let (vm_name, pod_name) = (format!("v{number}"), format!("p{number}"));
        index.apply_pod(&ObservedPod { load: Some(load), ..pod(&vm_name, &pod_name, &name, 0.0) }, at(0));
        index.apply_vm(&vm(&vm_name, &pod_name), at(0));
        signals.push(PressureModel::Reference.signals(load.cpu_cores / 32.0, load.memory_bytes / (128.0 * GIB)));
    }
    let mut scores = Scores::new();
    Algorithm::ParetoFront.score(&signals, &mut scores);
    let text = Renderer::default().render(&index.snapshot(at(0)));
    for (number, score) in scores.values().iter().enumerate() {
        let line = format!("{PARETO_GAUGE}{{node=\"n{number:02}\",instance=\"n{number:02}\"}} {score}");
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn an_empty_cluster_is_a_valid_page() {
    let text = Renderer::default().render(&Snapshot::default());
    assert!(text.lines().all(|line| line.starts_with('#')));
}

#[test]
fn vms_have_the_metrics_of_kubevirt_which_begin_anew_on_another_node() {
    let mut index = sample();
    let with = |pod_name: &str, node: &str, cpu_cores: f64| ObservedPod {
        load: Some(Load { cpu_cores, memory_bytes: 8.0 * GIB }),
        ..pod("a", pod_name, node, 0.0)
    };
    index.apply_pod(&with("a-1", "n1", 2.0), at(10));
    let page = |index: &Index, seconds| vm_page(&index.vms(at(seconds)));
    let labels = |node: &str| format!("{{node=\"{node}\",namespace=\"default\",name=\"a\"}}");
    let text = page(&index, 20);
    // Sixteen cores for ten seconds, then two.
    for line in [
        format!("kubevirt_vmi_cpu_usage_seconds_total{} 180", labels("n1")),
        format!("kubevirt_vmi_memory_resident_bytes{} 8589934592", labels("n1")),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    index.apply_pod(&with("a-2", "n2", 2.0), at(20));
    index.apply_vm(&vm("a", "a-2"), at(30));
    let text = page(&index, 35);
    let line = format!("kubevirt_vmi_cpu_usage_seconds_total{} 10", labels("n2"));
    assert!(text.lines().any(|found| found == line) && !text.contains("n1"), "{text}");
}
