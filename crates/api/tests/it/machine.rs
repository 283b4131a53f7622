//! The fields of a VirtualMachine: quantities and ratios in every notation, and whether it runs.

use virt_advisor_api::virtual_machine::{Cpu, Memory, Ratio};

use crate::{
    manifest::{MACHINE, Manifest, busy, guest, machine},
    table::{accept, check, check_types, each, invalid, of_type, reject, store},
};

const CPU_RULE: &str = "must be a positive amount of CPU such as 2, 500m or \"1.5\"";
const MEMORY_RULE: &str = "must be a positive amount of memory such as 4Gi, 512Mi or 1Ti";
const RATIO_RULE: &str = "must be a ratio from 0 to 1 in quotes, such as \"0.5\"";

#[tokio::test]
async fn cpu_is_a_positive_quantity() {
    // The last four are the forms that the reference takes.
    const GOOD: &str = "2 | 1 | 500m | 1500m | '.5' | '2.' | 1n | 250u | 1k | '1e3' | '5E-1' | '007' | 64 | '2' | '1.5' | '0.25' | '16'";
    const BAD: &str = "0 | '0' | 0m | '0.0' | -1 | '-1' | '+1' | '' | abc | two | 1 core | ' 2' | 2vcpu | '1,5' | 1K | '1e100' | '0x10' | 1_000.5.5 | inf | NaN";
    check_types(GOOD, BAD, |cpu: &Cpu| cpu.cores().is_ok());
    let cpu = |text: &str| guest(&format!("cpu: {text}, memory: 4Gi"));
    let good = each(GOOD, |text| accept(cpu(text)));
    let bad = each(BAD, |text| reject(cpu(text), invalid("spec.resources.cpu", text, CPU_RULE)));
    check(good.into_iter().chain(bad)).await;
}

#[tokio::test]
async fn memory_is_a_positive_quantity() {
    // The last four are the forms that the reference takes.
    const GOOD: &str = "4Gi | 512Mi | 1Ti | 64Ki | 1Pi | 1Ei | 500M | 4G | 1T | 1P | 1E | 128k | '1e9' | 4294967296 | 99Ei | '1.5Gi' | 0.5Gi | 256Mi | '4294967296'";
    const BAD: &str = "0 | 0Gi | -4Gi | 4GiB | 4GB | 4gi | 4 Gi | Gi | '' | lots | 4Gi4 | '1e100' | '４Gi'";
    check_types(GOOD, BAD, |memory: &Memory| memory.bytes().is_ok());
    let memory = |text: &str| guest(&format!("cpu: 2, memory: {text}"));
    let good = each(GOOD, |text| accept(memory(text)));
    let bad = each(BAD, |text| reject(memory(text), invalid("spec.resources.memory", text, MEMORY_RULE)));
    check(good.into_iter().chain(bad)).await;
}

#[tokio::test]
async fn utilization_is_from_0_to_1_in_any_decimal_form() {
    const GOOD: &str = "0 | 1 | '0' | '1' | '0.0' | '1.0' | '1.000' | '0.25' | '.5' | '1.' | '00.5' | '5e-1' | '5E-1' | '0.05e+1' | '100e-02' | '0.999999999999'";
    const BAD: &str = "2 | -1 | '1.1' | '1.0000001' | '-0' | '-0.5' | '+0.5' | 50% | '0,5' | '' | '.' | half | '1e1' | '1e-100' | inf | 'nan' | '0x1' | '0.5m' | ' 0.5'";
    check_types(GOOD, BAD, |ratio: &Ratio| ratio.value().is_ok());
    for field in ["cpu", "memory"] {
        let path = format!("spec.utilization.{field}");
        let ratio = |text: &str| busy(&format!("{field}: {text}"));
        let good = each(GOOD, |text| accept(ratio(text)));
        let bad = each(BAD, |text| reject(ratio(text), invalid(&path, text, RATIO_RULE)));
        check(good.into_iter().chain(bad)).await;
    }
}

#[tokio::test]
async fn a_value_keeps_its_notation() {
    check([
        store(guest("cpu: 2, memory: 4294967296"), "spec.resources", "{cpu: 2, memory: 4294967296}"),
        store(guest("cpu: '2', memory: '4294967296'"), "spec.resources", "{cpu: '2', memory: '4294967296'}"),
        store(guest("cpu: '1.50', memory: 04Gi"), "spec.resources", "{cpu: '1.50', memory: 04Gi}"),
        store(busy("cpu: 0, memory: '.5'"), "spec.utilization", "{cpu: 0, memory: '.5'}"),
        // YAML reads this as the number one thousand.
        store(guest("cpu: 1e3, memory: 4Gi"), "spec.resources.cpu", "1000"),
    ])
    .await;
}

#[tokio::test]
async fn defaults_are_filled_in() {
    const FULL: &str = "{cpu: '0.5', memory: '0.8'}";
    let without = "resources: {cpu: 2, memory: 4Gi}";
    check([
        store(machine(without), "spec.utilization", FULL),
        store(machine(without), "spec.running", "true"),
        store(machine(&format!("{without}, utilization: null, running: null")), "spec.utilization", FULL),
        store(machine(&format!("{without}, utilization: null, running: null")), "spec.running", "true"),
        store(busy(""), "spec.utilization", FULL),
        store(busy("cpu: null"), "spec.utilization", FULL),
        store(busy("cpu: '0.1'"), "spec.utilization", "{cpu: '0.1', memory: '0.8'}"),
        store(busy("memory: 1"), "spec.utilization", "{cpu: '0.5', memory: 1}"),
        store(machine(&format!("{without}, running: false")), "spec.running", "false"),
    ])
    .await;
}

#[tokio::test]
async fn what_is_missing_or_of_another_type_is_refused() {
    check([
        reject(Manifest::new(MACHINE, "a", ""), "spec: Required value"),
        reject(machine(""), "spec.resources: Required value"),
        reject(machine("resources: {}"), "spec.resources.cpu: Required value, spec.resources.memory: Required value"),
        reject(guest("cpu: 2"), "spec.resources.memory: Required value"),
        reject(guest("memory: 4Gi"), "spec.resources.cpu: Required value"),
        reject(guest("cpu: null, memory: 4Gi"), "spec.resources.cpu: Required value"),
        reject(guest("cpu: 1.5, memory: 4Gi"), of_type("spec.resources.cpu", "number", "integer,string")),
        reject(guest("cpu: true, memory: 4Gi"), of_type("spec.resources.cpu", "boolean", "integer,string")),
        reject(guest("cpu: {}, memory: 4Gi"), of_type("spec.resources.cpu", "object", "integer,string")),
        reject(guest("cpu: 2, memory: [4Gi]"), of_type("spec.resources.memory", "array", "integer,string")),
        reject(busy("cpu: 0.5"), of_type("spec.utilization.cpu", "number", "integer,string")),
        reject(machine("resources: big"), of_type("spec.resources", "string", "object")),
        reject(
            machine("resources: {cpu: 2, memory: 4Gi}, running: 'true'"),
            of_type("spec.running", "string", "boolean"),
        ),
        reject(machine("resources: {cpu: 2, memory: 4Gi}, running: 1"), of_type("spec.running", "integer", "boolean")),
    ])
    .await;
}
