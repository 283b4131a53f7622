//! One life of a configuration for every request that the operator makes in it, and for everything that can go wrong with
//! that request.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use advisor::machine::Rhythm;
use futures::future::join_all;
use operator::Settings;
use serde_json::Value;
use testkit::{
    configs::{condition, phase},
    platform::{LOAD_AWARE, Platform},
};

use crate::{
    fault::{Fault, Key},
    script::{Life, Moment, outcome, reset},
    server::everything,
    supervisor::{Supervised, proxy},
    verdict::{Messages, only_what_was_approved, same_end},
};

/// How long a disturbed life may take in all.
const LIMIT: Duration = Duration::from_secs(25);

/// How many requests a fault may cost: what a process asks when it starts, and a new plan every time a request is hit.
const START: usize = 20;
const PER_HIT: usize = 9;

/// Old answers are believed until the next recheck, so that one comes soon. It may cost so many requests.
const RECHECK: Duration = Duration::from_millis(700);
const PER_RECHECK: usize = 10;

/// Control planes that share the work.
const LANES: usize = 2;

/// A request that is not made in every life is waited for in so many.
const TRIES: usize = 3;

/// Without `FAULTS=all`, every fault hits one in so many requests, each fault others than the one before.
const SAMPLE: [(Life, usize); 2] = [(Life::Usual, 9), (Life::Takeover, 18)];

/// What an undisturbed life looks like.
#[derive(Debug)]
pub(crate) struct Model {
    life: Life,
    pub(crate) requests: Vec<Key>,
    reads: Vec<String>,
    /// What was written to targets, in this order.
    pub(crate) written: Vec<String>,
    pub(crate) outcome: Value,
}

struct Cell<'a> {
    /// Which request of the undisturbed life it is.
    number: usize,
    key: &'a Key,
    fault: Fault,
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = format!("{:?}", self.fault);
        write!(f, "{:>3}  {fault:<15}  {}", self.number, self.key)
    }
}

#[derive(Debug)]
enum Verdict {
    Passed {
        requests: usize,
    },
    /// The request was not made, or there was no older answer to it.
    NotHit,
    Failed(String),
}

/// W20, W40: busy servers, lost answers, conflicts and crashes, on every request.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_whichever_request_the_end_is_the_same() {
    run(Life::Usual).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_during_a_takeover_and_a_removal_the_end_is_the_same() {
    run(Life::Takeover).await;
}

async fn run(life: Life) {
    let lanes = join_all((0..LANES).map(|_| prepare(life))).await;
    let (platforms, models): (Vec<Platform>, Vec<Model>) = lanes.into_iter().unzip();
    let model = &models[0];
    for other in &models {
        assert_eq!((&other.outcome, &other.written), (&model.outcome, &model.written), "on every cluster");
    }
    let step = SAMPLE.iter().find(|(sampled, _)| *sampled == life && !everything()).map_or(1, |(_, step)| *step);
    let cells = Fault::ALL.into_iter().enumerate().flat_map(|(position, fault)| {
        let hits = model.requests.iter().enumerate().filter(move |(_, key)| fault.can_hit(key));
        let sampled = hits.skip(2 * position % step).step_by(step);
        sampled.map(move |(number, key)| Cell { number: number + 1, key, fault })
    });
    let cells: VecDeque<Cell<'_>> = cells.collect();
    let (count, start) = (cells.len(), Instant::now());
    let queue = Mutex::new(cells);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = platforms.iter().map(async |platform| {
        let mut done = Vec::new();
        while let Some(cell) = next() {
            let verdict = attempt(platform, model, &cell).await;
            if let Verdict::Failed(why) = &verdict {
                println!("{cell}: {why}");
            }
            done.push((cell, verdict));
        }
        done
    });
    let done: Vec<_> = join_all(work).await.into_iter().flatten().collect();
    println!("{life:?}: {} requests undisturbed; {count} cells in {:.0?}", model.requests.len(), start.elapsed());
    report(&done);
}

