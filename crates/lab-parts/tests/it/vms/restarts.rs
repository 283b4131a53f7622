//! Controllers that stop at any step of a migration, and their successors.

use std::time::Duration;

use lab_parts::vm::VmController;
use tokio::time::timeout;

use super::{
    Lab, Observer, fast,
    gate::{Side, mortal},
    node, reason,
};

/// A migration takes fewer writes than this.
const ENOUGH: usize = 30;

/// Holds L27 (third pod after restart).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_dies_before_or_after_any_write_of_a_migration_is_followed_by_one_that_finishes_it() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let observer = Observer::start(&lab.client).await;
    let first = lab.controller(fast()).await;
    lab.create("a").await;
    lab.settle("a").await;
    drop(first);
    let mut survived = 0;
    for step in 0..ENOUGH {
        for side in [Side::Before, Side::After] {
            let from = lab.evict("a").await;
            let (client, death) = mortal(lab.client_of_controller().await, step, side);
            let controller = VmController::start(client, fast());
            let moved = async {
                lab.reach("a", "moves", |vm| node(vm) != from).await;
                lab.settle("a").await;
            };
            tokio::select! {
                () = death.happened.notified() => {}
                () = moved => survived += 1,
            }
            drop(controller);
            let _heir = lab.controller(fast()).await;
            let vm = lab.settle("a").await;
            assert_ne!(node(&vm), from, "after a death {side:?} write {step}");
            assert_eq!(reason(&vm, "Migrated"), "Succeeded", "after a death {side:?} write {step}");
        }
        if survived == 2 {
            assert!(step > 5, "a migration takes more than {step} writes");
            let history = observer.history().await;
            history.check(&fast());
            return history.check_counted();
        }
    }
    panic!("no migration came to its end without a death");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_dies_while_memory_is_copied_leaves_the_source_counting() {
    let lab = Lab::start(&["n1", "n2"]).await;
    let first = lab.controller(super::slow()).await;
    lab.create("a").await;
    lab.settle("a").await;
    let from = lab.evict("a").await;
    lab.migrating("a").await;
    let mut state = first.state();
    timeout(Duration::from_secs(100), state.wait_for(|state| state.migrations == 1)).await.unwrap().unwrap();
    drop(first);
    assert_eq!(node(&lab.vms.get("a").await.unwrap()), from, "the source counts until the hand-over");
    let _second = lab.controller(fast()).await;
    lab.reach("a", "moves", |vm| reason(vm, "Migrated") == "Succeeded").await;
    assert_ne!(node(&lab.settle("a").await), from);
}

/// Holds L25 (second pod stays).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_controllers_at_once_come_to_the_same_end_as_one() {
    let lab = Lab::start(&["n1", "n2", "n3"]).await;
    let observer = Observer::start(&lab.client).await;
    let _controllers = [lab.controller(fast()).await, lab.controller(fast()).await];
    let names = ["a", "b", "c", "d"];
    for name in names {
        lab.create(name).await;
    }
    for name in names {
        lab.settle(name).await;
    }
    for name in names {
        lab.evict(name).await;
    }
    for name in names {
        lab.reach(name, "moves", |vm| reason(vm, "Migrated") == "Succeeded").await;
        lab.settle(name).await;
    }
    observer.history().await.check_counted();
}
