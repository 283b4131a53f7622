//! Many evictions at once.

use std::{collections::BTreeMap, time::Duration};

use api::VirtualMachine;
use futures::{StreamExt, future::join_all, stream};
use kube::{ResourceExt, api::ListParams};
use lab_parts::{vm::VmControllerSettings, webhook::Certificates};

use super::{EVICTIONS, Lab, cause, cluster_with_nodes, in_progress, triggered};
use testkit::replay::{Moment, Observer, Seen, node, status};

/// Hundreds of migrations, a few at a time, may run on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Holds L34 (repeated eviction).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_evictions_at_once_are_each_answered_correctly() {
    const VMS: usize = 500;
    let lab = Lab::start().await;
    let names: Vec<String> = (0..VMS).map(|number| format!("vm-{number}")).collect();
    let pods: Vec<String> = stream::iter(&names).map(|name| lab.add(name)).buffered(32).collect().await;
    let one = lab.add("one").await;
    let _webhook = lab.webhook(Certificates::default()).await;
    lab.is_asked(&one).await;

    // These requests open the connections, so that the evictions do not wait for them.
    join_all(pods.iter().map(|pod| lab.pods.get(pod))).await;
    let asked: Vec<_> = names.iter().zip(&pods).collect();
    let mut slow = lab.evict_at_once(asked.clone(), &[triggered]).await;
    // On a busy machine some answers are timeouts, and these are evicted again. Their eviction request may have been recorded
    // nevertheless.
    for _ in 0..3 {
        slow = lab.evict_at_once(slow, &[triggered, in_progress]).await;
    }
    assert!(slow.is_empty(), "too slow again and again: {slow:?}");
    let vms = lab.vms.list(&ListParams::default()).await.unwrap().items;
    let is_recorded = |vm: &&VirtualMachine| {
        vm.status.as_ref().unwrap().evacuation_node_name.is_some()
            && cause(vm).is_some_and(|(why, _)| why == "Eviction")
    };
    assert_eq!(vms.iter().filter(is_recorded).count(), VMS, "each with its cause");
    lab.evict_at_once(asked, &[in_progress]).await;

    let answers = join_all((0..50).map(|_| lab.evict(&one))).await;
    let (first, later): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| *answer == Some(triggered(EVICTIONS, "default/one")));
    assert_eq!(first.len(), 1);
    assert!(later.iter().all(|answer| *answer == Some(in_progress(EVICTIONS, "default/one"))), "{later:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_evictions_at_once_move_five_hundred_vms_within_the_limits() {
    const VMS: usize = 500;
    let lab = Lab::on(cluster_with_nodes(7, 1 << 40).await).await;
    // With the time scale, targets have half a minute of the clock to start.
    let start_timeout = Duration::from_secs(600);
    let mut settings = VmControllerSettings { time_scale: 20.0, start_timeout, ..VmControllerSettings::default() };
    (settings.migration.per_node, settings.migration.cluster) = (4, 16);
    let observer = Observer::start(&lab.client).await;
    let _controller = lab.controller_with(settings.clone()).await;
    let names: Vec<String> = (0..VMS).map(|number| format!("vm-{number}")).collect();
    stream::iter(&names).for_each_concurrent(32, async |name| drop(lab.create(name).await)).await;
    let names_of_pods = |moment: &Moment| -> BTreeMap<String, String> {
        moment.vms.iter().map(|(name, vm)| (name.clone(), status(vm).pod_name.unwrap())).collect()
    };
    let before = names_of_pods(&observer.until(TIMEOUT, "all VMs run", |now| now.rests(VMS)).await);
    let _webhook = lab.webhook(Certificates::default()).await;
    lab.is_asked(&before["vm-0"]).await;

    // On a busy machine some answers are timeouts. These are evicted again, unless their eviction request was recorded
    // nevertheless.
    let mut asked: Vec<(&String, &String)> = before.iter().collect();
    while !asked.is_empty() {
        let slow = lab.evict_at_once(asked, &[triggered, in_progress]).await;
        let vms = lab.vms.list(&ListParams::default()).await.unwrap();
        let is_still = |(name, pod): &(&String, &String)| {
            let vm = vms.iter().find(|vm| vm.name_any() == **name).unwrap();
            status(vm).pod_name.as_ref() == Some(*pod) && status(vm).evacuation_node_name.is_none()
        };
        asked = slow.into_iter().filter(is_still).collect();
    }
    let has_moved = |vm: &VirtualMachine| {
        let migrated = status(vm).conditions.into_iter().find(|condition| condition.type_ == "Migrated");
        migrated.is_some_and(|condition| condition.reason == "Succeeded")
    };
    let have_moved = |now: &Moment| now.rests(VMS) && now.vms.values().all(|vm| has_moved(vm));
    let after = names_of_pods(&observer.until(TIMEOUT, "all VMs have moved and run", have_moved).await);
    assert!(before.iter().all(|(name, pod)| after[name] != *pod), "each has moved");

    let history = observer.history().await;
    history.check(&settings);
    history.check_counted();
    let (mut moves, mut most) = (BTreeMap::<String, usize>::new(), 0);
    history.each(|step| {
        most = most.max(step.now.migrations().len());
        let Seen::Vm(vm) = step.seen else { return };
        if status(vm).evacuation_node_name.is_some() {
            assert_eq!(cause(vm).map(|(why, _)| why).as_deref(), Some("Eviction"), "{}", vm.name_any());
        }
        let earlier = step.vm_before.as_ref().map(|vm| node(vm)).filter(|node| !node.is_empty());
        if earlier.is_some_and(|earlier| earlier != node(vm)) {
            *moves.entry(vm.name_any()).or_default() += 1;
        }
    });
    assert!(moves.values().all(|moves| *moves == 1), "and no more than once: {moves:?}");
    assert!(most > 4, "the limits were made use of: {most}");
}
