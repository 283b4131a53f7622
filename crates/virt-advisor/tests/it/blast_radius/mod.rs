//! A rollout ends as the blast radius said, guest by guest, on random clusters. Stand-ins play the machine config operator and
//! KubeVirt in simulated time. With an odd seed somebody stops what would block the drain before the plan is approved; with an even
//! seed nobody does until the rollout stands still, and migrations fail.

mod guest;
mod history;
mod random_cluster;
mod site;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    time::Duration,
};

use futures::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use testkit::{
    platform::{LOAD_AWARE, Platform},
    within,
};

use history::History;
use random_cluster::{GUARDED, RandomCluster};
use site::Site;

/// Longer than any rollout here needs to be played.
const LIMIT: Duration = Duration::from_secs(400);

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_ends_as_forecast_on_random_cluster_1() {
    prove(1, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_ends_as_forecast_on_random_cluster_2() {
    prove(2, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_ends_as_forecast_on_random_cluster_3() {
    prove(3, 4).await;
}

/// `SEED=7` plays just this one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "four minutes; make test-blast-radius"]
async fn rollouts_end_as_forecast_on_thirty_random_clusters() {
    let seed = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
    let seeds = seed.map_or(1..=30, |seed: u64| seed..=seed);
    let results = stream::iter(seeds).map(async |seed| (seed, AssertUnwindSafe(prove(seed, 8)).catch_unwind().await));
    let failed: Vec<u64> =
        results.buffer_unordered(2).filter_map(async |(seed, result)| result.is_err().then_some(seed)).collect().await;
    assert!(failed.is_empty(), "seeds {failed:?} did not end as forecast");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_takes_longer_than_forecast_is_noticed() {
    let cluster = RandomCluster::new(1, 3);
    let Played { forecast, seconds } = play(1, &cluster, 5.0).await;
    assert_eq!(forecast.compare(seconds), Err("it takes longer than forecast"), "{forecast:?}, {seconds} s");
}

async fn prove(seed: u64, largest: usize) {
    let cluster = RandomCluster::new(seed, largest);
    let Played { forecast, seconds } = play(seed, &cluster, 1.0).await;
    let max = forecast.max.map_or("?".to_owned(), |max| format!("{max:.0}"));
    println!(
        "seed {seed}: {} nodes, {} guests, {} at a time: forecast {:.0}-{max} s, took {seconds:.0} s",
        cluster.nodes.len(),
        cluster.guests.len(),
        cluster.max_unavailable,
        forecast.min,
    );
    assert_eq!(
        forecast.compare(seconds),
        Ok(()),
        "seed {seed}: {seconds:.0} s, and {:.0}-{max} s were forecast",
        forecast.min
    );
}

/// What the blast radius says about the pool and its guests.
#[derive(Debug)]
struct Forecast {
    nodes: Vec<String>,
    effects: BTreeMap<String, String>,
    min: f64,
    max: Option<f64>,
}

impl Forecast {
    fn of(impact: &Value) -> Forecast {
        let nodes = impact["pools"][0]["nodes"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let guests = nodes.iter().flat_map(|node| node["guests"].as_array().unwrap());
        Forecast {
            nodes: nodes.iter().map(|node| text(&node["name"])).collect(),
            effects: guests.map(|guest| (text(&guest["name"]), text(&guest["effect"]))).collect(),
            min: impact["duration"]["minSeconds"].as_f64().unwrap(),
            max: impact["duration"]["maxSeconds"].as_f64(),
        }
    }

    /// How long the rollout took, in seconds.
    fn compare(&self, seconds: f64) -> Result<(), &'static str> {
        match self.max {
            _ if seconds < self.min => Err("it takes less time than forecast"),
            Some(max) if seconds > max => Err("it takes longer than forecast"),
            _ => Ok(()),
        }
    }

    fn blockers(&self) -> BTreeSet<&str> {
        self.effects.iter().filter(|(_, effect)| *effect == "blocksDrain").map(|(name, _)| name.as_str()).collect()
    }
}

/// A rollout that ended as forecast but for the time that it took.
struct Played {
    forecast: Forecast,
    seconds: f64,
}

async fn play(seed: u64, cluster: &RandomCluster, slowness: f64) -> Played {
    let site = Site::start(cluster, slowness).await;
    let mut forecast = Forecast::of(&site.impact().await);
    assert_eq!(forecast.effects.len(), cluster.guests.len(), "seed {seed}: every guest has one effect");
    for effect in ["movesLive", "restarts", "staysDown", "blocksDrain"] {
        assert!(forecast.effects.values().any(|found| found == effect), "seed {seed}: no guest {effect}");
    }
    assert_eq!(forecast.max, None, "seed {seed}: nobody knows when a guest that blocks is taken away");
    if seed % 2 == 1 {
        for guest in forecast.blockers() {
            site.stop(guest).await;
        }
        site.remove_budget().await;
        forecast = Forecast::of(&site.impact().await);
        let max = forecast.max.unwrap_or_else(|| panic!("seed {seed}: nothing blocks any more"));
        assert!(max <= 3.0 * forecast.min, "seed {seed}: {} to {max} s is not a useful forecast", forecast.min);
    }

    let before = by_name(&site.list("virtualmachineinstances").await);
    let mark = site.platform.mark().await;
    let history = History::start(&site.platform.client).await;
    // At rest nobody waits for anything, so time stands still, also when the rollout is over.
    let start = site.now();
    site.platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    // Without its budget, the guarded pod may be the last one on a node, and holds it no longer than others do.
    let mut freed: BTreeSet<String> = (seed % 2 == 1).then(|| GUARDED.to_owned()).into_iter().collect();
    loop {
        let step = within(LIMIT, format!("seed {seed}: the rollout goes on"), async || {
            let is_done = history.done() == cluster.nodes.len();
            if is_done { Some(Vec::new()) } else { stuck(cluster, &site, &forecast, &freed).await }
        });
        let holding = step.await;
        if holding.is_empty() {
            break;
        }
        for pod in &holding {
            refused(&site.platform, mark, pod).await;
            let guest = pod["metadata"]["annotations"]["kubevirt.io/domain"].as_str();
            match guest {
                Some(guest) if fails_for_good(cluster, guest) => {
                    let holding = site.holding().await;
                    let told = holding.iter().find(|it| it["name"] == guest).map(|it| it["what"].to_string());
                    let names_it = told.as_ref().is_some_and(|told| told.contains(" migrations have failed; "));
                    assert!(names_it, "seed {seed}: {guest} holds its node: {holding:?}");
                    site.mend(guest);
                }
                Some(guest) => site.stop(guest).await,
                None => site.remove_budget().await,
            }
            freed.insert(guest.unwrap_or(GUARDED).to_owned());
        }
    }

    let seconds = site.now().duration_since(start).as_secs_f64();
    assert_eq!(history.order(), forecast.nodes, "seed {seed}: the order of the nodes");
    compare(seed, &site, &forecast, &before, &freed).await;
    site.operator.stop().await;
    Played { forecast, seconds }
}

fn by_name(objects: &[Value]) -> BTreeMap<String, Value> {
    objects.iter().map(|object| (object["metadata"]["name"].as_str().unwrap().to_owned(), object.clone())).collect()
}

/// The pods that hold the rollout up, if on every node that is being drained nothing else is left.
async fn stuck(
    cluster: &RandomCluster,
    site: &Site,
    forecast: &Forecast,
    freed: &BTreeSet<String>,
) -> Option<Vec<Value>> {
    let draining = history::draining(&site.platform.client).await?;
    let mut holders = forecast.blockers();
    holders.insert(GUARDED);
    let migrations = site.list("virtualmachineinstancemigrations").await;
    let failed = |guest: &str| {
        migrations.iter().filter(|it| it["spec"]["vmiName"] == guest && it["status"]["phase"] == "Failed").count()
    };
    let failing = cluster.failing.iter().map(|failing| failing.guest.as_str());
    holders.extend(failing.filter(|guest| fails_for_good(cluster, guest) && failed(guest) >= 2));
    let pods = site.list("pods").await.into_iter();
    let left: Vec<Value> =
        pods.filter(|pod| draining.contains(pod["spec"]["nodeName"].as_str().unwrap_or_default())).collect();
    let name = |pod: &Value| {
        let guest = pod["metadata"]["annotations"]["kubevirt.io/domain"].as_str();
        guest.unwrap_or_else(|| pod["metadata"]["name"].as_str().unwrap()).to_owned()
    };
    let holds = |pod: &Value| holders.contains(name(pod).as_str()) && !freed.contains(&name(pod));
    let nodes: BTreeSet<&str> = left.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    (!left.is_empty() && nodes.len() == draining.len() && left.iter().all(holds)).then_some(left)
}

/// Whether all migrations of a guest fail, until somebody mends that.
fn fails_for_good(cluster: &RandomCluster, guest: &str) -> bool {
    cluster.failing.as_ref().is_some_and(|failing| failing.guest == guest && failing.times.is_none())
}

/// Waits until the API server has refused to evict a pod, and checks that it never agreed.
async fn refused(platform: &Platform, mark: devcluster::LogPosition, pod: &Value) {
    let name = pod["metadata"]["name"].as_str().unwrap();
    testkit::eventually(format!("the eviction of {name} is refused"), async || {
        let requests = platform.cluster.audit().since(mark, &platform.client).await.unwrap();
        let mut evictions = requests.iter().filter(|it| it.subresource == "eviction" && it.name == name && !it.dry_run);
        assert!(evictions.clone().all(|eviction| eviction.code != 201), "{name} was evicted");
        evictions.any(|eviction| eviction.code == 429).then_some(())
    })
    .await;
}

/// The guest itself, or the one that its replica set has started in its place.
fn successor(guests: &[Value], old: &Value) -> Option<Value> {
    let owner = |guest: &Value| guest["metadata"]["ownerReferences"][0].clone();
    let is_of_set = owner(old)["kind"] == "VirtualMachineInstanceReplicaSet";
    let is_it = |guest: &&Value| match is_of_set {
        true => owner(guest)["uid"] == owner(old)["uid"],
        false => guest["metadata"]["name"] == old["metadata"]["name"],
    };
    let mut found = guests.iter().filter(is_it);
    found.next().filter(|_| found.next().is_none()).cloned()
}

/// Every guest ends as forecast.
async fn compare(
    seed: u64,
    site: &Site,
    forecast: &Forecast,
    before: &BTreeMap<String, Value>,
    freed: &BTreeSet<String>,
) {
    for (name, effect) in &forecast.effects {
        let old = before.get(name).unwrap_or_else(|| panic!("seed {seed}: {name} is gone"));
        let what = format!("seed {seed}: guest {name} {effect}");
        testkit::eventually(&what, async || {
            let guest = successor(&site.list("virtualmachineinstances").await, old);
            let migrations = site.list("virtualmachineinstancemigrations").await;
            let has_moved =
                migrations.iter().any(|it| it["spec"]["vmiName"] == **name && it["status"]["phase"] == "Succeeded");
            let is_same = guest.as_ref().is_some_and(|guest| guest["metadata"]["uid"] == old["metadata"]["uid"]);
            let phase = guest.as_ref().map_or("", |guest| guest["status"]["phase"].as_str().unwrap_or_default());
            let is_as_forecast = match effect.as_str() {
                "movesLive" => is_same && phase == "Running" && has_moved,
                "restarts" => !is_same && phase == "Running" && !has_moved,
                "staysDown" => is_same && phase == "Succeeded" && !has_moved,
                "blocksDrain" => freed.contains(name) && !has_moved,
                other => panic!("{what}: {other}"),
            };
            is_as_forecast.then_some(())
        })
        .await;
    }
}
