//! Faults of the API server and etcd: killed in every phase, expired watches, requests that hang.

use std::time::{Duration, Instant};

use devcluster::{Component, LogPosition};
use operator::OperatorSettings;
use testkit::{platform::Platform, rollout::PSI, within};
use tokio::sync::Mutex;

use crate::{
    checks::{Messages, only_what_was_approved, same_contents, same_end},
    lifecycle::{Lifecycle, Moment, reset},
    matrix::{Baseline, prepare},
    supervisor::Supervised,
};

/// How many requests a life cycle may take with a fault in every phase.
const MOST: usize = 150;

/// The time limit of a write; that of a read is ten seconds.
const LONGEST: Duration = Duration::from_secs(30);

/// Whether `FAULTS=all` is set: the whole matrix, however long it takes.
pub(crate) fn everything() -> bool {
    std::env::var("FAULTS").is_ok_and(|wanted| wanted == "all")
}

/// An API server that has just started knows no roles yet and forbids everything.
fn forgive_refusals(operator: &Supervised) {
    operator.proxy.record().forbidden.clear();
}

/// Stops the operator and checks the outcome, the writes and the number of requests.
pub(crate) async fn conclude(
    platform: &Platform,
    baseline: &Baseline,
    mark: LogPosition,
    operator: Supervised,
    most: usize,
) {
    let proxy = operator.proxy.clone();
    let ended = same_end(platform, &baseline.outcome, Messages::Same).await;
    operator.stop().await;
    let contents = same_contents(&proxy, &baseline.contents);
    let written = only_what_was_approved(platform, mark).await;
    assert_eq!((ended, contents, written), (Ok(()), Ok(()), Ok(baseline.written.clone())));
    let requests = proxy.record().requests.len();
    println!("{requests} requests, {} undisturbed", baseline.requests.len());
    assert!(requests <= most, "{requests} requests: {:#?}", proxy.record().requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_killed_in_every_phase_changes_nothing() {
    let (platform, baseline) = prepare(Lifecycle::Usual).await;
    let moments = if everything() { &[Moment::Busy, Moment::AtRest][..] } else { &[Moment::Busy] };
    for &moment in moments {
        reset(&platform).await;
        let mark = platform.mark().await;
        let operator = Supervised::start(&platform, OperatorSettings::default()).await;
        Lifecycle::Usual
            .run(&platform, async |now, _| {
                if now == moment {
                    platform.cluster.kill(Component::ApiServer).unwrap();
                    platform.cluster.start(Component::ApiServer).await.unwrap();
                }
            })
            .await;
        forgive_refusals(&operator);
        conclude(&platform, &baseline, mark, operator, MOST).await;
    }
}

/// Every watch is answered with 410, and the changes meanwhile must be found by a list. Each time takes a restart.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn watches_that_expire_in_every_phase_miss_nothing() {
    let (platform, baseline) = prepare(Lifecycle::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, OperatorSettings::default()).await;
    Lifecycle::Usual
        .run(&platform, async |now, _| {
            if now == Moment::Busy {
                platform.cluster.expire_watches().await.unwrap();
            }
        })
        .await;
    forgive_refusals(&operator);
    conclude(&platform, &baseline, mark, operator, MOST).await;
}

/// Some servers answer an expired watch with the HTTP code 410, and not with an event of the watch.
#[tokio::test(flavor = "multi_thread")]
async fn watches_that_are_refused_as_expired_in_every_phase_miss_nothing() {
    let (platform, baseline) = prepare(Lifecycle::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, OperatorSettings::default()).await;
    Lifecycle::Usual
        .run(&platform, async |now, _| {
            if now == Moment::AtRest {
                operator.proxy.expire();
            }
        })
        .await;
    let refused = operator.proxy.record().refused.clone();
    assert!(refused.iter().any(|place| place.contains("/virtplatformconfigs?")), "{refused:#?}");
    conclude(&platform, &baseline, mark, operator, MOST).await;
}

/// Pauses etcd when a request with this label arrives, until the operator gives up a request.
async fn hang(label: &str, before: &str, towards: &str) {
    let (platform, baseline) = prepare(Lifecycle::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, OperatorSettings::default()).await;
    let held = Mutex::new(None);
    Lifecycle::Usual
        .run(&platform, async |moment, phase| {
            if (moment, phase) == (Moment::AtRest, before) {
                let hold = operator.proxy.record().hold(label);
                *held.lock().await = Some(hold);
            }
            if (moment, phase) == (Moment::Busy, towards) {
                let (arrival, release) = held.lock().await.take().unwrap();
                arrival.await.unwrap();
                platform.cluster.pause(Component::Etcd).unwrap();
                let start = Instant::now();
                release.send(()).unwrap();
                let abandoned = async || operator.proxy.record().abandoned.first().map(ToString::to_string);
                let abandoned = within(2 * LONGEST, "the operator gives up", abandoned).await;
                println!("etcd was paused for {:.1?}, until the operator gave up on {abandoned}", start.elapsed());
                platform.cluster.resume(Component::Etcd).unwrap();
            }
        })
        .await;
    conclude(&platform, &baseline, mark, operator, MOST).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hangs_beyond_its_deadline_is_done_again() {
    hang("GET kubedeschedulers/cluster", "Completed", "Drifted").await;
}

/// etcd may carry out a write after it is resumed, long after the operator gave it up. This takes half a minute.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn a_write_that_hangs_beyond_its_deadline_is_not_made_twice() {
    hang(&format!("PATCH machineconfigs/{PSI}"), "ReviewRequired", "Waiting").await;
}

/// Longer than the time limit of a read, and shorter than that of a write.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn an_etcd_that_is_paused_for_twenty_seconds_changes_nothing() {
    let (platform, baseline) = prepare(Lifecycle::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, OperatorSettings::default()).await;
    Lifecycle::Usual
        .run(&platform, async |moment, phase| {
            if (moment, phase) == (Moment::Busy, "Waiting") {
                platform.cluster.pause(Component::Etcd).unwrap();
                tokio::time::sleep(Duration::from_secs(20)).await;
                platform.cluster.resume(Component::Etcd).unwrap();
            }
        })
        .await;
    forgive_refusals(&operator);
    conclude(&platform, &baseline, mark, operator, MOST).await;
}
