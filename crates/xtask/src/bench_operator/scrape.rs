//! What a scrape costs the operator: size and time of the answer, with every profile in the middle of a rollout and drift.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use api::{
    VirtPlatformConfig,
    virt_platform_config::{
        DriftedBy, Item, ItemState, Phase, PoolRollout, Profile, VirtPlatformConfigSpec, VirtPlatformConfigStatus,
    },
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube_io::Clock;
use operator::Metrics;

const RUNS: usize = 1_000;
/// What an operator may cost at most.
const SIZE: usize = 1 << 20;
const TIME: Duration = Duration::from_millis(2);

pub(super) fn run() -> anyhow::Result<()> {
    let metrics = Metrics::new("v0.0.0", Clock::default());
    for &profile in Profile::ALL {
        metrics.saw(&Arc::new(busy(profile)));
    }
    let mut times = Vec::new();
    let mut size = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        size = metrics.encode()?.len();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let median = *times.get(RUNS / 2).context("there were runs")?;
    println!("A scrape with all profiles: {:.1} KiB in {:.3} ms", size as f64 / 1024.0, median.as_secs_f64() * 1e3);
    ensure!(size < SIZE && median < TIME, "a scrape may have {SIZE} bytes and take {TIME:?}");
    Ok(())
}

/// As many pools, items and field managers as have series of their own, and more.
fn busy(profile: Profile) -> VirtPlatformConfig {
    let pool = |number: usize| PoolRollout {
        pool: format!("pool-{number}"),
        updated: Some(3),
        total: Some(250),
        last_progress: Some(Time(Timestamp::UNIX_EPOCH)),
        ..PoolRollout::default()
    };
    let item = |number: usize| Item {
        state: ItemState::InProgress,
        rollout: (0..64).map(pool).collect(),
        drifted_by: Some(DriftedBy { manager: format!("manager-{number}"), ..DriftedBy::default() }),
        ..Item::default()
    };
    let mut config = VirtPlatformConfig::new(profile.as_str(), VirtPlatformConfigSpec::new(profile));
    config.status = Some(VirtPlatformConfigStatus {
        phase: Some(Phase::InProgress),
        items: (0..16).map(item).collect(),
        ..VirtPlatformConfigStatus::default()
    });
    config
}
