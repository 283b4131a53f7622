use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::{Client, Config};
use tokio::sync::oneshot;

use super::{Simulation, Time};

/// Nothing is written in these tests, so nothing is asked for.
fn simulation() -> Simulation {
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    Simulation::start(client, Timestamp::UNIX_EPOCH)
}

fn seconds(time: &Time) -> i64 {
    time.now().as_second()
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_time_is_the_sum_of_the_waits_of_the_longest_way() {
    let simulation = simulation();
    let time = simulation.time();
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let walk = |name: &'static str, waits: [u64; 3]| {
        let (time, log) = (time.clone(), log.clone());
        time.clone().working(async move {
            for wait in waits {
                time.sleep(s(wait)).await;
                log.lock().unwrap().push(format!("{name} {}", seconds(&time)));
            }
        })
    };
    let (one, other) = (walk("one", [100, 100, 3600]), walk("other", [150, 1, 1]));
    let (one, other) = (tokio::spawn(one), tokio::spawn(other));
    one.await.unwrap();
    other.await.unwrap();
    let expected = ["one 100", "other 150", "other 151", "other 152", "one 200", "one 3800"];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_stands_still_while_somebody_works() {
    let simulation = simulation();
    let time = simulation.time().clone();
    let busy = time.busy();
    let waits = time.clone();
    let sleeper = tokio::spawn(time.working(async move { waits.sleep(s(10)).await }));
    let (sender, receiver) = oneshot::channel();
    let waits = time.clone();
    let worker = tokio::spawn(time.working(async move {
        let _busy = busy;
        // Others get every chance to run.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        sender.send(seconds(&waits)).unwrap();
    }));
    assert_eq!(receiver.await.unwrap(), 0);
    worker.await.unwrap();
    sleeper.await.unwrap();
    assert_eq!(seconds(&time), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_given_up_does_not_move_time() {
    let simulation = simulation();
    let time = simulation.time().clone();
    let waits = time.clone();
    let task = time.working(async move {
        let quick = waits.timeout(s(3600), waits.sleep(s(5))).await;
        let slow = waits.timeout(s(7), waits.sleep(s(3600))).await;
        waits.sleep_until(Some(Timestamp::UNIX_EPOCH)).await;
        (quick, slow)
    });
    assert_eq!(tokio::spawn(task).await.unwrap(), (Some(()), None));
    assert_eq!(seconds(&time), 12);
    tokio::task::yield_now().await;
    assert_eq!(seconds(&time), 12, "nobody waits for anything");
}

#[tokio::test]
async fn without_a_simulation_time_is_that_of_the_machine() {
    let time = Time::default();
    let before = time.now();
    time.sleep(Duration::from_millis(2)).await;
    assert!(time.now().duration_since(before) >= SignedDuration::from_millis(2));
    assert_eq!(time.timeout(Duration::from_millis(1), std::future::pending::<()>()).await, None);
}
