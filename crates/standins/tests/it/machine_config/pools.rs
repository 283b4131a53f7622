//! Pools that are paused, degraded, empty, custom, or cannot be rendered.

use kube::{ResourceExt, api::ListParams};
use serde_json::json;
use standins::machine_config::Machine;
use testkit::eventually;

use super::{
    fixtures::{
        TestPool, configs, describe, is_at_rest, is_rendered_from, is_true, message, name, shared_cluster, status,
    },
    recording::Recorder,
};

#[tokio::test]
async fn a_paused_pool_has_a_new_target_and_no_node_is_updated_until_it_is_resumed() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "paused", 2, json!({"paused": true})).await;
    let before = pool.get().await;
    let recorder = Recorder::start(&pool).await;
    pool.configure("99-paused", json!({"kernelArguments": ["psi=1"]})).await;
    let held = pool.reach("to say that it is paused", |pool| {
        is_rendered_from(pool, "99-paused") && Some(status(pool).observed_generation) == pool.metadata.generation
    });
    let held = held.await;
    let target = &held.spec.configuration.name;
    assert!(!is_true(&held, "Updated") && !is_true(&held, "Updating") && !is_true(&held, "Degraded"));
    assert_eq!(message(&held, "Updating"), format!("Pool is paused; will not update to {target}"));
    assert_eq!(status(&held).configuration, before.spec.configuration);
    assert_eq!((status(&held).updated_machine_count, status(&held).unavailable_machine_count), (0, 0));
    let recording = recorder.stop(&pool).await;
    assert_eq!(recording.states("paused-0"), ["Done"], "nodes stay as they are");

    pool.patch(json!({"paused": false})).await;
    let after = pool.settle("99-paused", true, 2).await;
    assert_eq!(status(&after).updated_machine_count, 2);
}

#[tokio::test]
async fn a_node_that_fails_degrades_its_pool_and_holds_the_others_until_it_is_cleared() {
    let shared = shared_cluster().await;
    let client = shared.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "failing", 3, json!({})).await;
    shared.stand_in.change(|settings| {
        settings.fail.insert("failing-1".into());
    });
    let recorder = Recorder::start(&pool).await;
    pool.configure("99-failing", json!({"kernelArguments": ["psi=1"]})).await;
    let stuck = pool.reach("to be degraded", |pool| is_true(pool, "Degraded")).await;
    let counts = status(&stuck);
    assert_eq!((counts.machine_count, counts.updated_machine_count, counts.degraded_machine_count), (3, 1, 1));
    assert_eq!(counts.unavailable_machine_count, 1, "it is stuck after it was drained, and cordoned");
    assert!(
        is_true(&stuck, "NodeDegraded")
            && is_true(&stuck, "Updating")
            && !is_true(&stuck, "Updated")
            && !is_true(&stuck, "RenderDegraded")
    );
    assert_eq!(counts.condition("NodeDegraded").unwrap().reason, "1 nodes are reporting degraded status on sync");
    let target = &stuck.spec.configuration.name;
    let report = format!(
        "Node failing-1 is reporting: \"failed to apply {target}: the stand-in was told to fail on this node\""
    );
    assert_eq!(message(&stuck, "NodeDegraded"), report);
    assert_eq!(message(&stuck, "Degraded"), report);
    let node = pool.nodes.get("failing-1").await.unwrap();
    assert_eq!(describe(&node), "Degraded outdated cordoned drained");

    // Removing the config does not help: a node that is unavailable gets no other config.
    pool.unconfigure("99-failing").await;
    pool.reach("to have its old target", |pool| {
        !is_rendered_from(pool, "99-failing") && Some(status(pool).observed_generation) == pool.metadata.generation
    })
    .await;
    assert!(is_true(&pool.get().await, "Degraded"));
    pool.configure("99-failing", json!({"kernelArguments": ["psi=1"]})).await;
    pool.reach("to have its new target again", |pool| is_rendered_from(pool, "99-failing")).await;

    shared.stand_in.change(|settings| {
        settings.fail.remove("failing-1");
    });
    let after = pool.settle("99-failing", true, 3).await;
    assert!(!is_true(&after, "Degraded") && !is_true(&after, "NodeDegraded"));
    assert_eq!(status(&after).degraded_machine_count, 0);
    let recording = recorder.stop(&pool).await;
    assert_eq!(recording.most_unavailable(), 1);
    let states = recording.states("failing-2");
    assert_eq!(states.iter().filter(|state| state.starts_with("Rebooting")).count(), 2, "it reboots once: {states:?}");
}

