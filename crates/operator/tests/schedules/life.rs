//! Lives a schedule through: the whole operator on the API model, on a clock that jumps.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use operator::{Kubernetes, LeaseSettings, Settings, Surroundings, election::Times, run_on};
use serde_json::Value;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    dice::Dice,
    door,
    fate::Climate,
    law, mco, people,
    schedule::{Order, SPACE, Schedule, TROUBLED},
    verdict,
    world::{Process, REPLICAS, Server},
};

/// How long it may take until nothing is written any more, and how long that is looked at: a recheck at least.
const SETTLING: Duration = Duration::from_secs(12 * 60);
const REST: Duration = Duration::from_secs(6 * 60);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) story: Vec<String>,
    pub(crate) violations: Vec<String>,
    pub(crate) requests: u64,
    pub(crate) disturbances: u64,
    /// What is left in the end, of what follows from the deeds alone.
    pub(crate) end: Value,
}

pub(crate) fn live(schedule: &Schedule) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(through(schedule))
}

async fn through(schedule: &Schedule) -> Outcome {
    let server = Server::new(schedule.seed, schedule.climate.clone(), people::founded());
    let start = Instant::now();
    let mco = tokio::spawn(mco::run(server.clone(), schedule.seed));
    let replicas = if schedule.elects { 2 } else { 1 };
    let replicas: Vec<JoinHandle<()>> = REPLICAS[..replicas]
        .iter()
        .map(|replica| tokio::spawn(supervise(server.clone(), replica, schedule.seed, schedule.elects)))
        .collect();
    for (replica, at) in schedule.crashes.clone() {
        let server = server.clone();
        tokio::spawn(async move {
            sleep_until(start + at).await;
            server.crash(REPLICAS[replica]).notify_one();
        });
    }
    for (number, at) in &schedule.deeds {
        sleep_until(start + *at).await;
        people::act(&server, schedule.seed, *number);
        if schedule.order == Order::Spaced {
            server.world().climate = schedule.climate.clone();
            let server = server.clone();
            tokio::spawn(async move {
                sleep(TROUBLED).await;
                server.world().climate = Climate::fair();
            });
        }
    }
    sleep_until(start + schedule.storm()).await;
    server.world().climate = Climate::fair();
    server.world().is_over = true;
    server.tell("world", "the storm is over");
    people::resume(&server);
    if schedule.order == Order::Spaced {
        sleep(SPACE).await;
    }
    people::reinstall(&server, schedule.seed);
    sleep(SETTLING).await;
    let asked = server.world().requests;
    let written = verdict::written(&server.world().store);
    server.tell("world", "everything should rest by now");
    sleep(REST).await;
    verdict::rested(&server, &written, asked, REST);
    for (handle, replica) in replicas.into_iter().zip(REPLICAS) {
        if handle.is_finished() {
            let error = handle.await.err().map(|error| error.to_string()).unwrap_or_default();
            server.world().accuse(format!("{replica} ended: {error}"));
        } else {
            handle.abort();
        }
    }
    mco.abort();
    verdict::consistent(&server).await;
    let mut world = server.world();
    verdict::bounded(&mut world, schedule);
    Outcome {
        story: std::mem::take(&mut world.story),
        violations: std::mem::take(&mut world.violations),
        requests: world.requests,
        disturbances: world.disturbances,
        end: verdict::end(&world),
    }
}

/// Runs one replica, and another life of it whenever it ends.
async fn supervise(server: Server, replica: &'static str, seed: u64, elects: bool) {
    let mut dice = Dice::of(seed, replica, 0);
    for number in 1.. {
        let process = Process { replica, number };
        let lease = elects.then(|| LeaseSettings {
            namespace: law::NAMESPACE.into(),
            id: process.to_string(),
            times: Times::default(),
        });
        let clock: Box<dyn Fn() -> Timestamp + Send + Sync> = Box::new(server.clock());
        let surroundings = Surroundings::new(clock, dice.next());
        let settings = Settings { version: "v1.0.0".into(), lease, surroundings, ..Settings::default() };
        server.tell(&process.to_string(), "starts");
        let kubernetes = Kubernetes::over(door::client(&server, process));
        tokio::select! {
            biased;
            () = server.crash(replica).notified() => server.tell(&process.to_string(), "dies"),
            ended = run_on(kubernetes, settings, std::future::pending()) => {
                server.tell(&process.to_string(), &format!("ends: {ended:?}"));
            }
        }
        sleep(dice.millis(1, 20_000)).await;
    }
}