/// A platform, and what an undisturbed life looks like on it.
pub(crate) async fn prepare(life: Life) -> (Platform, Model) {
    let platform = Platform::at_rest().await;
    platform.install().await;
    // The first operator also offers the other profiles, once and for all.
    let first = Supervised::start(&platform, Settings::default()).await;
    life.live(&platform, async |_, _| {}).await;
    first.stop().await;
    reset(&platform).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, Settings::default()).await;
    life.live(&platform, async |_, _| {}).await;
    let outcome = outcome(&platform).await;
    let proxy = operator.proxy.clone();
    operator.stop().await;
    let written = only_what_was_approved(&platform, mark, &proxy).await.unwrap();
    reset(&platform).await;
    let record = proxy.record();
    let model = Model { life, requests: record.requests.clone(), reads: record.reads.clone(), written, outcome };
    drop(record);
    (platform, model)
}

async fn attempt(platform: &Platform, model: &Model, cell: &Cell<'_>) -> Verdict {
    for _ in 1..TRIES {
        match disturb(platform, model, cell).await {
            Verdict::NotHit if cell.fault != Fault::Stale => {}
            verdict => return verdict,
        }
    }
    disturb(platform, model, cell).await
}

async fn disturb(platform: &Platform, model: &Model, cell: &Cell<'_>) -> Verdict {
    reset(platform).await;
    let mark = platform.mark().await;
    let is_stale = cell.fault.is_stale();
    let rhythm = Rhythm { recheck: RECHECK, prerequisites: RECHECK };
    let settings = Settings { rhythm: if is_stale { rhythm } else { Rhythm::default() }, ..Settings::default() };
    let proxy = proxy(platform).await;
    proxy.record().plan(cell.key.clone(), cell.fault);
    let start = Instant::now();
    let operator = Supervised::behind(proxy.clone(), settings);
    let life = async {
        let disturb = async |moment: Moment, _: &str| {
            if is_stale && moment == Moment::AtRest {
                proxy.look(&model.reads).await;
            }
        };
        model.life.live(platform, disturb).await;
        same_end(platform, &model.outcome, if is_stale { Messages::MayDiffer } else { Messages::Same }).await
    };
    let ended = tokio::time::timeout(LIMIT, life).await;
    operator.stop().await;
    let rechecks = if is_stale { start.elapsed().div_duration_f64(RECHECK) as usize } else { 0 };
    let (requests, hit) = {
        let record = proxy.record();
        (record.requests.len(), record.hit)
    };
    let most = model.requests.len() + START + cell.fault.times() * PER_HIT + rechecks * PER_RECHECK;
    let check = async {
        let config = platform.config(LOAD_AWARE).await;
        ended.unwrap_or_else(|_| {
            Err(format!("it rests in {}: {}", phase(&config), condition(&config, phase(&config))))
        })?;
        let written = only_what_was_approved(platform, mark, &proxy).await?;
        if written != model.written {
            return Err(format!("written: {written:?}"));
        }
        if requests > most { Err(format!("{requests} requests, at most {most} expected")) } else { Ok(()) }
    };
    match check.await {
        Err(why) => Verdict::Failed(why),
        Ok(()) if hit => Verdict::Passed { requests },
        Ok(()) => Verdict::NotHit,
    }
}

/// Counts by fault, and a table of what went wrong.
fn report(done: &[(Cell<'_>, Verdict)]) {
    let mut failures = Vec::new();
    for fault in Fault::ALL {
        let (mut passed, mut not_hit, mut most) = (0, 0, 0);
        for (cell, verdict) in done.iter().filter(|(cell, _)| cell.fault == fault) {
            match verdict {
                Verdict::Passed { requests } => (passed, most) = (passed + 1, most.max(*requests)),
                // Most of what is read has not changed since the beginning.
                Verdict::NotHit if fault == Fault::Stale => not_hit += 1,
                Verdict::NotHit => failures.push(format!("{cell}: not hit")),
                Verdict::Failed(why) => failures.push(format!("{cell}: {why}")),
            }
        }
        if passed + not_hit > 0 {
            let name = format!("{fault:?}");
            println!("{name:<15} {passed:>3} passed, {not_hit} had no older answer, at most {most} requests in a life");
        }
    }
    assert!(failures.is_empty(), "  n  fault            request\n{}", failures.join("\n"));
}
