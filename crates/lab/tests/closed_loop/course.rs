//! One run of the loop: skewed VMs, the descheduler let loose, and what came of it.

use std::{collections::BTreeMap, time::Duration};

use balance::{Algorithm, Mode};
use kube::Client;
use lab::{
    play::Placement,
    up::{Descheduling, Lab, Options},
};

use crate::observer::{Demand, Move, Observer};

/// So that the descheduler's minute is three seconds.
pub(crate) const TIME_SCALE: f64 = 20.0;
/// The last eviction is by this cycle, and none follows in so many more.
pub(crate) const BY: u64 = 20;
pub(crate) const QUIET: u64 = 10;
const TIMEOUT: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_millis(200);
/// A lab that has nothing to do is gone by then.
const END: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Course {
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// How many cycles there were.
    pub(crate) cycles: u64,
    /// The cycle of the last eviction.
    pub(crate) last: u64,
    /// How many cycles there were from the first eviction to the last. Before the first averages are there, none is possible.
    pub(crate) active: u64,
    pub(crate) evictions: u64,
    pub(crate) migrations: usize,
    /// How often the VM moved that moved most.
    pub(crate) most_of_one: usize,
    /// How many VMs moved more than once.
    pub(crate) repeated: usize,
    /// How long a migration took on average, in the seconds of the lab.
    pub(crate) took: f64,
}

impl Course {
    /// By which share of it the spread fell.
    pub(crate) fn gain(&self) -> f64 {
        1.0 - self.after / self.before
    }

    /// Whether it was watched for long enough after the last eviction to say that it was the last.
    pub(crate) fn stops(&self) -> bool {
        self.cycles >= self.last + QUIET
    }

    /// The spread falls by this share at least, and then nothing moves any more.
    pub(crate) fn settles(&self, share: f64) {
        assert!(self.gain() >= share, "the spread does not fall by {share}: {self:?}");
        assert!(self.last <= BY, "evictions go on after cycle {BY}: {self:?}");
        assert!(self.stops(), "it was not watched for {QUIET} quiet cycles: {self:?}");
        assert!(self.most_of_one <= 2, "a VM was moved to and fro: {self:?}");
    }

    /// Evictions do not end.
    pub(crate) fn goes_on(&self) {
        assert!(self.last > BY, "{self:?}");
    }

    pub(crate) fn does_nothing(&self) {
        assert_eq!((self.evictions, self.migrations), (0, 0), "{self:?}");
    }
}

/// A run, cycle by cycle.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) course: Course,
    /// The nodes at the beginning, and when each cycle was over.
    pub(crate) frames: Vec<Frame>,
    pub(crate) moves: Vec<Move>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) nodes: Vec<Demand>,
    /// How many VMs had moved by then.
    pub(crate) moves: usize,
}

/// A run of the loop with the thresholds of `mode`.
pub(crate) async fn run(placement: &Placement, mode: Mode) -> Course {
    run_with(placement, &Algorithm::default(), mode, true).await.course
}

pub(crate) async fn run_with(placement: &Placement, algorithm: &Algorithm, mode: Mode, soft_tainter: bool) -> Record {
    let options =
        Options { descheduling: Descheduling::Awaited, time_scale: TIME_SCALE, soft_tainter, ..Options::default() };
    let lab = Lab::start(options, |_| {}).await.unwrap_or_else(|error| panic!("{error}"));
    placement.create(lab.client()).await.unwrap();
    let observer = Observer::start(&lab).await;
    lab.balance(algorithm, mode).await.unwrap();
    let record = follow(&lab, &observer).await;
    let moves: Vec<usize> = record.frames.iter().map(|frame| frame.moves).collect();
    println!("{} {}: {:?}, moves by cycle {moves:?}", algorithm.slug(), mode.name(), record.course);
    observer.verdict().await;
    drop(observer);
    end(lab).await;
    record
}

pub(crate) async fn end(lab: Lab) {
    tokio::time::timeout(END, lab.shutdown()).await.expect("the lab ends in time");
}

/// The loop from now on, until nothing has been evicted for long enough, or evictions go on for too long.
pub(crate) async fn follow(lab: &Lab, observer: &Observer) -> Record {
    let metrics = Metrics::of(lab);
    // One that does not run yet has done nothing.
    let start = metrics.read().await.unwrap_or_default();
    let (before, moves_before) = (observer.spread(), observer.moves().len());
    let frame = || Frame { nodes: observer.demands(), moves: observer.moves().len() - moves_before };
    let mut frames = vec![frame()];
    let (mut cycles, mut first, mut last, mut evictions) = (0, None, 0, 0);
    let settled = async {
        while cycles < last.max(1) + QUIET && cycles <= BY + QUIET {
            tokio::time::sleep(PAUSE).await;
            let Some(now) = metrics.read().await else { continue };
            let (cycle, evicted) = (now.cycles - start.cycles, now.evictions - start.evictions);
            // A cycle is counted when it is over, and we look several times in each: it was the one after those counted before.
            if evicted > evictions {
                (evictions, last) = (evicted, cycles + 1);
                first = first.or(Some(last));
            }
            frames.extend((cycles..cycle).map(|_| frame()));
            cycles = cycle;
        }
    };
    tokio::time::timeout(TIMEOUT, settled).await.unwrap_or_else(|_| panic!("{cycles} cycles, {evictions} evictions"));
    observer.at_rest().await;
    frames.push(frame());
    let moves = observer.moves().split_off(moves_before);
    let mut of_one: BTreeMap<&str, usize> = BTreeMap::new();
    for moved in &moves {
        *of_one.entry(&moved.vm).or_default() += 1;
    }
    let course = Course {
        before,
        after: observer.spread(),
        cycles,
        last,
        active: first.map_or(0, |first| last - first + 1),
        evictions,
        migrations: moves.len(),
        most_of_one: of_one.values().max().copied().unwrap_or_default(),
        repeated: of_one.values().filter(|count| **count > 1).count(),
        took: moves.iter().map(|moved| moved.took.as_secs_f64()).sum::<f64>() / moves.len().max(1) as f64 * TIME_SCALE,
    };
    Record { course, frames, moves }
}

/// What the descheduler has done since it was started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) cycles: u64,
    /// That were asked for.
    pub(crate) evictions: u64,
}

/// What the descheduler says about itself.
pub(crate) struct Metrics(Client);

impl Metrics {
    pub(crate) fn of(lab: &Lab) -> Metrics {
        let config = kube::Config::new(lab.descheduler_url().unwrap().parse().unwrap());
        Metrics(Client::try_from(config).unwrap())
    }

    /// Nothing, unless one runs.
    pub(crate) async fn read(&self) -> Option<Tally> {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let text = self.0.request_text(request).await.ok()?;
        let sum = |name: &str, with: &str| -> u64 {
            let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(with));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
        };
        let cycles = sum("descheduler_loop_duration_seconds_count", "");
        Some(Tally { cycles, evictions: sum("descheduler_pods_evicted_total{", "result=\"background\"") })
    }
}
