//! A change of a pool's machine configs reaches its nodes: one by one, or as many at a time as the pool allows.

use advisor::{
    Answer, Facts, Query,
    kind::MACHINE_CONFIG_POOL,
    rollout::{Expected, Rollout, rollout},
};
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};
use standins::{
    STAND_IN_LABEL,
    machine_config::{Machine, MachineConfigPool, names},
};

use super::{
    fixtures::{TestPool, configs, is_at_rest, is_true, message, shared_cluster, status},
    recording::{Recorder, Recording},
};

const KARG: &str = "psi=1";

/// The states of every node during a rollout.
const NODE_STATES: [&str; 8] = [
    "Done",
    "Done outdated",
    "Working outdated cordoned",
    "Working outdated cordoned drained",
    "Working outdated cordoned drained down",
    "Rebooting outdated cordoned drained down",
    "Rebooting outdated cordoned drained",
    "Done",
];

/// Adds a kernel argument and records its rollout to all nodes.
async fn roll_out(pool: &TestPool, nodes: usize) -> Recording {
    let config = format!("99-{}", pool.name);
    let recorder = Recorder::start(pool).await;
    pool.configure(&config, json!({"kernelArguments": [KARG]})).await;
    pool.settle(&config, true, nodes).await;
    recorder.stop(pool).await
}

/// The assertions on every rollout without failures.
async fn check(recording: &Recording, pool: &TestPool, nodes: usize, at_a_time: usize) {
    let names: Vec<_> = (0..nodes).map(|number| pool.node(number)).collect();
    assert_eq!(recording.most_unavailable(), at_a_time.min(nodes), "as many at a time as allowed, and no more");
    let mut order = recording.order();
    if at_a_time == 1 {
        assert_eq!(order, names, "the oldest first");
    }
    order.sort();
    assert_eq!(order, names, "each node once");
    for node in &names {
        assert_eq!(recording.states(node), NODE_STATES, "{node}");
    }

    let updated = recording.counts(|status| status.updated_machine_count);
    let count = i32::try_from(nodes).unwrap();
    assert_eq!(updated.first(), Some(&count), "before the change all are updated");
    assert!(updated[1..].is_sorted() && updated[1] == 0 && updated.last() == Some(&count), "{updated:?}");
    let unavailable = recording.counts(|status| status.unavailable_machine_count);
    assert!(unavailable.iter().all(|&count| usize::try_from(count).unwrap() <= at_a_time), "{unavailable:?}");
    assert_eq!(recording.counts(|status| status.degraded_machine_count), [0]);

    let last = recording.pools.last().unwrap();
    let target = &last.spec.configuration.name;
    for seen in &recording.pools {
        let status = status(seen);
        assert!(status.ready_machine_count <= status.updated_machine_count);
        if status.configuration.name == *target {
            assert_eq!(status.updated_machine_count, count, "the status moves last");
            assert!(is_true(seen, "Updated") && !is_true(seen, "Updating"));
        } else if seen.spec.configuration.name == *target
            && status.observed_generation == seen.metadata.generation.unwrap()
        {
            assert!(!is_true(seen, "Updated") && is_true(seen, "Updating"), "{status:#?}");
            assert_eq!(message(seen, "Updating"), format!("All nodes are updating to MachineConfig {target}"));
        }
    }
    assert_eq!(message(last, "Updated"), format!("All nodes are updated with MachineConfig {target}"));

    let selector = format!("node-role.kubernetes.io/{}", pool.name);
    for node in pool.nodes.list(&ListParams::default().labels(&selector)).await.unwrap() {
        let machine = Machine::of(&node);
        assert!(machine.is_done_with(target) && machine.is_in_service(), "{node:#?}");
        assert_eq!(node.annotations()[names::REASON], "");
        assert!(!node.annotations().contains_key(names::SINCE));
    }
}

/// The advisor's view of each state of the pool, without repetitions.
fn advisor_views(recording: &Recording, pool: &TestPool, is_present: bool) -> Vec<Rollout> {
    let config = json!({"spec": {"kernelArguments": [KARG]}});
    let (name, labels) = (format!("99-{}", pool.name), json!({names::ROLE: pool.name}));
    let of_state = |seen: &MachineConfigPool| {
        let items = vec![serde_json::to_value(seen).unwrap()];
        let answer = Answer::List { version: "v1", items };
        let facts = Facts::of([(Query::List(&MACHINE_CONFIG_POOL), answer)]);
        let config = is_present.then_some(&config);
        let pools = advisor::pools::reached(&facts, &labels).into_iter();
        let expected: Vec<_> = pools.map(|pool| Expected { pool, config }).collect();
        rollout(&name, &expected, &facts, |_| None)
    };
    let mut views: Vec<Rollout> = recording.pools.iter().map(of_state).collect();
    views.dedup();
    views
}

