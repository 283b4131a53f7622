//! One run of the loop: VMs with an uneven load, the descheduler, and the result.

use std::{collections::BTreeMap, time::Duration};

use balance::{Algorithm, Mode};
use kube::Client;
use lab::{
    play::Placement,
    up::{Descheduling, Lab, Options},
};
use lab_parts::webhook::Switch;

use crate::observer::{Demand, Move, Observer};

/// The interval of the descheduler, a minute, takes three seconds.
pub(crate) const TIME_SCALE: f64 = 20.0;
/// A run has settled if its last eviction is in this cycle or earlier, and `QUIET` cycles follow without one.
pub(crate) const BY: u64 = 20;
pub(crate) const QUIET: u64 = 10;
const TIMEOUT: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_millis(200);
/// The limit for the shutdown of a lab.
const END: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Course {
    /// The largest spread: a load that was just set is seen VM by VM.
    pub(crate) before: f64,
    pub(crate) after: f64,
    pub(crate) cycles: u64,
    /// The cycle of the last eviction.
    pub(crate) last: u64,
    /// The number of cycles from the first eviction to the last. No eviction is possible before the first averages exist.
    pub(crate) active: u64,
    pub(crate) evictions: u64,
    pub(crate) migrations: usize,
    /// The number of moves of the VM that moved most often.
    pub(crate) most_of_one: usize,
    /// The number of VMs that moved more than once.
    pub(crate) repeated: usize,
    /// The number of moves of VMs that had moved before.
    pub(crate) moved_again: usize,
    /// The average duration of a migration, in seconds of the lab.
    pub(crate) took: f64,
}

impl Course {
    /// The share by which the spread fell.
    pub(crate) fn gain(&self) -> f64 {
        1.0 - self.after / self.before
    }

    /// Whether enough cycles without an eviction followed the last one.
    pub(crate) fn stops(&self) -> bool {
        self.cycles >= self.last + QUIET
    }

    /// Checks that the spread falls by at least this share, that the evictions end, and that no VM moves to and fro.
    pub(crate) fn settles(&self, share: f64) {
        assert!(self.gain() >= share, "the spread does not fall by {share}: {self:?}");
        assert!(self.last <= BY, "evictions go on after cycle {BY}: {self:?}");
        assert!(self.stops(), "it was not watched for {QUIET} quiet cycles: {self:?}");
        assert!(self.most_of_one <= 2, "a VM was moved to and fro: {self:?}");
        assert!(self.moved_again * 2 <= self.migrations, "VMs were moved to and fro: {self:?}");
    }

    /// Checks that the evictions do not end.
    pub(crate) fn goes_on(&self) {
        assert!(self.last > BY, "{self:?}");
    }

    pub(crate) fn does_nothing(&self) {
        assert_eq!((self.evictions, self.migrations), (0, 0), "{self:?}");
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    pub(crate) course: Course,
    /// The nodes at the beginning and after each cycle.
    pub(crate) frames: Vec<Frame>,
    pub(crate) moves: Vec<Move>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) nodes: Vec<Demand>,
    /// The number of moves so far.
    pub(crate) moves: usize,
}

pub(crate) async fn run(placement: &Placement, mode: Mode) -> Course {
    run_with(placement, &Algorithm::default(), mode, Parts::default()).await.course
}

/// What takes part besides the descheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) soft_tainter: bool,
    /// The plugin KubevirtMigrationAware.
    pub(crate) migration_aware: Switch,
}

impl Default for Parts {
    fn default() -> Self {
        Parts { soft_tainter: true, migration_aware: Switch::Auto }
    }
}

impl Parts {
    /// As before the operator's release 5.1.
    pub(crate) const WITHOUT_PLUGIN: Parts = Parts { soft_tainter: true, migration_aware: Switch::Off };
}

pub(crate) async fn run_with(
    placement: &Placement,
    algorithm: &Algorithm,
    mode: Mode,
    Parts { soft_tainter, migration_aware }: Parts,
) -> Observation {
    let options = Options {
        descheduling: Descheduling::Awaited,
        time_scale: TIME_SCALE,
        soft_tainter,
        migration_aware,
        ..Options::default()
    };
    let lab = Lab::start(options, |_| {}).await.unwrap_or_else(|error| panic!("{error}"));
    placement.create(lab.client()).await.unwrap();
    let observer = Observer::start(&lab).await;
    lab.balance(algorithm, mode).await.unwrap();
    let record = follow(&lab, &observer).await;
    let moves: Vec<usize> = record.frames.iter().map(|frame| frame.moves).collect();
    println!("{} {}: {:?}, moves by cycle {moves:?}", algorithm.slug(), mode.name(), record.course);
    observer.check_history().await;
    drop(observer);
    end(lab).await;
    record
}

pub(crate) async fn end(lab: Lab) {
    tokio::time::timeout(END, lab.shutdown()).await.expect("the lab ends in time");
}

/// Records the loop until `QUIET` cycles have passed without an eviction, or evictions go on for too long.
pub(crate) async fn follow(lab: &Lab, observer: &Observer) -> Observation {
    let metrics = Metrics::of(lab);
    // A descheduler that does not run yet has no metrics.
    let start = metrics.read().await.unwrap_or_default();
    let (mut before, moves_before) = (observer.spread(), observer.moves().len());
    let frame = || Frame { nodes: observer.demands(), moves: observer.moves().len() - moves_before };
    let mut frames = vec![frame()];
    let (mut cycles, mut first, mut last, mut evictions) = (0, None, 0, 0);
    let settled = async {
        while cycles < last.max(1) + QUIET && cycles <= BY + QUIET {
            tokio::time::sleep(PAUSE).await;
            before = before.max(observer.spread());
            let Some(now) = metrics.read().await else { continue };
            let (cycle, evicted) = (now.cycles - start.cycles, now.evictions - start.evictions);
            // The descheduler counts a cycle at its end, so a new eviction belongs to the cycle after those that are counted.
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
        moved_again: moves.len() - of_one.len(),
        took: moves.iter().map(|moved| moved.took.as_secs_f64()).sum::<f64>() / moves.len().max(1) as f64 * TIME_SCALE,
    };
    Observation { course, frames, moves }
}

/// Counts since the start of the descheduler.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) cycles: u64,
    /// Evictions that the descheduler requested.
    pub(crate) evictions: u64,
}

/// The metrics of the descheduler.
pub(crate) struct Metrics(Client);

impl Metrics {
    pub(crate) fn of(lab: &Lab) -> Metrics {
        let config = kube::Config::new(lab.descheduler_url().unwrap().parse().unwrap());
        Metrics(Client::try_from(config).unwrap())
    }

    /// Returns None if no descheduler runs.
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
