//! `rebalance-lab soft-tainter`: the soft-tainter as a process.

use std::net::{IpAddr, SocketAddr};

use lab::descheduler::{SoftTainterSettings, run_soft_tainter};

use crate::{
    descheduler::OrdersArgs,
    part::{Common, Shutdown, time_scale},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where Prometheus answers
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    prometheus: String,
    /// How many times faster than the clock intervals go; none becomes shorter than a second
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = time_scale)]
    time_scale: f64,
    #[command(flatten)]
    orders: OrdersArgs,
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
        prometheus_url: args.prometheus.clone(),
        time_scale: args.time_scale,
        orders: args.orders.read(args.time_scale)?,
    };
    let health = SocketAddr::new(args.host, args.port);
    args.common
        .run("soft-tainter", |client, shutdown: Shutdown| run_soft_tainter(client, settings, health, shutdown.wait()))
}