/// For the advisor the rollout is done only at its end, although the pool is Updated at its beginning, too.
fn check_advisor_views(recording: &Recording, pool: &TestPool, is_present: bool, nodes: usize) {
    let name = &pool.name;
    let views = advisor_views(recording, pool, is_present);
    let done = Rollout::Done(format!("MachineConfigPool '{name}' is ready (all {nodes} nodes updated)"));
    let (last, before) = views.split_last().unwrap();
    assert_eq!(*last, done);
    assert!(before.iter().all(|rollout| matches!(rollout, Rollout::Waiting(_))), "{before:#?}");
    let first =
        format!("MachineConfigPool '{name}' is processing changes (Updated: {nodes}/{nodes}, Ready: {nodes}/{nodes})");
    assert_eq!(message_of(&before[0]), Some(first.as_str()), "updated, but not with this change");
    for updated in 0..nodes {
        let part = format!("is updating (Updated: {updated}/{nodes}, Ready: ");
        let told = |rollout: &Rollout| message_of(rollout).is_some_and(|message| message.contains(&part));
        assert!(before.iter().any(told), "{part}: {before:#?}");
    }
}

/// What is said about the pool that is waited for.
fn message_of(rollout: &Rollout) -> Option<&str> {
    match rollout {
        Rollout::Waiting(pools) => pools.first().map(|pool| pool.message.as_str()),
        _ => None,
    }
}

async fn arguments(pool: &TestPool, of: &MachineConfigPool) -> Value {
    let rendered = configs(&pool.client).get(&of.spec.configuration.name).await.unwrap();
    rendered.data["spec"]["kernelArguments"].clone()
}

#[tokio::test]
async fn three_nodes_are_updated_one_by_one_and_back_when_the_config_is_removed() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "three", 3, json!({})).await;
    let before = pool.get().await;

    let recording = roll_out(&pool, 3).await;
    check(&recording, &pool, 3, 1).await;
    check_advisor_views(&recording, &pool, true, 3);
    let after = pool.get().await;
    assert_eq!(arguments(&pool, &after).await, json!(["quiet", KARG]));
    let rendered = configs(&client).get(&after.spec.configuration.name).await.unwrap();
    assert_eq!(rendered.labels()[STAND_IN_LABEL], "true");
    assert_eq!(rendered.annotations()[names::GENERATED_BY], names::FIELD_MANAGER);
    assert_eq!(rendered.owner_references()[0].name, "three");
    let node = pool.nodes.get(&pool.node(0)).await.unwrap();
    let managers = node.metadata.managed_fields.clone().unwrap_or_default().into_iter().filter_map(|it| it.manager);
    assert!(managers.into_iter().any(|manager| manager == names::FIELD_MANAGER));

    let recorder = Recorder::start(&pool).await;
    pool.unconfigure("99-three").await;
    let back = pool.settle("99-three", false, 3).await;
    let recording = recorder.stop(&pool).await;
    check(&recording, &pool, 3, 1).await;
    check_advisor_views(&recording, &pool, false, 3);
    assert_eq!(back.spec.configuration, before.spec.configuration, "the same content has the same name");
    assert_eq!(arguments(&pool, &back).await, json!(["quiet"]));
}

#[tokio::test]
async fn six_nodes_are_updated_one_by_one() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "six", 6, json!({})).await;
    check(&roll_out(&pool, 6).await, &pool, 6, 1).await;
}

#[tokio::test]
async fn max_unavailable_lets_more_nodes_be_updated_at_a_time() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let two = TestPool::create(&client, "two-at-a-time", 6, json!({"maxUnavailable": 2})).await;
    check(&roll_out(&two, 6).await, &two, 6, 2).await;
    let half = TestPool::create(&client, "half-at-a-time", 6, json!({"maxUnavailable": "50%"})).await;
    check(&roll_out(&half, 6).await, &half, 6, 3).await;
}

#[tokio::test]
async fn a_node_that_somebody_cordoned_counts_and_is_not_touched() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "cordoned", 2, json!({"maxUnavailable": 2})).await;
    pool.nodes.cordon(&pool.node(0)).await.unwrap();
    pool.reach("to notice", |pool| status(pool).unavailable_machine_count == 1).await;
    pool.configure("99-cordoned", json!({"kernelArguments": [KARG]})).await;
    let seen = pool.reach("to update the other", |pool| {
        status(pool).updated_machine_count == 1 && status(pool).unavailable_machine_count == 1
    });
    let seen = seen.await;
    assert!(is_true(&seen, "Updating") && !is_true(&seen, "Updated"));
    let node = pool.nodes.get(&pool.node(0)).await.unwrap();
    assert!(!Machine::of(&node).is_done_with(&seen.spec.configuration.name));

    pool.nodes.uncordon(&pool.node(0)).await.unwrap();
    pool.reach("to finish", |pool| is_at_rest(pool, 2)).await;
}
