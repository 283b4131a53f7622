//! `rebalance-lab soft-tainter`: the soft-tainter as a process.

use std::net::{IpAddr, SocketAddr};

use advisor::kube_descheduler::Release;
use lab_parts::soft_tainter::{self, SoftTainterSettings};
use process::Shutdown;

use crate::{
    descheduler::PolicyArgs,
    part::{Common, release, time_scale},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where Prometheus answers
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    prometheus: String,
    /// How many times faster than the clock intervals go; none becomes shorter than a second
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = time_scale)]
    time_scale: f64,
    /// Which OpenShift release's operator is played: 4.17, 4.18, 4.19, 4.20, 4.21 or 5.1
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST, value_parser = release)]
    release: Release,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Where to answer /health
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    host: IpAddr,
    /// On which port to answer /health; 0 for any that is free
    #[arg(long, default_value_t = 8081)]
    port: u16,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = SoftTainterSettings {
        release: args.release,
        prometheus_url: args.prometheus.clone(),
        time_scale: args.time_scale,
        policy_source: args.policy.read(args.time_scale)?,
    };
    let health = SocketAddr::new(args.host, args.port);
    args.common.run("soft-tainter", "soft-tainter", |client, shutdown: Shutdown| {
        soft_tainter::run(client, settings, health, shutdown.requested())
    })
}
