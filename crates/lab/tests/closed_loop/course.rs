//! One run of the loop: skewed VMs, the descheduler let loose, and what came of it.

use std::time::Duration;

use balance::{Algorithm, Mode};
use kube::Client;
use lab::up::{Descheduling, Lab, Options, Placement};

use crate::observer::Observer;

/// So that the descheduler's minute is three seconds.
const TIME_SCALE: f64 = 20.0;
/// The last eviction is by this cycle, and none follows in so many more.
const BY: u64 = 20;
const QUIET: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(240);

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
}

impl Course {
    /// The spread falls by this share at least, and then nothing moves any more.
    pub(crate) fn settles(&self, share: f64) {
        assert!(self.after <= self.before * (1.0 - share), "the spread does not fall by {share}: {self:?}");
        assert!(self.last <= BY, "evictions go on after cycle {BY}: {self:?}");
        assert!(self.cycles >= self.last + QUIET, "it was not watched for {QUIET} quiet cycles: {self:?}");
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

/// A run of the loop with the thresholds of `mode`.
pub(crate) async fn run(placement: &Placement, mode: Mode) -> Course {
    run_with(placement, &Algorithm::default(), mode, true).await
}

pub(crate) async fn run_with(placement: &Placement, algorithm: &Algorithm, mode: Mode, soft_tainter: bool) -> Course {
    let options =
        Options { descheduling: Descheduling::Awaited, time_scale: TIME_SCALE, soft_tainter, ..Options::default() };
    let lab = Lab::start(options, |_| {}).await.unwrap_or_else(|error| panic!("{error}"));
    placement.settle(lab.client()).await.unwrap();
    let observer = Observer::start(&lab).await;
    let before = observer.spread();
    lab.order(algorithm, mode).await.unwrap();

    let metrics = Metrics::of(&lab).await;
    let (mut cycles, mut first, mut last, mut evictions) = (0, None, 0, 0);
    let settled = async {
        while cycles < last.max(1) + QUIET && cycles <= BY + QUIET {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let Some((cycle, evicted)) = metrics.read().await else { continue };
            // A cycle is counted when it is over, and we look several times in each: it was the one after those counted before.
            if evicted > evictions {
                (evictions, last) = (evicted, cycles + 1);
                first = first.or(Some(last));
            }
            cycles = cycle;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.unwrap_or_else(|_| panic!("{cycles} cycles, {evictions} evictions"));
    observer.at_rest().await;
    let course = Course {
        before,
        after: observer.spread(),
        cycles,
        last,
        active: first.map_or(0, |first| last - first + 1),
        evictions,
        migrations: observer.migrations(),
        most_of_one: observer.most_of_one(),
    };
    println!("{} {}: {course:?}", algorithm.slug(), mode.name());
    observer.verdict();
    lab.shutdown().await;
    course
}

/// What the descheduler says about itself.
struct Metrics(Client);

impl Metrics {
    async fn of(lab: &Lab) -> Metrics {
        let config = kube::Config::new(lab.descheduler_url().unwrap().parse().unwrap());
        Metrics(Client::try_from(config).unwrap())
    }

    /// Cycles, and evictions that were asked for.
    async fn read(&self) -> Option<(u64, u64)> {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let text = self.0.request_text(request).await.ok()?;
        let sum = |name: &str, with: &str| -> u64 {
            let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(with));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
        };
        let cycles = sum("descheduler_loop_duration_seconds_count", "");
        Some((cycles, sum("descheduler_pods_evicted_total{", "result=\"background\"")))
    }
}
