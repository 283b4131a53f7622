//! `rebalance-lab vm-controller`: the VM controller as a process.

use std::net::{IpAddr, SocketAddr};

use lab_parts::vm::{self, VmControllerSettings};
use process::Shutdown;
use sim::{
    scenario::MigrationSettings,
    units::{Rate, Span},
};

use crate::part::{Common, time_scale};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What each node's network carries for migrations, in each direction
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    bandwidth: Rate,
    /// At what rate VMs write to their memory, unless an annotation of theirs says otherwise
    #[arg(long, value_name = "RATE", default_value = "800Mbps")]
    dirty_rate: Rate,
    /// How many migrations may leave a node at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    migrations_per_node: u32,
    /// How many migrations may run in the cluster at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    migrations_per_cluster: u32,
    /// A migration whose target has not started after this time is given up
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    start_timeout: Span,
    /// How many times faster than the clock migrations go
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = time_scale)]
    time_scale: f64,
    /// Where to answer /health
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    host: IpAddr,
    /// On which port to answer /health; 0 for any that is free
    #[arg(long, default_value_t = 8080)]
    port: u16,
    #[command(flatten)]
    common: Common,
}

impl Args {
    fn settings(&self) -> VmControllerSettings {
        let defaults = VmControllerSettings::default();
        VmControllerSettings {
            migration: MigrationSettings {
                bandwidth: self.bandwidth,
                per_node: self.migrations_per_node,
                cluster: self.migrations_per_cluster,
                ..defaults.migration
            },
            dirty_rate: self.dirty_rate,
            start_timeout: std::time::Duration::from_secs(self.start_timeout.0),
            time_scale: self.time_scale,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let health = SocketAddr::new(args.host, args.port);
    let part = |client, shutdown: Shutdown| vm::run(client, args.settings(), health, shutdown.requested());
    args.common.run("VM controller", "vm-controller", part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::parse;

    fn settings(line: &str) -> VmControllerSettings {
        parse::<Args>(line).unwrap_or_else(|error| panic!("{error}")).settings()
    }

    #[test]
    fn without_options_the_settings_are_the_librarys() {
        assert_eq!(settings(""), VmControllerSettings::default());
    }

    #[test]
    fn options_become_settings() {
        let settings = settings(
            "--bandwidth 25Gbps --dirty-rate 50Mbps --migrations-per-node 3 --migrations-per-cluster 9 \
             --start-timeout 2m --time-scale 20",
        );
        assert_eq!((settings.migration.bandwidth, settings.dirty_rate), (Rate(25_000_000_000), Rate(50_000_000)));
        assert_eq!((settings.migration.per_node, settings.migration.cluster), (3, 9));
        assert_eq!((settings.start_timeout.as_secs(), settings.time_scale), (120, 20.0));
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for option in ["--migrations-per-node=0", "--migrations-per-cluster=0", "--time-scale=0", "--bandwidth=fast"] {
            assert!(parse::<Args>(option).is_err(), "{option}");
        }
    }
}
