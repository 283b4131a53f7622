//! Runs a schedule: the whole operator against the API model, with a paused clock.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube_io::{ApiServer, Clock};
use operator::{LeaseSettings, OperatorSettings, election::LeaseTimes, run_on};
use serde_json::Value;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    administrators, client,
    cluster::{Process, REPLICAS, Server},
    fault_plan::FaultPlan,
    final_checks, invariants, machine_config_operator,
    random::Random,
    schedule::{FAULTY, INTERVAL, Order, Schedule},
};

/// The time until nothing may be written any more, and the time during which that is checked: one recheck at least.
const SETTLING: Duration = Duration::from_secs(12 * 60);
const REST: Duration = Duration::from_secs(6 * 60);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) log: Vec<String>,
    pub(crate) violations: Vec<String>,
    pub(crate) requests: u64,
    pub(crate) injected_faults: u64,
    /// The part of the end that follows from the edits alone.
    pub(crate) end: Value,
}

pub(crate) fn run(schedule: &Schedule) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run_async(schedule))
}

async fn run_async(schedule: &Schedule) -> Outcome {
    let server = Server::new(schedule.seed, schedule.fault_plan.clone(), administrators::initial_store());
    let start = Instant::now();
    let machine_config_operator = tokio::spawn(machine_config_operator::run(server.clone(), schedule.seed));
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
    for (number, at) in &schedule.edits {
        sleep_until(start + *at).await;
        administrators::edit(&server, schedule.seed, *number);
        if schedule.order == Order::Spaced {
            server.cluster().fault_plan = schedule.fault_plan.clone();
            let server = server.clone();
            tokio::spawn(async move {
                sleep(FAULTY).await;
                server.cluster().fault_plan = FaultPlan::none();
            });
        }
    }
    sleep_until(start + schedule.end_of_faults()).await;
    server.cluster().fault_plan = FaultPlan::none();
    server.cluster().is_over = true;
    server.log("run", "edits and faults are over");
    administrators::resume(&server);
    if schedule.order == Order::Spaced {
        sleep(INTERVAL).await;
    }
    administrators::reinstall(&server, schedule.seed);
    sleep(SETTLING).await;
    while final_checks::is_time_near(&server, REST) {
        sleep(SETTLING).await;
    }
    let asked = server.cluster().requests;
    let written = final_checks::written(&server.cluster().store);
    server.log("run", "nothing may be written from now on");
    sleep(REST).await;
    final_checks::rested(&server, &written, asked, REST);
    for (handle, replica) in replicas.into_iter().zip(REPLICAS) {
        if handle.is_finished() {
            let error = handle.await.err().map(|error| error.to_string()).unwrap_or_default();
            server.cluster().report_violation(format!("{replica} ended: {error}"));
        } else {
            handle.abort();
        }
    }
    machine_config_operator.abort();
    final_checks::consistent(&server).await;
    let mut cluster = server.cluster();
    final_checks::recorded(&mut cluster);
    final_checks::bounded(&mut cluster, schedule);
    Outcome {
        log: std::mem::take(&mut cluster.log),
        violations: std::mem::take(&mut cluster.violations),
        requests: cluster.requests,
        injected_faults: cluster.injected_faults,
        end: final_checks::end(&cluster),
    }
}

/// Runs one replica, and starts it again whenever it ends.
async fn supervise(server: Server, replica: &'static str, seed: u64, elects: bool) {
    let mut random = Random::of(seed, replica, 0);
    for number in 1.. {
        let process = Process { replica, number };
        let lease = elects.then(|| LeaseSettings {
            namespace: invariants::NAMESPACE.into(),
            id: process.to_string(),
            times: LeaseTimes::default(),
        });
        let clock: Box<dyn Fn() -> Timestamp + Send + Sync> = Box::new(server.clock());
        let clock = Clock::new(clock, random.next());
        let (version, records_kept) = ("v1.0.0".into(), invariants::RECORDS_KEPT);
        let settings = OperatorSettings { version, records_kept, lease, ..OperatorSettings::with_clock(clock) };
        server.log(&process.to_string(), "starts");
        let kubernetes = ApiServer::over(client::client(&server, process));
        tokio::select! {
            biased;
            () = server.crash(replica).notified() => server.log(&process.to_string(), "dies"),
            ended = run_on(kubernetes, settings, std::future::pending()) => {
                server.log(&process.to_string(), &format!("ends: {ended:?}"));
            }
        }
        sleep(random.millis(1, 20_000)).await;
    }
}
