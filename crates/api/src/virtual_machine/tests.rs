//! How a VirtualMachine is read and written.

use kube::core::{DeserializeGuard, ObjectList};
use serde_json::{Value, json};

use super::*;
use crate::InvalidValue;

fn spec(value: Value) -> VirtualMachineSpec {
    serde_json::from_value(value).unwrap()
}

#[test]
fn an_object_that_names_only_its_resources_reads_as_the_server_would_default_it() {
    let read = spec(json!({ "resources": { "cpu": "2", "memory": "4Gi" } }));
    assert!(read.running);
    assert_eq!(read.utilization, Utilization::default());
    assert_eq!(read.utilization.cpu.value(), Ok(0.5));
    assert_eq!(read.utilization.memory.value(), Ok(0.8));
    let partly = spec(json!({ "resources": { "cpu": "2", "memory": "4Gi" }, "utilization": { "cpu": 0 } }));
    assert_eq!(partly.utilization, Utilization { cpu: 0.into(), memory: "0.8".into() });
}

#[test]
fn numbers_and_texts_are_written_back_as_they_were_read() {
    let specs = [
        json!({ "resources": { "cpu": 2, "memory": 8_589_934_592_i64 }, "utilization": { "cpu": 0, "memory": 1 }, "running": false }),
        json!({ "resources": { "cpu": "1.50", "memory": "04Gi" }, "utilization": { "cpu": ".5", "memory": "5e-1" }, "running": true }),
    ];
    for value in specs {
        assert_eq!(serde_json::to_value(spec(value.clone())).unwrap(), value);
    }
}

#[test]
fn amounts_become_numbers() {
    let cpu = [
        (Cpu::from("2"), 2.0, 2000),
        (2.into(), 2.0, 2000),
        ("500m".into(), 0.5, 500),
        ("1.5".into(), 1.5, 1500),
        ("1n".into(), 1e-9, 1),
    ];
    for (amount, cores, millicores) in cpu {
        assert_eq!(amount.cores(), Ok(cores), "{amount}");
        assert_eq!(amount.millicores(), Ok(millicores), "{amount}");
    }
    let memory = [
        (Memory::from("4Gi"), 4 << 30),
        ("512Mi".into(), 512 << 20),
        ("1Ti".into(), 1 << 40),
        ("1.5Gi".into(), 3 << 29),
        (4_294_967_296.into(), 1 << 32),
        ("1e9".into(), 1_000_000_000),
        ("0.1Ki".into(), 103),
        ("1m".into(), 1),
        ("99Ei".into(), i64::MAX as u64),
    ];
    for (amount, bytes) in memory {
        assert_eq!(amount.bytes(), Ok(bytes), "{amount}");
    }
}

#[test]
fn amounts_that_are_none_name_themselves_and_a_good_value() {
    for text in ["0", "-1", "abc", "", "0m"] {
        assert_eq!(Cpu::from(text).cores(), Err(InvalidValue::Cpu(text.to_owned())));
        assert_eq!(Cpu::from(text).millicores(), Err(InvalidValue::Cpu(text.to_owned())));
        assert_eq!(Memory::from(text).bytes(), Err(InvalidValue::Memory(text.to_owned())));
    }
    assert_eq!(Memory::from(-1).bytes(), Err(InvalidValue::Memory("-1".to_owned())));
    let error = Ratio::from(2).value().unwrap_err();
    assert_eq!(error.to_string(), "\"2\" must be a ratio from 0 to 1 in quotes, such as \"0.5\"");
}

#[test]
fn a_full_status_is_written_back_unchanged() {
    let value = json!({
        "phase": "Running",
        "nodeName": "kwok-node-1",
        "podName": "virt-launcher-a-x7k2p",
        "evacuationNodeName": "kwok-node-1",
        "allocatedCpu": "2",
        "allocatedMemory": "4Gi",
        "cpuUtilization": "0.25",
        "memoryUtilization": "0.5",
        "createdAt": "2025-12-18T21:23:24Z",
        "migrations": [{"startTimestamp": "2025-12-18T22:00:00Z", "endTimestamp": "2025-12-18T22:00:40Z"}],
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "Running",
            "message": "",
            "lastTransitionTime": "2025-12-18T21:23:34Z",
        }],
    });
    let status: VirtualMachineStatus = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&status).unwrap(), value);
    assert_eq!(serde_json::to_value(VirtualMachineStatus::default()).unwrap(), json!({}));
}

/// Objects stored under an older, looser definition: only the ones whose shape is wrong are lost, and
/// they are lost alone. A wrong value inside the right shape does not even lose its object.
#[test]
fn a_malformed_object_does_not_stop_the_others_from_being_listed() {
    let machine = |name: &str, spec: Value| {
        json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1",
            "kind": "VirtualMachine",
            "metadata": { "name": name },
            "spec": spec,
        })
    };
    let list = json!({
        "apiVersion": "simulation.node-classifier.io/v1alpha1",
        "kind": "VirtualMachineList",
        "metadata": {},
        "items": [
            machine("good", json!({ "resources": { "cpu": 1, "memory": "1Gi" } })),
            machine("wrong-value", json!({ "resources": { "cpu": "lots", "memory": "1Gi" } })),
            machine("wrong-shape", json!({ "resources": ["cpu"] })),
            machine("wrong-type", json!({ "resources": { "cpu": 1.5, "memory": "1Gi" } })),
        ],
    });
    let list: ObjectList<DeserializeGuard<VirtualMachine>> = serde_json::from_value(list).unwrap();
    let readable: Vec<bool> = list.items.iter().map(|guard| guard.0.is_ok()).collect();
    assert_eq!(readable, [true, true, false, false]);
    let lost = list.items[2].0.as_ref().unwrap_err();
    assert_eq!(lost.metadata.name.as_deref(), Some("wrong-shape"));
    let kept = list.items[1].0.as_ref().unwrap();
    assert_eq!(kept.spec.resources.cpu.cores(), Err(InvalidValue::Cpu("lots".to_owned())));
}

/// The schema can take an integer or a text, but no fraction.
#[test]
fn every_sample_and_page_quotes_fractions() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut fractions = 0;
    for folder in ["config/samples", "config/lab", "docs/lab", "docs"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            // Scenarios are read by the simulator, which takes numbers.
            if path.ends_with("docs/lab/simulator.md")
                || !path.extension().is_some_and(|end| end == "yaml" || end == "md")
            {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let states_load = line.contains("utilization:") || line.contains("\"utilization\":");
                // Values are on the line of their key, or on the two lines after it.
                let end = if line.trim() == "utilization:" { at + 3 } else { at + 1 };
                for value in lines[at..end.min(lines.len())].iter().filter(|_| states_load) {
                    fractions += value.matches("cpu: \"0.").count() + value.matches("\"cpu\":\"0.").count();
                    let unquoted = ["cpu: 0.", "memory: 0.", "\"cpu\":0.", "\"cpu\": 0."];
                    assert!(!unquoted.iter().any(|part| value.contains(part)), "{}: {value}", path.display());
                }
            }
        }
    }
    assert!(fractions > 4, "{fractions}");
}
