//! The fault matrix: one life cycle of a configuration for every request of the operator and every fault of that request.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use advisor::machine::Intervals;
use futures::future::join_all;
use operator::OperatorSettings;
use serde_json::Value;
use testkit::{
    configs::{condition, phase},
    eventually,
    platform::{LOAD_AWARE, Platform},
    poll,
};

use crate::{
    checks::{Messages, only_what_was_approved, same_contents, same_end},
    control_plane::everything,
    fault::{Fault, Key},
    lifecycle::{Lifecycle, Moment, outcome, records, reset},
    supervisor::{Supervised, proxy},
};

/// The time limit of a life cycle with a fault. It is less than the interval of rechecks, which would help.
const LIMIT: Duration = Duration::from_secs(90);

/// How many more requests a fault may cause: those of a start (rendered configs and records are read, too), and those of a new plan for
/// every hit.
const START: usize = 24;
const PER_HIT: usize = 9;

/// The interval of rechecks after stale answers, and how many requests one may cause.
const RECHECK: Duration = Duration::from_millis(700);
const PER_RECHECK: usize = 10;

/// How many control planes work on a matrix.
const CLUSTERS: usize = 2;

/// How long records may be deleted after the end of a life cycle.
const AFTER: Duration = Duration::from_secs(6);

/// A request that does not occur in every life cycle gets so many tries.
const TRIES: usize = 3;

/// Without `FAULTS=all`, each fault hits one in so many requests, and each fault hits other requests.
const SAMPLE: [(Lifecycle, usize); 2] = [(Lifecycle::Usual, 9), (Lifecycle::Takeover, 27)];

/// A life cycle without faults.
#[derive(Debug)]
pub(crate) struct Baseline {
    lifecycle: Lifecycle,
    pub(crate) requests: Vec<Key>,
    reads: Vec<String>,
    /// The writes to targets, in order.
    pub(crate) written: Vec<String>,
    /// What targets were to become.
    pub(crate) contents: Vec<(String, String)>,
    pub(crate) outcome: Value,
}

struct Cell<'a> {
    /// The number of the request in the baseline.
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
enum CellResult {
    Passed {
        requests: usize,
    },
    /// The request did not occur, or there was no older answer to it.
    NotHit,
    Failed(String),
}

/// W20 (final transient errors), W40 (ignored status errors): busy servers, lost answers, conflicts and crashes, on
/// every request.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_whichever_request_the_end_is_the_same() {
    run(Lifecycle::Usual).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_during_a_takeover_and_a_removal_the_end_is_the_same() {
    run(Lifecycle::Takeover).await;
}

async fn run(lifecycle: Lifecycle) {
    let clusters = join_all((0..CLUSTERS).map(|_| prepare(lifecycle))).await;
    let (platforms, baselines): (Vec<Platform>, Vec<Baseline>) = clusters.into_iter().unzip();
    let baseline = &baselines[0];
    for other in &baselines {
        assert_eq!((&other.outcome, &other.written), (&baseline.outcome, &baseline.written), "on every cluster");
    }
    let step = SAMPLE.iter().find(|(sampled, _)| *sampled == lifecycle && !everything()).map_or(1, |(_, step)| *step);
    let cells = Fault::ALL.into_iter().enumerate().flat_map(|(position, fault)| {
        let hits = baseline.requests.iter().enumerate().filter(move |(_, key)| fault.can_hit(key));
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
            let result = attempt(platform, baseline, &cell).await;
            if let CellResult::Failed(why) = &result {
                println!("{cell}: {why}");
            }
            done.push((cell, result));
        }
        done
    });
    let done: Vec<_> = join_all(work).await.into_iter().flatten().collect();
    println!(
        "{lifecycle:?}: {} requests undisturbed; {count} cells in {:.0?}",
        baseline.requests.len(),
        start.elapsed()
    );
    report(&done);
}

/// As few records are kept as possible, so that some are deleted.
fn settings() -> OperatorSettings {
    OperatorSettings { records_kept: 1, ..OperatorSettings::default() }
}