#[tokio::test]
async fn a_pool_without_nodes_is_updated_as_soon_as_it_is_rendered() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "empty", 0, json!({})).await;
    pool.configure("99-empty", json!({"kernelArguments": ["psi=1"]})).await;
    let after = pool.settle("99-empty", true, 0).await;
    let counts = status(&after);
    assert_eq!((counts.machine_count, counts.updated_machine_count, counts.ready_machine_count), (0, 0, 0));
    assert!(is_true(&after, "Updated") && !is_true(&after, "Updating") && !is_true(&after, "Degraded"));

    // A node that joins runs what the pool runs, without a reboot.
    pool.add_node(0, &["empty"], json!({})).await;
    let joined = pool.reach("to have a node", |pool| is_at_rest(pool, 1)).await;
    let node = pool.nodes.get("empty-0").await.unwrap();
    assert!(Machine::of(&node).is_done_with(&joined.spec.configuration.name));
}

#[tokio::test]
async fn a_worker_config_reaches_custom_pools_too_and_a_custom_pool_takes_its_nodes_from_worker() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let worker = TestPool::define(&client, "worker", &["worker"], &["worker"], 2, json!({})).await;
    let infra = TestPool::define(&client, "infra", &["worker", "infra"], &["worker", "infra"], 2, json!({})).await;
    worker.reach("at rest", |pool| is_at_rest(pool, 2)).await;
    let before = infra.reach("at rest", |pool| is_at_rest(pool, 2)).await;
    assert_eq!(before.spec.configuration.source.len(), 2, "its own config and the workers'");

    let recorder = Recorder::start(&infra).await;
    worker.configure("99-worker", json!({"kernelArguments": ["psi=1"]})).await;
    worker.settle("99-worker", true, 2).await;
    let after = infra.settle("99-worker", true, 2).await;
    let recording = recorder.stop(&infra).await;
    assert_eq!(recording.most_unavailable(), 1);
    assert_eq!(recording.order(), ["infra-0", "infra-1"]);
    let rendered = configs(&client).get(&after.spec.configuration.name).await.unwrap();
    assert_eq!(rendered.data["spec"]["kernelArguments"], json!(["quiet", "psi=1", "quiet"]), "workers' first");

    infra.configure("99-infra", json!({"kernelArguments": ["isolcpus=1"]})).await;
    infra.settle("99-infra", true, 2).await;
    assert!(!is_rendered_from(&worker.get().await, "99-infra"), "what is for the custom pool stays there");
    let node = worker.nodes.get("worker-0").await.unwrap();
    assert_eq!(
        node.annotations()[standins::machine_config::names::CURRENT_CONFIG],
        worker.get().await.spec.configuration.name
    );
}

#[tokio::test]
async fn what_cannot_be_rendered_degrades_the_pool_and_touches_no_node() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "broken", 1, json!({})).await;
    let before = pool.get().await;
    pool.configure("99-broken", json!({"extensions": ["games"]})).await;
    let broken = pool.reach("to say so", |pool| is_true(pool, "RenderDegraded")).await;
    assert!(is_true(&broken, "Degraded") && is_true(&broken, "Updated") && !is_true(&broken, "NodeDegraded"));
    assert_eq!(
        message(&broken, "RenderDegraded"),
        "Failed to render configuration for pool broken: MachineConfig 99-broken wants extension \"games\", which does not exist"
    );
    assert_eq!(broken.spec.configuration, before.spec.configuration);
    pool.unconfigure("99-broken").await;
    pool.reach("to recover", |pool| !is_true(pool, "Degraded")).await;
    assert_eq!(describe(&pool.nodes.get("broken-0").await.unwrap()), "Done");
}

#[tokio::test]
async fn the_stand_in_keeps_a_few_of_its_old_rendered_configs() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "busy", 0, json!({})).await;
    for number in 0..14 {
        pool.configure("99-busy", json!({"kernelArguments": [format!("number={number}")]})).await;
        let argument = json!(["quiet", format!("number={number}")]);
        let is_rendered = async || {
            let config = configs(&client).get_opt(&pool.get().await.spec.configuration.name).await.unwrap()?;
            (config.data["spec"]["kernelArguments"] == argument).then_some(())
        };
        eventually(format!("number {number} is rendered"), is_rendered).await;
    }
    let left = async || {
        let ours = ListParams::default().labels(standins::STAND_IN_LABEL);
        let all = configs(&client).list(&ours).await.unwrap();
        all.iter().map(name).filter(|name| name.starts_with("rendered-busy-")).collect::<Vec<_>>()
    };
    eventually("ten and the one in use are left", async || (left().await.len() == 11).then_some(())).await;
    assert!(left().await.contains(&pool.get().await.spec.configuration.name));
}
