//! The requests for many VMs, and the limits of migrations.

use std::collections::BTreeSet;

use futures::future::join_all;
use kube::api::ListParams;
use lab_parts::vm::VmControllerSettings;

use super::{Lab, Observer, USER, fast, moments, node};
use testkit::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_keep_to_the_limits_of_node_and_cluster() {
    let lab = Lab::start(&["n1", "n2", "n3"]).await;
    let mut settings = fast();
    (settings.migration.per_node, settings.migration.cluster) = (1, 2);
    let controller = lab.controller(settings.clone()).await;
    let names: Vec<String> = (0..12).map(|number| format!("vm-{number:02}")).collect();
    join_all(names.iter().map(|name| lab.create(name))).await;
    for name in &names {
        lab.settle(name).await;
    }
    let observer = Observer::start(&lab.client).await;
    observer.history().await;
    lab.add_node("n4").await;
    let evicted = join_all(names.iter().map(|name| lab.evict(name))).await;
    assert!(evicted.iter().collect::<BTreeSet<_>>().len() > 1, "from several nodes");
    for name in &names {
        lab.reach(name, "moves", |vm| super::reason(vm, "Migrated") == "Succeeded").await;
        lab.settle(name).await;
    }
    let history = observer.history().await;
    history.check(&settings);
    history.check_counted();
    let most = moments(&history).iter().map(|moment| moment.migrations().len()).max();
    assert_eq!(most, Some(2), "as many as allowed, and no more");
    assert_eq!(controller.state().borrow().vms, 12);
}

/// Holds L50 (requests without change).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_vms_that_rest_cost_no_request() {
    const VMS: usize = 300;
    let lab = Lab::start(&["n1", "n2", "n3", "n4", "n5", "n6"]).await;
    let controller = lab.controller(VmControllerSettings::default()).await;
    let names: Vec<String> = (0..VMS).map(|number| format!("vm-{number}")).collect();
    for names in names.chunks(20) {
        join_all(names.iter().map(|name| lab.create(name))).await;
    }
    let all_run = async || {
        let vms = lab.vms.list(&ListParams::default()).await.ok()?;
        let is_settled = |vm: &api::VirtualMachine| {
            super::status(vm).phase == Some(api::virtual_machine::Phase::Running)
                && vm.metadata.labels.as_ref().and_then(|labels| labels.get("kubevirt.io/nodeName")) == Some(&node(vm))
        };
        (vms.items.len() == VMS && vms.items.iter().all(is_settled)).then_some(())
    };
    eventually(format!("{VMS} VMs run"), all_run).await;
    assert_eq!(*controller.state().borrow(), lab_parts::vm::State { is_ready: true, vms: VMS, migrations: 0 });

    assert_eq!(lab.requests_at_rest().await, Vec::<String>::new());

    // A controller that starts needs only lists to find out that there is nothing to do.
    drop(controller);
    let mark = lab.cluster.audit().position(&lab.client).await.unwrap();
    let controller = lab.controller(VmControllerSettings::default()).await;
    let mut state = controller.state();
    state.wait_for(|state| state.is_ready).await.unwrap();
    let asked = lab.cluster.audit().since(mark, &lab.client).await.unwrap();
    let asked: Vec<_> = asked.iter().filter(|request| request.user == USER && request.verb != "watch").collect();
    assert!(asked.iter().all(|request| request.verb == "list"), "{asked:?}");
    assert_eq!(lab.requests_at_rest().await, Vec::<String>::new());
}
