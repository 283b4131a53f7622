//! Many evictions at once.

use api::VirtualMachine;
use futures::{StreamExt, future::join_all, stream};
use kube::api::ListParams;
use lab::webhook::Certificates;

use super::{EVICTIONS, Lab, cause, in_progress, triggered};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_evictions_at_once_are_each_answered_correctly() {
    const VMS: usize = 500;
    let lab = Lab::start().await;
    let names: Vec<String> = (0..VMS).map(|number| format!("vm-{number}")).collect();
    let pods: Vec<String> = stream::iter(&names).map(|name| lab.add(name)).buffered(32).collect().await;
    let one = lab.add("one").await;
    let _webhook = lab.webhook(Certificates::default()).await;
    lab.is_asked(&one).await;

    // Connections first, which are not the matter here.
    join_all(pods.iter().map(|pod| lab.pods.get(pod))).await;
    let asked: Vec<_> = names.iter().zip(&pods).collect();
    let mut slow = lab.evict_at_once(asked.clone(), &[triggered]).await;
    // On a machine that is too busy some are refused for that, as they should be, and asked for again. The mark of such
    // a one may have been written nevertheless.
    for _ in 0..3 {
        slow = lab.evict_at_once(slow, &[triggered, in_progress]).await;
    }
    assert!(slow.is_empty(), "too slow again and again: {slow:?}");
    let vms = lab.vms.list(&ListParams::default()).await.unwrap().items;
    let is_marked = |vm: &&VirtualMachine| {
        vm.status.as_ref().unwrap().evacuation_node_name.is_some()
            && cause(vm).is_some_and(|(why, _)| why == "Eviction")
    };
    assert_eq!(vms.iter().filter(is_marked).count(), VMS, "each with its cause");
    lab.evict_at_once(asked, &[in_progress]).await;

    // Of many for the same pod, one is the first.
    let answers = join_all((0..50).map(|_| lab.evict(&one))).await;
    let (first, later): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| *answer == Some(triggered(EVICTIONS, "default/one")));
    assert_eq!(first.len(), 1);
    assert!(later.iter().all(|answer| *answer == Some(in_progress(EVICTIONS, "default/one"))), "{later:?}");
}
