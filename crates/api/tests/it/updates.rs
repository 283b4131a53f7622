//! Changes to objects that are there: what cannot be changed, and who changes the spec and who the status.

use kube::{Api, ResourceExt};
use virt_advisor_api::{VirtPlatformConfig, VirtualMachine};

use crate::{
    example_cluster,
    manifest::{CONFIG, MACHINE, change, change_by_status},
    table::{accept, check_on, from_yaml, reject, store},
};

const AWARE: &str = "load-aware-rebalancing";

#[tokio::test]
async fn the_profile_is_immutable_and_the_rest_is_not() {
    let server = example_cluster::server().await;
    let other = change(CONFIG, AWARE, "spec: {profile: virt-higher-density, options: null}");
    check_on(
        &server,
        [
            reject(other.clone(), r#"spec.profile: Invalid value: "virt-higher-density": Profile is immutable"#),
            reject(other, "the VirtPlatformConfig name must exactly match the spec.profile."),
            reject(change(CONFIG, AWARE, "spec: {profile: null}"), "spec.profile: Required value"),
            accept(change(CONFIG, AWARE, "spec: {profile: load-aware-rebalancing, action: DryRun}")),
            store(change(CONFIG, AWARE, "spec: {action: Ignore}"), "spec.action", "Ignore"),
            // Taking a field away brings its default back.
            store(change(CONFIG, AWARE, "spec: {action: null}"), "spec.action", "DryRun"),
            store(change(CONFIG, AWARE, "spec: {options: null}"), "spec.options", "null"),
            reject(
                change(CONFIG, AWARE, "spec: {waitTimeout: soon}"),
                r#"spec.waitTimeout: Invalid value: "soon": must be a positive duration"#,
            ),
            reject(
                change(
                    CONFIG,
                    "virt-higher-density",
                    "spec: {options: {virtHigherDensity: {memoryToRequestRatio: 150}}}",
                ),
                "memoryToRequestRatio > 120 requires enableSwap=true",
            ),
            accept(change(
                CONFIG,
                "virt-higher-density",
                "spec: {options: {virtHigherDensity: {memoryToRequestRatio: 150, enableSwap: true}}}",
            )),
            store(change(MACHINE, "busy-vm", "spec: {utilization: {cpu: '0.1'}}"), "spec.utilization.cpu", "'0.1'"),
            store(change(MACHINE, "busy-vm", "spec: {running: false}"), "spec.running", "false"),
            reject(
                change(MACHINE, "busy-vm", "spec: {utilization: {cpu: 2}}"),
                "spec.utilization.cpu: Invalid value: 2: must be a ratio from 0 to 1 in quotes, such as \"0.5\"",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn spec_and_status_are_changed_apart() {
    let server = example_cluster::server().await;
    let both = "spec: {action: Ignore}\nstatus: {phase: Drifted}";
    let machine = "spec: {running: false}\nstatus: {phase: Stopped}";
    check_on(
        &server,
        [
            store(change(CONFIG, AWARE, both), "spec.action", "Ignore"),
            store(change(CONFIG, AWARE, both), "status.phase", "InProgress"),
            store(change(CONFIG, AWARE, both), "metadata.generation", "2"),
            store(change_by_status(CONFIG, AWARE, both), "spec.action", "Apply"),
            store(change_by_status(CONFIG, AWARE, both), "status.phase", "Drifted"),
            store(change_by_status(CONFIG, AWARE, both), "metadata.generation", "1"),
            store(change(MACHINE, "busy-vm", machine), "spec.running", "false"),
            store(change(MACHINE, "busy-vm", machine), "status.phase", "Running"),
            store(change_by_status(MACHINE, "busy-vm", machine), "spec.running", "true"),
            store(change_by_status(MACHINE, "busy-vm", machine), "status.phase", "Stopped"),
        ],
    )
    .await;
}

#[tokio::test]
async fn whatever_the_types_can_say_is_stored() {
    let client = example_cluster::open().await.client().await.unwrap();
    let configs: Api<VirtPlatformConfig> = Api::all(client.clone());
    for yaml in example_cluster::CONFIGS {
        let shown: VirtPlatformConfig = serde_json::from_value(from_yaml(yaml)).unwrap();
        let stored = configs.get(&shown.name_any()).await.unwrap();
        assert_eq!(stored.spec, shown.spec);
        assert!(shown.status.is_none() || stored.status == shown.status, "{stored:#?}");
    }
    let machines: Api<VirtualMachine> = Api::default_namespaced(client);
    for yaml in example_cluster::MACHINES {
        let shown: VirtualMachine = serde_json::from_value(from_yaml(yaml)).unwrap();
        let stored = machines.get(&shown.name_any()).await.unwrap();
        assert_eq!((stored.spec, stored.status), (shown.spec, shown.status));
    }
}
