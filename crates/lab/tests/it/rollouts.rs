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

use crate::{
    film::{Camera, Film},
    platform::{Pool, configs, is, is_at_rest, message, shared, status},
};

const KARG: &str = "psi=1";

/// What every node goes through, and nothing else.
const STORY: [&str; 8] = [
    "Done",
    "Done told",
    "Working told cordoned",
    "Working told cordoned drained",
    "Working told cordoned drained down",
    "Rebooting told cordoned drained down",
    "Rebooting told cordoned drained",
    "Done",
];

/// Adds a kernel argument and watches it reach all nodes.
async fn roll_out(pool: &Pool, nodes: usize) -> Film {
    let config = format!("99-{}", pool.name);
    let camera = Camera::start(pool).await;
    pool.configure(&config, json!({"kernelArguments": [KARG]})).await;
    pool.settle(&config, true, nodes).await;
    camera.stop(pool).await
}

/// What holds of any rollout that nothing goes wrong in.
async fn check(film: &Film, pool: &Pool, nodes: usize, at_a_time: usize) {
    let names: Vec<_> = (0..nodes).map(|number| pool.node(number)).collect();
    assert_eq!(film.most_away(), at_a_time.min(nodes), "as many at a time as allowed, and no more");
    let mut order = film.order();
    if at_a_time == 1 {
        assert_eq!(order, names, "the oldest first");
    }
    order.sort();
    assert_eq!(order, names, "each node once");
    for node in &names {
        assert_eq!(film.story(node), STORY, "{node}");
    }

    let updated = film.counts(|status| status.updated_machine_count);
    let count = i32::try_from(nodes).unwrap();
    assert_eq!(updated.first(), Some(&count), "before the change all are updated");
    assert!(updated[1..].is_sorted() && updated[1] == 0 && updated.last() == Some(&count), "{updated:?}");
    let unavailable = film.counts(|status| status.unavailable_machine_count);
    assert!(unavailable.iter().all(|&away| usize::try_from(away).unwrap() <= at_a_time), "{unavailable:?}");
    assert_eq!(film.counts(|status| status.degraded_machine_count), [0]);

    let last = film.pools.last().unwrap();
    let target = &last.spec.configuration.name;
    for seen in &film.pools {
        let status = status(seen);
        assert!(status.ready_machine_count <= status.updated_machine_count);
        if status.configuration.name == *target {
            assert_eq!(status.updated_machine_count, count, "the status moves last");
            assert!(is(seen, "Updated") && !is(seen, "Updating"));
        } else if seen.spec.configuration.name == *target
            && status.observed_generation == seen.metadata.generation.unwrap()
        {
            assert!(!is(seen, "Updated") && is(seen, "Updating"), "{status:#?}");
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

/// What the advisor makes of each state that the pool went through, one line per change.
fn believed(film: &Film, pool: &Pool, wanted: Expected) -> Vec<Rollout> {
    let (config, labels) = (format!("99-{}", pool.name), json!({names::ROLE: pool.name}));
    let of_state = |seen: &MachineConfigPool| {
        let items = vec![serde_json::to_value(seen).unwrap()];
        let answer = Answer::List { version: "v1", items };
        let facts = Facts::of([(Query::List(&MACHINE_CONFIG_POOL), answer)]);
        rollout(&config, &advisor::pools::reached(&facts, &labels), wanted, |_| None)
    };
    let mut believed: Vec<Rollout> = film.pools.iter().map(of_state).collect();
    believed.dedup();
    believed
}

/// A rollout is believed to be done once, at its very end, although the pool says it is updated at its beginning too.
fn check_believed(film: &Film, pool: &Pool, wanted: Expected, nodes: usize) {
    let name = &pool.name;
    let believed = believed(film, pool, wanted);
    let done = Rollout::Done(format!("MachineConfigPool '{name}' is ready (all {nodes} nodes updated)"));
    let (last, before) = believed.split_last().unwrap();
    assert_eq!(*last, done);
    assert!(before.iter().all(|rollout| matches!(rollout, Rollout::Waiting(_))), "{before:#?}");
    let first =
        format!("MachineConfigPool '{name}' is processing changes (Updated: {nodes}/{nodes}, Ready: {nodes}/{nodes})");
    assert_eq!(before[0], Rollout::Waiting(first), "updated, but not with this change");
    for updated in 0..nodes {
        let part = format!("is updating (Updated: {updated}/{nodes}, Ready: ");
        let told = |rollout: &Rollout| matches!(rollout, Rollout::Waiting(message) if message.contains(&part));
        assert!(before.iter().any(told), "{part}: {before:#?}");
    }
}

async fn arguments(pool: &Pool, of: &MachineConfigPool) -> Value {
    let rendered = configs(&pool.client).get(&of.spec.configuration.name).await.unwrap();
    rendered.data["spec"]["kernelArguments"].clone()
}

#[tokio::test]
async fn three_nodes_are_taken_one_by_one_and_back_when_the_config_is_removed() {
    let client = shared().await.cluster.access().client().await.unwrap();
    let pool = Pool::create(&client, "three", 3, json!({})).await;
    let before = pool.get().await;

    let film = roll_out(&pool, 3).await;
    check(&film, &pool, 3, 1).await;
    check_believed(&film, &pool, Expected::Present, 3);
    let after = pool.get().await;
    assert_eq!(arguments(&pool, &after).await, json!(["quiet", KARG]));
    let rendered = configs(&client).get(&after.spec.configuration.name).await.unwrap();
    assert_eq!(rendered.labels()[STAND_IN_LABEL], "true");
    assert_eq!(rendered.annotations()[names::GENERATED_BY], names::FIELD_MANAGER);
    assert_eq!(rendered.owner_references()[0].name, "three");
    let node = pool.nodes.get(&pool.node(0)).await.unwrap();
    let managers = node.metadata.managed_fields.clone().unwrap_or_default().into_iter().filter_map(|it| it.manager);
    assert!(managers.into_iter().any(|manager| manager == names::FIELD_MANAGER));

    let camera = Camera::start(&pool).await;
    pool.unconfigure("99-three").await;
    let back = pool.settle("99-three", false, 3).await;
    let film = camera.stop(&pool).await;
    check(&film, &pool, 3, 1).await;
    check_believed(&film, &pool, Expected::Absent, 3);
    assert_eq!(back.spec.configuration, before.spec.configuration, "the same content has the same name");
    assert_eq!(arguments(&pool, &back).await, json!(["quiet"]));
}

#[tokio::test]
async fn six_nodes_are_taken_one_by_one() {
    let client = shared().await.cluster.access().client().await.unwrap();
    let pool = Pool::create(&client, "six", 6, json!({})).await;
    check(&roll_out(&pool, 6).await, &pool, 6, 1).await;
}

#[tokio::test]
async fn max_unavailable_lets_more_nodes_go_at_a_time() {
    let client = shared().await.cluster.access().client().await.unwrap();
    let two = Pool::create(&client, "two-at-a-time", 6, json!({"maxUnavailable": 2})).await;
    check(&roll_out(&two, 6).await, &two, 6, 2).await;
    let half = Pool::create(&client, "half-at-a-time", 6, json!({"maxUnavailable": "50%"})).await;
    check(&roll_out(&half, 6).await, &half, 6, 3).await;
}

#[tokio::test]
async fn a_node_that_somebody_cordoned_counts_and_is_not_touched() {
    let client = shared().await.cluster.access().client().await.unwrap();
    let pool = Pool::create(&client, "cordoned", 2, json!({"maxUnavailable": 2})).await;
    pool.nodes.cordon(&pool.node(0)).await.unwrap();
    pool.reach("to notice", |pool| status(pool).unavailable_machine_count == 1).await;
    pool.configure("99-cordoned", json!({"kernelArguments": [KARG]})).await;
    let seen = pool.reach("to update the other", |pool| {
        status(pool).updated_machine_count == 1 && status(pool).unavailable_machine_count == 1
    });
    let seen = seen.await;
    assert!(is(&seen, "Updating") && !is(&seen, "Updated"));
    let node = pool.nodes.get(&pool.node(0)).await.unwrap();
    assert!(!Machine::of(&node).is_done_with(&seen.spec.configuration.name));

    pool.nodes.uncordon(&pool.node(0)).await.unwrap();
    pool.reach("to finish", |pool| is_at_rest(pool, 2)).await;
}
