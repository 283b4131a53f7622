//! The API server and etcd themselves fail: killed in every phase, watches that can no longer be resumed, requests that hang.

use std::time::{Duration, Instant};

use devcluster::{Component, Mark};
use operator::Settings;
use testkit::{platform::Platform, rollout::PSI};
use tokio::sync::Mutex;

use crate::{
    matrix::{Model, prepare},
    script::{Life, Moment, reset},
    supervisor::Supervised,
    verdict::{Messages, only_what_was_approved, same_end},
};

/// How many requests a life may take in which every phase is disturbed.
const MOST: usize = 150;

/// The operator gives ten seconds to a read and so many to a change.
const LONGEST: Duration = Duration::from_secs(30);

/// Whether everything is to be tried, however long it takes.
pub(crate) fn everything() -> bool {
    std::env::var("FAULTS").is_ok_and(|wanted| wanted == "all")
}

/// A server that is just starting knows no roles yet, and refuses everything for a moment.
fn forgive_refusals(operator: &Supervised) {
    operator.proxy.record().forbidden.clear();
}

/// Ends the operator and looks at what it did.
pub(crate) async fn conclude(platform: &Platform, model: &Model, mark: Mark, operator: Supervised, most: usize) {
    let proxy = operator.proxy.clone();
    let ended = same_end(platform, &model.outcome, Messages::Same).await;
    operator.stop().await;
    let written = only_what_was_approved(platform, mark, &proxy).await;
    assert_eq!((ended, written), (Ok(()), Ok(model.written.clone())));
    let requests = proxy.record().requests.len();
    println!("{requests} requests, {} undisturbed", model.requests.len());
    assert!(requests <= most, "{requests} requests: {:#?}", proxy.record().requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_killed_in_every_phase_changes_nothing() {
    let (platform, model) = prepare(Life::Usual).await;
    let moments = if everything() { &[Moment::Busy, Moment::AtRest][..] } else { &[Moment::Busy] };
    for &moment in moments {
        reset(&platform).await;
        let mark = platform.mark().await;
        let operator = Supervised::start(&platform, Settings::default()).await;
        Life::Usual
            .live(&platform, async |now, _| {
                if now == moment {
                    platform.cluster.kill(Component::ApiServer).unwrap();
                    platform.cluster.start(Component::ApiServer).await.unwrap();
                }
            })
            .await;
        forgive_refusals(&operator);
        conclude(&platform, &model, mark, operator, MOST).await;
    }
}

/// Every watch is answered with 410, and what happened meanwhile has to be found out by other means. That takes a restart
/// each time.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn watches_that_expire_in_every_phase_miss_nothing() {
    let (platform, model) = prepare(Life::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, Settings::default()).await;
    Life::Usual
        .live(&platform, async |now, _| {
            if now == Moment::Busy {
                platform.cluster.expire_watches().await.unwrap();
            }
        })
        .await;
    forgive_refusals(&operator);
    conclude(&platform, &model, mark, operator, MOST).await;
}

/// Some servers say so with the code of the answer already, and not within the watch.
#[tokio::test(flavor = "multi_thread")]
async fn watches_that_are_refused_as_expired_in_every_phase_miss_nothing() {
    let (platform, model) = prepare(Life::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, Settings::default()).await;
    Life::Usual
        .live(&platform, async |now, _| {
            if now == Moment::AtRest {
                operator.proxy.expire();
            }
        })
        .await;
    let refused = operator.proxy.record().refused.clone();
    assert!(refused.iter().any(|place| place.contains("/virtplatformconfigs?")), "{refused:#?}");
    conclude(&platform, &model, mark, operator, MOST).await;
}

/// Lives while etcd is paused from when a request of this kind is on its way, on the way to this phase, until the operator
/// has lost patience with it or with the one after it.
async fn hang(label: &str, before: &str, towards: &str) {
    let (platform, model) = prepare(Life::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, Settings::default()).await;
    let held = Mutex::new(None);
    Life::Usual
        .live(&platform, async |moment, phase| {
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
                let abandoned = loop {
                    if let Some(key) = operator.proxy.record().abandoned.first() {
                        break key.to_string();
                    }
                    assert!(start.elapsed() < 2 * LONGEST, "the operator waits for ever");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                };
                println!("etcd was paused for {:.1?}, until the operator gave up on {abandoned}", start.elapsed());
                platform.cluster.resume(Component::Etcd).unwrap();
            }
        })
        .await;
    conclude(&platform, &model, mark, operator, MOST).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hangs_beyond_its_deadline_is_done_again() {
    hang("GET kubedeschedulers/cluster", "Completed", "Drifted").await;
}

/// What etcd was asked to do before it was paused it may do when it is resumed: the change may go through long after the
/// operator gave up on it. That takes half a minute.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn a_write_that_hangs_beyond_its_deadline_is_not_made_twice() {
    hang(&format!("PATCH machineconfigs/{PSI}"), "ReviewRequired", "Waiting").await;
}

/// Longer than a read may take and shorter than a change may.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `make test-faults` runs it"]
async fn an_etcd_that_is_paused_for_twenty_seconds_changes_nothing() {
    let (platform, model) = prepare(Life::Usual).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, Settings::default()).await;
    Life::Usual
        .live(&platform, async |moment, phase| {
            if (moment, phase) == (Moment::Busy, "Waiting") {
                platform.cluster.pause(Component::Etcd).unwrap();
                tokio::time::sleep(Duration::from_secs(20)).await;
                platform.cluster.resume(Component::Etcd).unwrap();
            }
        })
        .await;
    forgive_refusals(&operator);
    conclude(&platform, &model, mark, operator, MOST).await;
}
