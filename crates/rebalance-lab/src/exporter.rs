//! `rebalance-lab exporter`: the metrics of the lab's nodes as a process.

use std::net::{IpAddr, SocketAddr};

use lab_parts::exporter::{self, ExporterSettings};
use process::Shutdown;

use crate::part::Common;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to answer /metrics and /health
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    host: IpAddr,
    /// On which port to answer; 0 for any that is free
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Which nodes to show, as a label selector
    #[arg(long, value_name = "SELECTOR", default_value = "type=kwok")]
    nodes: String,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let address = SocketAddr::new(args.host, args.port);
    let settings = ExporterSettings { address, node_selector: args.nodes.clone(), ..ExporterSettings::default() };
    args.common.run("exporter", "metrics-exporter", |client, shutdown: Shutdown| {
        exporter::run(client, settings, shutdown.requested())
    })
}
