//! Migrations that succeed, and migrations that fail.

use devcluster::Component;
use kube::ResourceExt;
use lab_parts::{launcher, vm::VmControllerSettings};
use serde_json::json;

use super::{Lab, Moment, Observer, fast, moments, node, node_of, reason, slow, status};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_goes_target_copy_hand_over_source() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let observer = Observer::start(&lab.client).await;
    let _controller = lab.controller(fast()).await;
    lab.create("a").await;
    let source = status(&lab.settle("a").await).pod_name.unwrap();
    let from = lab.evict("a").await;
    let vm = lab.reach("a", "moves", |vm| reason(vm, "Migrated") == "Succeeded").await;
    assert_ne!(node(&vm), from);
    let target = status(&lab.settle("a").await).pod_name.unwrap();

    let history = observer.history().await;
    history.check(&fast());
    history.check_counted();
    let history = moments(&history);
    let first = |is: &dyn Fn(&Moment) -> bool| history.iter().position(is).unwrap();
    let requested = first(&|moment| status(&moment.vms["a"]).evacuation_node_name.is_some());
    let annotated = first(&|moment| {
        moment.pods.get(&source).is_some_and(|pod| pod.annotations().contains_key(launcher::EVICTION_IN_PROGRESS))
    });
    let made = first(&|moment| moment.pods.contains_key(&target));
    let runs = first(&|moment| {
        let status = moment.pods.get(&target).and_then(|pod| pod.status.as_ref());
        status.is_some_and(|status| status.phase.as_deref() == Some("Running"))
    });
    let handed_over = first(&|moment| status(&moment.vms["a"]).pod_name.as_deref() == Some(&*target));
    let gone = made + history[made..].iter().position(|moment| !moment.pods.contains_key(&source)).unwrap();
    let order = [requested, annotated, made, runs, handed_over, gone];
    assert!(order.is_sorted(), "{order:?}");

    let (before, after) = (status(&history[handed_over - 1].vms["a"]), status(&history[handed_over].vms["a"]));
    assert_eq!((before.pod_name.as_deref(), before.node_name.as_deref()), (Some(&*source), Some(&*from)));
    assert_eq!((after.node_name, after.evacuation_node_name), (Some(node(&vm)), None), "one write says it all");
    let spec = history[made].pods[&target].spec.clone().unwrap();
    let affinity = serde_json::to_value(spec.affinity).unwrap();
    let term = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0];
    let not_there = json!([{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [from]}]);
    assert_eq!(term["matchExpressions"], not_there);
}

/// Holds L21 (leftover target).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_cannot_be_placed_is_given_up() {
    let lab = Lab::start(&["n1"]).await;
    let observer = Observer::start(&lab.client).await;
    let _controller =
        lab.controller(VmControllerSettings { time_scale: 60.0, ..VmControllerSettings::default() }).await;
    lab.create("a").await;
    lab.settle("a").await;
    let from = lab.evict("a").await;
    lab.reach("a", "gives up", |vm| reason(vm, "Migrated") == "TargetUnschedulable").await;
    assert_eq!(node(&lab.settle("a").await), from);
    let history = observer.history().await;
    history.check(&fast());
    history.check_counted();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_that_writes_faster_than_the_network_stays_and_the_next_one_moves() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let _controller =
        lab.controller(VmControllerSettings { time_scale: 100.0, ..VmControllerSettings::default() }).await;
    lab.create_with("busy", json!({launcher::DIRTY_RATE: "20000"})).await;
    lab.create("idle").await;
    let (from, other) = (node(&lab.settle("busy").await), node(&lab.settle("idle").await));
    lab.evict("busy").await;
    lab.evict("idle").await;
    lab.reach("busy", "gives up", |vm| reason(vm, "Migrated") == "NotConverging").await;
    assert_eq!(node(&lab.settle("busy").await), from);
    lab.reach("idle", "moves", |vm| reason(vm, "Migrated") == "Succeeded").await;
    assert_ne!(node(&lab.settle("idle").await), other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_and_nodes_that_vanish_under_a_migration_leave_one_running_pod_and_a_reason() {
    let lab = Lab::start(&["n1", "n2", "n3"]).await;
    let observer = Observer::start(&lab.client).await;
    let _controller = lab.controller(slow()).await;
    for (vm, reason_expected) in [
        ("source-pod", "SourceLost"),
        ("source-node", "SourceLost"),
        ("target-pod", "TargetLost"),
        ("target-node", "TargetLost"),
    ] {
        lab.create(vm).await;
        lab.settle(vm).await;
        lab.evict(vm).await;
        let (source, target) = lab.migrating(vm).await;
        let (victim, survivor) = if vm.starts_with("source") { (&source, &target) } else { (&target, &source) };
        let lost = node_of(victim);
        match vm.ends_with("node") {
            true => lab.remove_node(&lost).await,
            false => lab.kill_pod(&victim.name_any()).await,
        }
        lab.reach(vm, "tells what happened", |vm| reason(vm, "Migrated") == reason_expected).await;
        let found = lab.settle(vm).await;
        assert_eq!(status(&found).pod_name, Some(survivor.name_any()), "{vm}");
        if vm.ends_with("node") {
            lab.add_node(&lost).await;
        }
        for vm in lab.vms.list(&Default::default()).await.unwrap() {
            lab.settle(&vm.name_any()).await;
        }
    }
    observer.history().await.check(&slow());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_without_a_migration_starts_anew_when_its_node_or_its_pod_is_gone() {
    let lab = Lab::start(&["n1"]).await;
    let _controller = lab.controller(fast()).await;
    lab.create("a").await;
    let before = status(&lab.settle("a").await).pod_name;
    lab.kill_pod(before.as_deref().unwrap()).await;
    let has_changed = |vm: &api::VirtualMachine| status(vm).pod_name.is_some() && status(vm).pod_name != before;
    lab.reach("a", "has another pod", has_changed).await;
    lab.settle("a").await;
    lab.add_node("n2").await;
    lab.remove_node("n1").await;
    lab.reach("a", "is elsewhere", |vm| node(vm) == "n2").await;
    lab.settle("a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_killed_under_a_migration_delays_it() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let observer = Observer::start(&lab.client).await;
    let _controller = lab.controller(VmControllerSettings { time_scale: 1.0, ..VmControllerSettings::default() }).await;
    lab.create("a").await;
    lab.settle("a").await;
    let from = lab.evict("a").await;
    lab.migrating("a").await;
    lab.cluster.kill(Component::ApiServer).unwrap();
    lab.cluster.start(Component::ApiServer).await.unwrap();
    lab.reach("a", "moves", |vm| reason(vm, "Migrated") == "Succeeded").await;
    assert_ne!(node(&lab.settle("a").await), from);
    let history = observer.history().await;
    history.check(&VmControllerSettings::default());
    history.check_counted();
}
