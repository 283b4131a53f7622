//! A VM from its creation to its deletion, without migrations.

use api::virtual_machine::Phase;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use lab_parts::{launcher, vm::VmController};
use serde_json::json;

use super::{Lab, Observer, USER, fast, gate, node, reason, slow, status};
use testkit::eventually;

/// Holds L22 (ignored spec.running), L23 (growing conditions) and L24 (stale node and label).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_is_started_loaded_stopped_started_and_deleted() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let observer = Observer::start(&lab.client).await;
    let _controller = lab.controller(fast()).await;
    lab.create("a").await;
    let vm = lab.settle("a").await;
    let status = status(&vm);
    assert_eq!(status.allocated_memory.as_deref(), Some("2Gi"));
    assert!(status.created_at.is_some());
    let pod = lab.pods_of("a").await.remove(0);
    assert_eq!(pod.finalizers(), [launcher::FINALIZER]);
    assert_eq!(pod.owner_references()[0].uid, vm.uid().unwrap());

    lab.change("a", json!({"utilization": {"cpu": "0.9"}})).await;
    let shows_it = async || (lab.pods_of("a").await[0].annotations()[launcher::CPU_UTILIZATION] == "0.9").then_some(());
    eventually("the pod shows its utilization", shows_it).await;
    lab.reach("a", "shows it", |vm| super::status(vm).cpu_utilization.as_deref() == Some("0.9")).await;
    assert_eq!(lab.pods_of("a").await[0].name_any(), pod.name_any(), "it is the same pod");

    lab.change("a", json!({"running": false})).await;
    lab.no_pod("a").await;
    let vm = lab.reach("a", "stops", |vm| super::status(vm).phase == Some(Phase::Stopped)).await;
    assert_eq!((super::status(&vm).pod_name, super::status(&vm).node_name), (None, None));
    lab.reach("a", "loses its label", |vm| !vm.labels().contains_key(launcher::NODE_NAME)).await;
    lab.change("a", json!({"running": true})).await;
    let vm = lab.settle("a").await;
    assert!(super::status(&vm).conditions.len() <= 3, "{:?}", super::status(&vm).conditions);

    let history = observer.history().await;
    history.check(&fast());
    history.check_counted();
    lab.vms.delete("a", &DeleteParams::default()).await.unwrap();
    lab.no_pod("a").await;
    assert!(lab.vms.get_opt("a").await.unwrap().is_none());
}

/// Holds L20 (undeletable pod).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_vm_always_succeeds() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let controller = lab.controller(slow()).await;
    for vm in ["away", "foreground", "migrating", "stopped"] {
        lab.create(vm).await;
    }
    for vm in ["away", "foreground", "migrating", "stopped"] {
        lab.settle(vm).await;
    }
    lab.change("stopped", json!({"running": false})).await;
    lab.no_pod("stopped").await;
    lab.evict("migrating").await;
    lab.migrating("migrating").await;
    for vm in ["migrating", "stopped"] {
        lab.vms.delete(vm, &DeleteParams::default()).await.unwrap();
        lab.no_pod(vm).await;
    }
    // A foreground deletion of the VM waits for its pod, which has a finalizer.
    lab.vms.delete("foreground", &DeleteParams::foreground()).await.unwrap();
    lab.no_pod("foreground").await;

    // Without a controller nobody removes the finalizer of the pod.
    drop(controller);
    lab.vms.delete("away", &DeleteParams::default()).await.unwrap();
    let is_going = async || lab.pods_of("away").await[0].metadata.deletion_timestamp.is_some().then_some(());
    eventually("the garbage collector deletes the pod", is_going).await;
    let _controller = lab.controller(slow()).await;
    lab.no_pod("away").await;
    let left = async || lab.vms.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(());
    eventually("no VM is left", left).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_whose_stored_object_makes_no_sense_fails_alone() {
    let lab = Lab::start(&["n1"]).await;
    for (uid, name, spec, status) in [
        (1, "a-shape", json!({"resources": ["cpu"]}), json!({})),
        (2, "b-value", json!({"resources": {"cpu": "1", "memory": "lots"}}), json!({"phase": "Wild", "podName": 5})),
        (3, "c-nothing", json!(null), json!({"conditions": "none"})),
    ] {
        let vm = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {
                "name": name, "namespace": "default", "uid": format!("00000000-0000-4000-8000-00000000000{uid}"),
                "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1,
            },
            "spec": spec, "status": status,
        });
        let key = format!("/registry/simulation.node-classifier.io/virtualmachines/default/{name}");
        lab.cluster.store(&key, vm.to_string().as_bytes()).await.unwrap();
    }
    let _controller = lab.controller(fast()).await;
    lab.create_with("d-annotation", json!({launcher::DIRTY_RATE: "fast"})).await;
    lab.create("good").await;
    let vm = lab.settle("good").await;
    assert_eq!(node(&vm), "n1");
    let vm = lab.reach("d-annotation", "fails", |vm| status(vm).phase == Some(Phase::Failed)).await;
    assert_eq!(reason(&vm, "Ready"), "InvalidSpec");
    assert!(status(&vm).conditions[0].message.contains("megabits"), "{:?}", status(&vm).conditions);

    for name in ["a-shape", "b-value", "c-nothing"] {
        let failed = async || {
            let vm = lab.objects.get(name).await.ok()?;
            let condition = vm.data["status"]["conditions"][0]["reason"].as_str().map(str::to_owned);
            (vm.data["status"]["phase"] == "Failed" && condition.as_deref() == Some("InvalidSpec")).then_some(())
        };
        eventually(format!("{name} fails"), failed).await;
    }
    assert_eq!(lab.requests_at_rest().await, Vec::<String>::new());
    lab.objects.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    lab.no_pod("good").await;
}

/// Holds L26 (dropped write).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_write_that_is_overtaken_is_made_again() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let mark = lab.cluster.audit().position(&lab.client).await.unwrap();
    let client = gate::overtaken(lab.client_of_controller().await, lab.client.clone(), 5);
    let _controller = VmController::start(client, fast());
    lab.create("a").await;
    lab.settle("a").await;
    let from = lab.evict("a").await;
    let vm = lab.reach("a", "moves", |vm| reason(vm, "Migrated") == "Succeeded").await;
    assert_ne!(node(&vm), from);
    lab.settle("a").await;
    let requests = lab.cluster.audit().since(mark, &lab.client).await.unwrap();
    let refused = requests.iter().filter(|request| request.user == USER && request.code == 409).count();
    assert_eq!(refused, 5, "each was refused once");
}