/// A platform, and the baseline on it.
pub(crate) async fn prepare(lifecycle: Lifecycle) -> (Platform, Baseline) {
    let platform = Platform::shared().await;
    // The first operator also offers the other profiles, which stay.
    let first = Supervised::start(&platform, settings()).await;
    lifecycle.run(&platform, async |_, _| {}).await;
    first.stop().await;
    reset(&platform).await;
    let mark = platform.mark().await;
    let operator = Supervised::start(&platform, settings()).await;
    lifecycle.run(&platform, async |_, _| {}).await;
    eventually("records that are not kept are deleted", async || (records(&platform).await <= 2).then_some(())).await;
    let outcome = outcome(&platform).await;
    let proxy = operator.proxy.clone();
    operator.stop().await;
    let written = only_what_was_approved(&platform, mark).await.unwrap();
    reset(&platform).await;
    let record = proxy.record();
    let baseline = Baseline {
        lifecycle,
        requests: record.requests.clone(),
        reads: record.reads.clone(),
        written,
        contents: record.writes.clone(),
        outcome,
    };
    drop(record);
    (platform, baseline)
}

async fn attempt(platform: &Platform, baseline: &Baseline, cell: &Cell<'_>) -> CellResult {
    for _ in 1..TRIES {
        match disturb(platform, baseline, cell).await {
            CellResult::NotHit if cell.fault != Fault::Stale => {}
            result => return result,
        }
    }
    disturb(platform, baseline, cell).await
}

async fn disturb(platform: &Platform, baseline: &Baseline, cell: &Cell<'_>) -> CellResult {
    reset(platform).await;
    let mark = platform.mark().await;
    let is_stale = cell.fault.is_stale();
    let intervals = Intervals { recheck: RECHECK, prerequisites: RECHECK, ..Intervals::default() };
    let settings =
        OperatorSettings { intervals: if is_stale { intervals } else { Intervals::default() }, ..settings() };
    let proxy = proxy(platform).await;
    proxy.record().plan(cell.key.clone(), cell.fault);
    let start = Instant::now();
    let operator = Supervised::behind(proxy.clone(), settings);
    let lifecycle = async {
        let disturb = async |moment: Moment, _: &str| {
            if is_stale && moment == Moment::AtRest {
                proxy.preload(&baseline.reads).await;
            }
        };
        baseline.lifecycle.run(platform, disturb).await;
        let messages = if is_stale { Messages::MayDiffer } else { Messages::Same };
        let end = same_end(platform, &baseline.outcome, messages).await;
        // Nothing tells when the operator is done with records.
        if cell.key.label.contains("virtplatformplanrecords") {
            let _ = poll(AFTER, async || proxy.record().hit.then_some(()).ok_or(())).await;
        }
        end
    };
    let ended = tokio::time::timeout(LIMIT, lifecycle).await;
    operator.stop().await;
    let rechecks = if is_stale { start.elapsed().div_duration_f64(RECHECK) as usize } else { 0 };
    let (requests, hit) = {
        let record = proxy.record();
        (record.requests.len(), record.hit)
    };
    let most = baseline.requests.len() + START + cell.fault.times() * PER_HIT + rechecks * PER_RECHECK;
    let check = async {
        let config = platform.config(LOAD_AWARE).await;
        ended.unwrap_or_else(|_| {
            Err(format!("it rests in {}: {}", phase(&config), condition(&config, phase(&config))))
        })?;
        same_contents(&proxy, &baseline.contents)?;
        let written = only_what_was_approved(platform, mark).await?;
        if written != baseline.written {
            return Err(format!("written: {written:?}"));
        }
        if requests > most { Err(format!("{requests} requests, at most {most} expected")) } else { Ok(()) }
    };
    match check.await {
        Err(why) => CellResult::Failed(why),
        Ok(()) if hit => CellResult::Passed { requests },
        Ok(()) => CellResult::NotHit,
    }
}

/// Prints the counts by fault, and fails with a table of all failures.
fn report(done: &[(Cell<'_>, CellResult)]) {
    let mut failures = Vec::new();
    for fault in Fault::ALL {
        let (mut passed, mut not_hit, mut most) = (0, 0, 0);
        for (cell, result) in done.iter().filter(|(cell, _)| cell.fault == fault) {
            match result {
                CellResult::Passed { requests } => (passed, most) = (passed + 1, most.max(*requests)),
                // Most objects have not changed since the beginning.
                CellResult::NotHit if fault == Fault::Stale => not_hit += 1,
                CellResult::NotHit => failures.push(format!("{cell}: not hit")),
                CellResult::Failed(why) => failures.push(format!("{cell}: {why}")),
            }
        }
        if passed + not_hit > 0 {
            let name = format!("{fault:?}");
            println!(
                "{name:<15} {passed:>3} passed, {not_hit} had no older answer, at most {most} requests in a life cycle"
            );
        }
    }
    assert!(failures.is_empty(), "  n  fault            request\n{}", failures.join("\n"));
}
